"""Ctrl-K finds agents, conversations, views, actions and messages; filters narrow a search."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage, Visit
from tests.browser.stage import Stage
from tests.browser.test_accessibility import find_faults
from tests.browser.test_modules import call, lab

__all__ = ["lab"]
NOW = 1_773_151_200_000  # 2026-03-10, in the middle of the day nearly everywhere
DAY = 86_400_000


def find(page: Page, words: str) -> Locator:
    expect(page.locator("body[data-loaded=all]")).to_be_visible()
    page.keyboard.press("Control+k")
    dialog = page.get_by_role("dialog", name="Go to or do anything")
    expect(dialog.get_by_label("Find")).to_be_focused()
    page.keyboard.type(words)
    return dialog


@pytest.mark.parametrize(
    ("words", "leads_to"),
    [
        ("timel", "#/timeline"),
        ("gin", "#/conversations/agent/Gina?select=agent%3AGina"),
        ("#rev", "#/conversations/channel/%23review"),
    ],
)
def test_it_leads_to_what_its_name_begins_with(page: Page, words: str, leads_to: str) -> None:
    find(page, words)
    page.keyboard.press("Enter")
    page.wait_for_function("(hash) => location.hash === hash", arg=leads_to)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_it_does_things_and_searches_messages(page: Page, stage: Stage) -> None:
    dialog = find(page, "pause bob")
    expect(dialog.get_by_role("option").first).to_contain_text("Pause Bob")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Bob is paused; its messages wait.")).to_be_visible()
    find(page, "base64url")
    page.keyboard.press("Enter")
    expect(page.locator(".message mark").first).to_have_text("base64url")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault_in_it(visit: Visit, scheme: str) -> None:
    page = visit("conversations/all", color_scheme=scheme)
    expect(find(page, "al").get_by_role("option").first).to_contain_text("Alice")
    assert find_faults(page) == []
    page.keyboard.press("Escape")


def test_filters_narrow_a_search(visit: Visit, stage: Stage) -> None:
    stage.send("Ada", "Bob", "the needle is here")
    stage.send("Alice", "Bob", "the needle is there")
    page = visit("conversations/all")
    page.get_by_label("Search in All messages").fill("needle from:Ada after:today")
    expect(page.locator(".found")).to_contain_text("1 message")
    expect(page.locator(".message")).to_contain_text("here")


def test_a_kind_is_asked_for(open_view: OpenPage) -> None:
    page, _ = open_view("#/conversations/all")
    asked = re.compile(r"/api/v1/messages\?(.*&)?kind=action(&|$)")
    page.route(asked, lambda route: route.fulfill(json={"messages": []}))
    with page.expect_request(asked):
        find(page, "kind:action")
        page.keyboard.press("Enter")
    expect(page.get_by_label("Search in All messages")).to_have_value("kind:action")
    expect(page.get_by_text("Nothing found")).to_be_visible()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("two words", {"search": "two words"}),
        ("from:Bob to:#build x", {"from": "Bob", "to": "#build", "search": "x"}),
        ('topic:ci in:"my thread"', {"topic": "ci", "thread": "my thread"}),
        ("in:#build to:everyone", {"to": "*"}),
        ("after:someday x", {"search": "after:someday x"}),
        ("http://a.b:80 note:this", {"search": "http://a.b:80 note:this"}),
        ("kind:Action x", {"kind": "action", "search": "x"}),
        ("kind:of magic", {"search": "kind:of magic"}),
        ("after:2026-02-30", {"search": "after:2026-02-30"}),
    ],
)
def test_filters_are_read_and_what_is_none_is_words(lab: Page, text: str, query: dict[str, Any]) -> None:
    assert call(lab, "conversations/search.js", "m.parseSearch(x, 1773151200000).query", text) == query


def test_days_begin_at_midnight_here(lab: Page) -> None:
    since = call(lab, "conversations/search.js", "m.parseSearch('after:today', x).query.since", NOW)
    until = call(lab, "conversations/search.js", "m.parseSearch('before:1d', x).query.until", NOW)
    assert since == call(lab, "conversations/search.js", "new Date(x).setHours(0, 0, 0, 0)", NOW)
    assert since - until in {DAY, DAY - 3_600_000, DAY + 3_600_000}
