"""What was not read yet: bold and counted, divided from what was, and the same in every browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.stage import Stage, until

UNREAD = re.compile(r"\bunread\b")


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage(asks=False) as made:
        yield made


@pytest.fixture
def page(open_view: OpenPage, stage: Stage) -> Page:
    """For somebody who was here before."""
    page, _ = open_view("#/conversations/channel/%23build")
    expect(page.locator(".message").first).to_be_visible()
    until(page, lambda: "seen:" in stage.get("marks")["marks"], "it is known since when this person reads")
    return page


def entry(page: Page, title: str) -> Locator:
    return page.locator(".conversation", has=page.get_by_text(title, exact=True))


def test_who_is_new_here_is_told_of_nothing_that_is_over(page: Page) -> None:
    expect(page.locator(".conversation").first).to_be_visible()
    expect(page.locator(".conversation.unread")).to_have_count(0)


def test_it_is_bold_and_counted_until_it_is_read_in_any_browser(open_view: OpenPage, stage: Stage, page: Page) -> None:
    other, _ = open_view("#/conversations/channel/%23build")
    for number in range(3):
        stage.send("Ada", "Otto", f"fresh {number}")
    for each in (page, other):
        expect(entry(each, "Ada, Otto")).to_have_class(UNREAD)
        expect(entry(each, "Ada, Otto").locator(".badge")).to_contain_text("3")
    entry(page, "Ada, Otto").click()
    expect(page.locator(".message").last).to_contain_text("fresh 2")
    expect(entry(page, "Ada, Otto")).not_to_have_class(UNREAD)
    until(page, lambda: "seen:pair:Ada,Otto" in stage.get("marks")["marks"], "the daemon knows")
    stage.send("Ada", "Bob", "something else")  # the other looks at the numbers again
    expect(entry(other, "Ada, Otto")).not_to_have_class(UNREAD)


def test_what_is_seen_as_it_comes_is_read(stage: Stage, page: Page) -> None:
    page.goto(f"{stage.url}/#/conversations/pair/Ada,Otto")
    stage.send("Ada", "Otto", "under your eyes")
    expect(page.locator(".message").last).to_contain_text("under your eyes")
    page.goto(f"{stage.url}/#/conversations/channel/%23build")
    expect(entry(page, "Ada, Otto")).to_be_visible()
    expect(entry(page, "Ada, Otto")).not_to_have_class(UNREAD)
    expect(page.locator("[data-new-from]")).to_have_count(0)


def test_what_is_new_is_divided_from_what_was_read_and_is_jumped_to(stage: Stage, page: Page) -> None:
    stage.send("Ada", "Otto", "read already")
    entry(page, "Ada, Otto").click()
    expect(page.locator(".message").last).to_contain_text("read already")
    until(page, lambda: "seen:pair:Ada,Otto" in stage.get("marks")["marks"], "the daemon knows")
    page.goto(f"{stage.url}/#/conversations/channel/%23build")
    expect(page.locator(".conversation-view h1")).to_have_text("#build")
    for number in range(25):
        stage.send("Ada", "Otto", f"fresh {number}\n\n{'word ' * 60}")
    expect(entry(page, "Ada, Otto").locator(".badge")).to_contain_text("25")
    entry(page, "Ada, Otto").click()
    expect(page.locator(".message").last).to_contain_text("fresh 24")
    jump = page.get_by_role("button", name="25 new messages")
    jump.click()
    divider = page.locator("[data-new-from]")
    expect(divider).to_be_in_viewport()
    expect(page.locator(".virtual-row", has=divider)).to_contain_text("fresh 0")
    expect(jump).to_have_count(0)
