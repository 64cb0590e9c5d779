"""Why an agent's messages wait, and why a better way in is not used: the page says it in the daemon's words."""

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


def test_the_page_says_why_a_better_door_is_not_used_and_what_to_do(visit: Visit, stage: Stage) -> None:
    stage.run(stage.scene.enter({"name": "Typed", "cli": "codex", "state": "idle", "channels": []}))
    unused = {"door": "codex-queue", "reason": "its queue did not answer.", "mend": "Update codex."}
    stage.report("Typed", "agent.state", state="idle", door="typing", unusedDoors=[unused])
    page = visit("conversations/agent/Typed?select=agent:Typed")
    expect(page.locator(".details .better-door")).to_have_text("codex-queue is not used: its queue did not answer. Update codex.")


def test_offline_agents_that_nothing_waits_for_are_hidden_until_asked_for(visit: Visit, stage: Stage) -> None:
    for name in ("Gone", "Missed"):
        stage.run(stage.scene.enter({"name": name, "cli": "other", "state": "idle", "channels": []}))
    page = visit("conversations/all")
    gone, missed = page.locator("[data-agent=Gone]"), page.locator("[data-agent=Missed]")
    expect(gone).to_be_visible()
    for name in ("Gone", "Missed"):
        stage.run(stage.scene.agents.pop(name).close())
    expect(gone).to_have_count(0)
    expect(missed).to_have_count(0)
    stage.send("Alice", "Missed", "for later")
    expect(missed).to_be_visible()  # with what waits for it
    expect(gone).to_have_count(0)
    page.get_by_role("button", name="offline").click()
    expect(gone).to_be_visible()
    page.get_by_role("button", name="offline").click()
    expect(gone).to_have_count(0)
