"""What agents write is text, wherever it is shown: no element of it, no program of it, no request of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.stage import Stage

IMAGE = "<img src=x onerror=window.hacked=1>"
SCRIPT = "<script>window.hacked=1</script>"
HOSTILE = f"{IMAGE}{SCRIPT}"
NAMES = ["constructor", "valueOf", "toString"]  # those that are there already, in a table that is a plain object
THREAD = "hasOwnProperty"
MARKUP = (
    f"{HOSTILE} [click](javascript:window.hacked=1) ![pixel](http://evil.example/pixel.png) <svg onload=window.hacked=1> "
    '<a href="data:text/html,x">x</a> <style>body{display:none}</style> <iframe src="http://evil.example"></iframe>'
)


FORBIDDEN = "body img, body script:not([src]), body iframe, body style, body svg[onload]"


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as made:
        about = {"cli": IMAGE, "model": HOSTILE, "state": "working", "channels": ["#build"]}
        for name in NAMES:
            made.run(made.scene.enter(about | {"name": name}))
        made.send("constructor", "toString", MARKUP, thread=THREAD)
        made.send("constructor", "#build", MARKUP)
        made.send("toString", ["constructor", "Bob"], f"# {HOSTILE}\n\n```html\n{HOSTILE}\n```\n\n| {IMAGE} |\n|---|\n| x |")
        made.report("constructor", "agent.state", state="waiting", waitingFor=HOSTILE, door=IMAGE, doorNote=HOSTILE)
        made.report("constructor", "tokens.used", model=HOSTILE, inputTokens=5, outputTokens=5)
        made.report("constructor", "command.executed", command=HOSTILE, exitCode=1, duration=5)
        made.report("constructor", "file.operation", operation="edit", filePath=HOSTILE, linesChanged=1)
        made.report("constructor", "question.requested", questionId="que_hostile", question=HOSTILE, options=[IMAGE, SCRIPT])
        yield made


def expect_text_only(page: Page) -> None:
    assert page.evaluate("window.hacked") is None
    expect(page.locator(FORBIDDEN)).to_have_count(0)
    expect(page).to_have_title(re.compile("Agent Relay$"))
    expect(page.get_by_text("This cannot be displayed.")).to_have_count(0)


@pytest.mark.parametrize(
    ("view", "shows"),
    [
        ("conversations/all", "article"),
        (f"conversations/thread/{THREAD}", "article"),
        ("conversations/agent/constructor?select=agent:constructor", "aside"),
        ("inbox", "[data-request=que_hostile]"),
        ("timeline", "main canvas"),
        ("graph?select=agent:toString", "[data-node=constructor]"),
        ("costs", "main table"),
    ],
)
def test_it_stays_text(visit: Visit, view: str, shows: str) -> None:
    page = visit(view)
    page.locator(shows).first.wait_for()
    expect(page.locator(".agent[data-agent=constructor]")).to_be_visible()
    expect(page.locator("[data-connection=live]")).to_be_visible()
    expect_text_only(page)


def test_what_is_said_can_be_read_as_it_was_written(visit: Visit) -> None:
    page = visit(f"conversations/thread/{THREAD}")
    body = page.locator(".message .prose").first
    expect(body).to_contain_text(IMAGE)
    expect(body).to_contain_text(SCRIPT)
    assert body.locator("a").evaluate_all("links => links.map((link) => link.protocol)") in ([], ["http:"])
    page.locator(".message").first.click()
    expect(page.locator(".details")).to_contain_text("constructor")
    expect_text_only(page)


def test_a_hostile_address_and_search_are_text_too(visit: Visit) -> None:
    page = visit(f"conversations/agent/{IMAGE}?search={SCRIPT}")
    expect(page.locator("main h1")).to_contain_text(IMAGE)
    expect(page.get_by_text("Nothing found")).to_be_visible()
    expect_text_only(page)
