"""Why an agent's messages wait: the page says it in the daemon's words."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.stage import Stage


def test_the_page_says_why_messages_wait_and_when_they_do_no_more(visit: Visit, stage: Stage) -> None:
    stage.run(stage.scene.enter({"name": "Unseen", "cli": "other", "state": "starting", "channels": []}))
    stage.report("Unseen", "agent.state", state="starting", hold="prompt", holdDetail="its prompt is not to be seen")
    page = visit("conversations/agent/Unseen?select=agent:Unseen")
    line = "Unseen's prompt was not recognised: see `agent-relay profile new`"
    expect(page.locator(".details .note.hold")).to_have_text(f"Messages wait: {line}")
    assert stage.get("agents/Unseen")["hold"]["line"] == line
    expect(page.locator("[data-agent=Unseen] .hold")).to_have_text(line)
    stage.report("Unseen", "agent.state", state="idle")
    expect(page.locator("[data-agent=Unseen] .hold")).to_have_count(0)
