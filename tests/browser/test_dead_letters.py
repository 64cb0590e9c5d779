"""Dead letters: why each died, and several sent again or dismissed at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.stage import Stage, until
from tests.integration.stage import until as soon


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage(asks=False) as made:
        yield made


@pytest.fixture
def page(open_view: OpenPage, stage: Stage) -> Page:
    """Three more than the one of the scene."""
    for number in range(3):
        stage.send("Lead", "release-notes", f"late {number}", ttl_ms=1)
    soon(lambda: stage.get("status")["deadLetters"] == 4, "they are dead")
    page, _ = open_view("#/dead-letters")
    expect(page.locator("[data-letter]")).to_have_count(4)
    return page


def letter(page: Page, words: str) -> Locator:
    return page.locator("[data-letter]", has_text=words)


def test_it_says_why_they_died(page: Page) -> None:
    expect(letter(page, "late 1").locator(".letter-why")).to_contain_text("release-notes was not there to get it within")
    expect(letter(page, "late 1")).to_contain_text("Not acknowledged in time")


def test_those_that_are_selected_are_dismissed_and_stay_in_their_conversation(page: Page, stage: Stage) -> None:
    for words in ("late 0", "late 2"):
        letter(page, words).get_by_role("checkbox").check()
    page.get_by_role("button", name="Dismiss 2 messages").click()
    page.get_by_role("dialog").get_by_role("button", name="Dismiss").click()
    expect(page.locator("[data-letter]")).to_have_count(2)
    expect(letter(page, "late 1")).to_be_visible()
    expect(page.locator(".toast", has_text="2 messages dismissed.")).to_be_visible()
    until(page, lambda: stage.get("status")["deadLetters"] == 2, "the daemon knows")
    page.goto(f"{stage.url}/#/conversations/pair/Lead,release-notes")
    expect(page.locator(".message", has_text="late 0")).to_be_visible()


def test_all_are_sent_again(page: Page, stage: Stage) -> None:
    before = {found["messageId"] for found in stage.get("dead-letters")["deadLetters"]}
    page.get_by_role("button", name="Send all again").click()
    page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    expect(page.locator(".toast", has_text="4 messages sent again.")).to_be_visible()
    for id_ in before:  # the new ones may be dead by now, too: they may wait no longer than the first
        expect(page.locator(f'[data-letter="{id_}"]')).to_have_count(0)
    assert not before & {found["messageId"] for found in stage.get("dead-letters")["deadLetters"]}
    assert len([found for found in stage.get("messages?to=release-notes")["messages"] if found["body"].startswith("late")]) == 6
