"""Terminals in the page: real ones, live and in colour, read-only until the keyboard is taken; and what is done to agents."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.stage import WAIT_MS, Stage
from tests.integration.stage import until

# A title, a link and markup that must stay text, and a colour that has no name.
PROGRAM = r"""
import sys, termios
settings = termios.tcgetattr(0)
settings[3] &= ~termios.ECHO
termios.tcsetattr(0, termios.TCSANOW, settings)
sys.stdout.write("\x1b]0;<img src=x onerror=document.title=1>\x07")
sys.stdout.write("\x1b[38;2;10;200;30mgreen\x1b[0m <script>document.title=2</script>\r\n")
sys.stdout.flush()
for line in sys.stdin:
    print("got " + ascii(line.strip()))
    if line == "links\n":
        print("\x1b]8;;javascript:document.title=3\x07script link\x1b]8;;\x07")
        print("\x1b]8;;https://example.org/elsewhere\x07web link\x1b]8;;\x07")
    sys.stdout.flush()
"""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage(terminals=True) as made:
        yield made


@pytest.fixture(scope="module")
def http(stage: Stage) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{stage.url}/api/v1", timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def echo(stage: Stage, http: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An agent that says what it was given."""
    program = Path(tmp_path_factory.mktemp("echo")) / "echo.py"
    program.write_text(PROGRAM)
    where = ["--socket", stage.daemon.socket, "--state-dir", str(stage.daemon.state_dir)]
    command = [
        sys.executable,
        "-m",
        "agent_relay",
        "wrap",
        "-n",
        "Echo",
        "--detach",
        "--no-intro",
        *where,
        sys.executable,
        str(program),
    ]
    environ = os.environ | {"AGENT_RELAY_HOME": str(stage.daemon.directory / "home")}
    subprocess.run(command, env=environ, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    yield "Echo"
    http.post("/agents/Echo/stop")
    until(lambda: not http.get("/agents/Echo").json()["connected"], "it has ended")


def screen(page: Page, agent: str) -> Locator:
    return page.locator(f"[data-terminal={agent}] .xterm-rows")


def click_on(page: Page, words: Locator, *, is_link: bool = False) -> None:
    """With the mouse: what lies before the letters takes the click."""
    box = words.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.mouse.move(box["x"] + 8, box["y"] + box["height"] / 2)
    if is_link:
        page.locator(".xterm-cursor-pointer").wait_for()
    page.mouse.click(box["x"] + 8, box["y"] + box["height"] / 2)


def pane(page: Page, agent: str) -> Locator:
    return page.get_by_role("region", name=f"Terminal of {agent}")


def is_paused(http: httpx.Client, agent: str) -> Callable[[], bool]:
    return lambda: bool(http.get(f"/agents/{agent}").json()["paused"])


def test_several_are_shown_and_follow_what_happens(open_view: OpenPage, http: httpx.Client, echo: str) -> None:
    page, _ = open_view("#/terminals")
    for agent in ("Term-1", "Term-2", echo):
        expect(pane(page, agent)).to_be_visible()
    http.post("/agents/Echo/input", json={"text": "hello\n"})
    expect(screen(page, echo)).to_contain_text("got 'hello'")


def test_colours_are_right_and_what_programs_write_stays_text(open_view: OpenPage, http: httpx.Client, echo: str) -> None:
    page, watched = open_view(f"#/terminals?agents={echo}")
    word = screen(page, echo).get_by_text("green", exact=True)
    expect(word).to_have_css("color", "rgb(10, 200, 30)")
    expect(screen(page, echo)).to_contain_text("<script>document.title=2</script>")
    expect(pane(page, echo)).to_contain_text("<img src=x onerror=document.title=1>")
    http.post("/agents/Echo/input", json={"text": "links\n"})
    screen(page, echo).get_by_text("web link", exact=True).wait_for()
    click_on(page, screen(page, echo).get_by_text("script link", exact=True))
    click_on(page, screen(page, echo).get_by_text("web link", exact=True), is_link=True)
    expect(page.get_by_role("dialog")).to_contain_text("https://example.org/elsewhere")  # where it leads, before it does
    page.keyboard.press("Escape")
    assert page.title().endswith("Agent Relay")
    assert watched.faults == []


def test_nothing_is_typed_until_the_keyboard_is_taken(open_view: OpenPage, http: httpx.Client, echo: str) -> None:
    page, _ = open_view(f"#/terminals?agents={echo}")
    click_on(page, screen(page, echo))
    page.keyboard.type("not this\n")
    pane(page, echo).get_by_role("button", name="Take the keyboard").click()
    expect(pane(page, echo)).to_contain_text("You have the keyboard")
    until(is_paused(http, echo), "its messages wait")
    page.keyboard.type("mine")
    page.keyboard.press("Enter")
    expect(screen(page, echo)).to_contain_text("got 'mine'")
    assert "not this" not in screen(page, echo).inner_text()
    page.keyboard.press("Shift+Escape")
    expect(pane(page, echo).get_by_role("button", name="Take the keyboard")).to_be_visible()
    until(lambda: not is_paused(http, echo)(), "its messages follow")


def test_leaving_gives_the_keyboard_back_and_another_may_take_it_by_force(
    open_view: OpenPage, http: httpx.Client, echo: str
) -> None:
    page, first = open_view(f"#/terminals?agents={echo}")
    pane(page, echo).get_by_role("button", name="Take the keyboard").click()
    expect(pane(page, echo)).to_contain_text("You have the keyboard")
    other, second = open_view(f"#/terminals?agents={echo}")
    first.allows_network_errors = second.allows_network_errors = True  # the second one is told no
    pane(other, echo).get_by_role("button", name="Take the keyboard").click()
    other.get_by_role("button", name="Take it anyway").click()
    expect(pane(other, echo)).to_contain_text("You have the keyboard")
    other.goto(f"{other.url.partition('#')[0]}#/attention")
    until(lambda: not is_paused(http, echo)(), "leaving the view gives it back")


def test_one_is_shown_alone_or_not_at_all(open_view: OpenPage) -> None:
    page, _ = open_view("#/terminals?agents=Term-1,Term-2")
    pane(page, "Term-1").get_by_role("button", name="Show only this one").click()
    expect(pane(page, "Term-2")).to_have_count(0)
    page.get_by_role("button", name="Show all 2").click()
    pane(page, "Term-1").get_by_role("button", name="Hide the terminal of Term-1").click()
    expect(pane(page, "Term-1")).to_have_count(0)
    expect(pane(page, "Term-2")).to_be_visible()


def test_starting_an_agent_says_what_is_wrong(open_view: OpenPage) -> None:
    page, watched = open_view()
    watched.allows_network_errors = True
    page.get_by_role("button", name="Start an agent").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("other").click()
    dialog.get_by_label("Program").fill("no-such-program")
    dialog.get_by_label("Name").fill("Newcomer")
    dialog.get_by_role("button", name="Start agent").click()
    expect(dialog.get_by_role("alert")).not_to_be_empty(timeout=WAIT_MS)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_dead_letter_is_sent_again(open_view: OpenPage) -> None:
    page, _ = open_view("#/dead-letters")
    letter = page.locator(".letter", has_text="Are you there?").first
    letter.get_by_role("button", name="Send again").click()
    expect(page.get_by_text("It is on its way to release-notes again.")).to_be_visible()


def test_agents_are_paused_typed_to_and_stopped(open_view: OpenPage, http: httpx.Client, echo: str) -> None:
    page, _ = open_view(f"#/terminals?agents={echo}&select=agent:{echo}")
    details = page.locator(".details")
    details.get_by_role("button", name="Pause").click()
    until(is_paused(http, echo), "it is paused")
    details.get_by_role("button", name="Resume").click()
    until(lambda: not is_paused(http, echo)(), "it goes on")
    details.get_by_role("button", name="Type into it…").click()
    page.get_by_label("Text").fill("from a dialog")
    page.get_by_role("button", name="Type it").click()
    expect(screen(page, echo)).to_contain_text("got 'from a dialog'")
    details.get_by_role("button", name="Stop…").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert http.get("/agents/Echo").json()["connected"]
    details.get_by_role("button", name="Stop…").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    until(lambda: not http.get("/agents/Echo").json()["connected"], "it has ended")
