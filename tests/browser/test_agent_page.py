"""The page of one agent: everything about it at one place, and its request answered there."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.stage import PHONE, Stage, box_of, expect_to_fit
from tests.browser.test_accessibility import find_faults
from tests.browser.test_attention import ask, card

NARROW = {"width": 1000, "height": 800}


def show(visit: Visit, **options: object) -> Page:
    page = visit("agent/Bob", **options)
    expect(page.locator("main h1")).to_have_text("Bob")
    expect(page.get_by_role("region", name="Way in")).to_contain_text("by codex-server")
    return page


def test_it_shows_what_it_did_cost_and_how_messages_reach_it(visit: Visit, stage: Stage) -> None:
    page = show(visit)
    work = page.get_by_role("region", name="Files and commands")
    expect(work.locator("li").first).to_be_visible()
    stage.report("Bob", "command.executed", command="make only-here", exitCode=2, duration=5)
    expect(work.locator("li").first).to_contain_text("make only-here")
    expect(work.locator("li").first).to_contain_text("exit 2")
    expect(page.locator(".agent-cost rect").first).to_be_attached()
    expect(page.get_by_role("region", name="Way in")).to_contain_text("codex-server")
    expect(page.locator(".agent-facts")).to_contain_text("gpt-5.3-codex")


def test_its_request_is_answered_in_place(visit: Visit, stage: Stage) -> None:
    page = show(visit)
    ask(stage, "Bob", "here")
    approve = card(page, "here").locator("[data-press=approve]:not([aria-disabled=true])")
    approve.click()
    expect(card(page, "here")).to_have_count(0)
    assert stage.wait_for_event("permission.resolved", "here")["resolution"] == "approved"


def test_one_writes_to_it_there(visit: Visit, stage: Stage) -> None:
    page = show(visit)
    page.get_by_label("Message", exact=True).fill("To Bob, from his page")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".message", has_text="To Bob, from his page")).to_be_visible()
    stage.send("Bob", "Lead", "and this is said by Bob")
    expect(page.locator(".message", has_text="and this is said by Bob")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_conversation_and_the_rest_are_side_by_side_where_there_is_room(visit: Visit, scheme: str) -> None:
    page = show(visit, color_scheme=scheme)
    talk, side = box_of(page, page.locator(".agent-talk")), box_of(page, page.locator(".agent-side"))
    assert talk["x"] + talk["width"] <= side["x"] + 1
    assert find_faults(page) == []


@pytest.mark.parametrize("viewport", [PHONE, NARROW])
def test_elsewhere_it_is_one_column_that_fits(visit: Visit, viewport: dict[str, int]) -> None:
    page = show(visit, viewport=viewport)
    expect_to_fit(page)
    talk, side = box_of(page, page.locator(".agent-talk")), box_of(page, page.locator(".agent-side"))
    assert side["y"] < talk["y"]


def test_the_details_lead_to_it(visit: Visit) -> None:
    page = visit("conversations/all?select=agent:Bob")
    page.get_by_role("link", name="Whole page").click()
    expect(page.locator("main h1")).to_have_text("Bob")
    expect(page.get_by_role("region", name="Way in")).to_be_visible()
