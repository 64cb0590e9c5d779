"""Terminals in the page: real ones, live and in colour, read-only until the keyboard is taken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect
from playwright.sync_api import TimeoutError as NotInTime

from tests.browser.conftest import OpenPage, Visit
from tests.browser.echo import is_paused, open_api, open_echo, pane, screen
from tests.browser.stage import PHONE, Stage, box_of, expect_to_fit
from tests.browser.stage import until as wait
from tests.browser.test_accessibility import find_faults
from tests.integration.stage import until

SOON_MS = 1_000


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage(terminals=True) as made:
        yield made


@pytest.fixture(scope="module")
def http(stage: Stage) -> Iterator[httpx.Client]:
    with open_api(stage) as client:
        yield client


@pytest.fixture(scope="module")
def echo(stage: Stage) -> Iterator[str]:
    with open_echo(stage) as name:
        yield name


def move_to(page: Page, words: Locator) -> None:
    """With the mouse, to where the words are: what lies before the letters gets it. Rows are drawn anew while one looks."""
    box = box_of(page, words)
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.mouse.move(box["x"] + 8, box["y"] + box["height"] / 2)


def click_on(page: Page, words: Locator) -> None:
    move_to(page, words)
    page.mouse.down()
    page.mouse.up()


def follow_link(page: Page, words: Locator) -> None:
    """Until the click had its effect: what is under the pointer is found out a moment after it was moved."""

    def is_followed() -> bool:
        move_to(page, words)
        try:
            page.locator(".xterm-cursor-pointer").wait_for(timeout=SOON_MS)
            page.mouse.down()
            page.mouse.up()
            page.get_by_role("dialog").wait_for(timeout=SOON_MS)
        except NotInTime:
            return False
        return True

    wait(page, is_followed, "the link is asked about")


def test_several_are_shown_and_follow_what_happens(visit: Visit, http: httpx.Client, echo: str) -> None:
    page = visit("terminals")
    for agent in ("Term-1", "Term-2", echo):
        expect(pane(page, agent)).to_be_visible()
    http.post("/agents/Echo/input", json={"text": "hello\n"})
    expect(screen(page, echo)).to_contain_text("got 'hello'")


def test_colours_are_right_and_what_programs_write_stays_text(visit: Visit, http: httpx.Client, echo: str) -> None:
    page = visit(f"terminals?agents={echo}")
    word = screen(page, echo).get_by_text("green", exact=True)
    expect(word).to_have_css("color", "rgb(10, 200, 30)")
    expect(screen(page, echo)).to_contain_text("<script>document.title=2</script>")
    expect(pane(page, echo)).to_contain_text("<img src=x onerror=document.title=1>")
    http.post("/agents/Echo/input", json={"text": "links\n"})
    screen(page, echo).get_by_text("web link", exact=True).wait_for()
    click_on(page, screen(page, echo).get_by_text("script link", exact=True))
    follow_link(page, screen(page, echo).get_by_text("web link", exact=True))
    expect(page.get_by_role("dialog")).to_contain_text("https://example.org/elsewhere")  # where it leads, before it does
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page).to_have_title(re.compile("Agent Relay$"))


def test_letters_can_be_read_beside_another_terminal_and_nothing_is_wrong_with_them(visit: Visit) -> None:
    page = visit("terminals?agents=Term-1,Term-2")
    for agent in ("Term-1", "Term-2"):
        expect(screen(page, agent)).not_to_be_empty()
    beside = [box_of(page, pane(page, agent)) for agent in ("Term-1", "Term-2")]
    assert beside[0]["y"] == beside[1]["y"]
    for agent in ("Term-1", "Term-2"):
        size = screen(page, agent).evaluate("(rows) => parseFloat(getComputedStyle(rows).fontSize)")
        assert size >= 11
    assert find_faults(page) == []


def test_nothing_is_typed_until_the_keyboard_is_taken(visit: Visit, http: httpx.Client, echo: str) -> None:
    page = visit(f"terminals?agents={echo}")
    expect(screen(page, echo)).to_contain_text("green")
    click_on(page, screen(page, echo))
    page.keyboard.type("not this\n")
    pane(page, echo).get_by_role("button", name="Take the keyboard").click()
    expect(pane(page, echo)).to_contain_text("You have the keyboard")
    until(is_paused(http, echo), "its messages wait")
    page.keyboard.type("mine")
    page.keyboard.press("Enter")
    expect(screen(page, echo)).to_contain_text("got 'mine'")
    expect(screen(page, echo)).not_to_contain_text("not this")
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
    other.goto(f"{other.url.partition('#')[0]}#/inbox")
    until(lambda: not is_paused(http, echo)(), "leaving the view gives it back")


def test_one_is_shown_alone_or_not_at_all(visit: Visit) -> None:
    page = visit("terminals?agents=Term-1,Term-2")
    pane(page, "Term-1").get_by_role("button", name="Show only this one").click()
    expect(pane(page, "Term-2")).to_have_count(0)
    page.get_by_role("button", name="Show all 2").click()
    pane(page, "Term-1").get_by_role("button", name="Hide the terminal of Term-1").click()
    expect(pane(page, "Term-1")).to_have_count(0)
    expect(pane(page, "Term-2")).to_be_visible()


def test_they_stand_in_a_grid_that_fits(visit: Visit, stage: Stage) -> None:
    page = visit("terminals")
    page.get_by_role("tab", name="2", exact=True).click()
    grid = page.locator(".panes[data-grid='2']")
    expect(grid.locator(".pane")).to_have_count(2)
    body = page.locator(".terminals .view-body")
    wait(page, lambda: body.evaluate("(body) => body.scrollHeight <= body.clientHeight + 1"), "nothing has to be scrolled to")
    boxes = [box_of(page, grid.locator(".pane").nth(at)) for at in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"]
    page.get_by_role("button", name="Fit the width").click()
    expect(page).to_have_url(re.compile("fit=width"))
    page.get_by_role("tab", name="Auto").click()
    expect(page.locator(".panes.grid")).to_have_count(0)


def test_a_fresh_page_has_what_was_printed_before_and_finds_it(
    open_view: OpenPage, stage: Stage, http: httpx.Client, echo: str
) -> None:
    text = "".join(f"line {number}\n" for number in range(60))
    http.post(f"/agents/{echo}/input", json={"text": text}).raise_for_status()
    page, _ = open_view(f"#/terminals?agents={echo}")
    expect(screen(page, echo)).to_contain_text("got 'line 59'")
    pane(page, echo).get_by_role("button", name="Search in the terminal").click()
    field = page.get_by_role("searchbox", name=f"Search in the terminal of {echo}")
    field.fill("got 'line 3'")
    expect(pane(page, echo).locator(".pane-search [role=status]")).to_have_text("1 of 1")
    expect(screen(page, echo)).to_contain_text("got 'line 3'")
    field.press("Escape")
    expect(field).to_have_count(0)


def test_it_is_recorded_as_the_replay_plays_it(visit: Visit, http: httpx.Client, echo: str) -> None:
    page = visit(f"terminals?agents={echo}")
    expect(screen(page, echo)).to_contain_text("got")
    pane(page, echo).get_by_role("button", name="Record as .cast").click()
    http.post(f"/agents/{echo}/input", json={"text": "for the record\n"}).raise_for_status()
    expect(screen(page, echo)).to_contain_text("for the record")
    with page.expect_download() as download:
        pane(page, echo).get_by_role("button", name="Stop and save the recording").click()
    header, *lines = map(json.loads, download.value.path().read_text().splitlines())
    assert (header["version"], header["title"]) == (2, echo)
    assert "for the record" in "".join(text for _, kind, text in lines if kind == "o")


def test_a_phone_has_the_keys_that_it_lacks(open_view: OpenPage, http: httpx.Client, echo: str) -> None:
    page, _ = open_view(f"#/terminals?agents={echo}", viewport=PHONE, has_touch=True, is_mobile=True)
    pane(page, echo).get_by_role("button", name="Take the keyboard").click()
    bar = page.get_by_role("toolbar", name="Keys")
    bar.get_by_role("button", name="Tab").click()
    bar.get_by_role("button", name="Enter").click()
    expect(screen(page, echo)).to_contain_text("got ''")
    expect(bar.get_by_role("button", name="Escape")).to_be_visible()
    expect_to_fit(page)
    pane(page, echo).get_by_role("button", name="Release keyboard").click()
