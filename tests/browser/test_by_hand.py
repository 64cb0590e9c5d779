"""Without a mouse, and on a phone: everything can be reached, and it is seen where one is."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, Visit
from tests.browser.stage import PHONE, Stage, expect_to_fit, until

GO_TO = {
    "i": "inbox",
    "d": "decisions",
    "x": "terminals",
    "t": "timeline",
    "r": "replay",
    "g": "graph",
    "m": "costs",
    "l": "dead-letters",
}
ON_A_PHONE = {"viewport": PHONE, "has_touch": True, "is_mobile": True}


DARKEST, LIGHTEST = 60, 200  # of 255


def focused(page: Page) -> str:
    """The words of what has the focus."""
    return str(page.evaluate("document.activeElement.ariaLabel || document.activeElement.textContent.trim()"))


def tab_to(page: Page, words: str, most: int = 60) -> None:
    for _ in range(most):
        page.keyboard.press("Tab")
        if words in focused(page):
            return
    raise AssertionError(f"Tab does not lead to {words!r}")


def test_keys_lead_to_every_view_and_back(page: Page) -> None:
    page.locator(".message").first.wait_for()
    for key, view in GO_TO.items():
        page.keyboard.type(f"g{key}")  # one soon after the other
        expect(page.locator(f'body[data-view="{view}"] main h1').first).to_be_visible()
    page.keyboard.type("gc")
    expect(page.locator(".message").first).to_be_visible()


def test_the_shortcuts_are_listed_and_the_focus_comes_back(open_view: OpenPage) -> None:
    page, _ = open_view()
    page.locator(".message").first.wait_for()
    tab_to(page, "Keyboard shortcuts")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    for does in ("Write a message", "Search", "Inbox", "Toggle light and dark"):
        expect(dialog.get_by_text(does, exact=True).first).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    until(page, lambda: focused(page) == "Keyboard shortcuts", "the focus is where it was")


def test_a_message_is_chosen_answered_and_sent_by_keys_alone(page: Page, stage: Stage) -> None:
    stage.send("Ada", "Lead", "Who presses keys?")
    expect(page.locator(".message").last).to_contain_text("Who presses keys?")
    page.keyboard.press("k")
    expect(page.locator(".message.chosen")).to_contain_text("Who presses keys?")
    page.keyboard.type("rI do")  # without a pause: no letter of it may be taken for a shortcut
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("all day")
    page.keyboard.press("Enter")
    expect(page.locator(".message").last).to_contain_text(re.compile(r"I do\s*all day"))
    page.locator(".message-list").focus()
    page.keyboard.press("Escape")
    expect(page.locator(".details")).to_have_count(0)


def test_the_content_is_one_tab_away_and_the_focus_is_seen(open_view: OpenPage) -> None:
    page, _ = open_view()
    page.locator(".message").first.wait_for()
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    tab_to(page, "All messages")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


def test_the_theme_is_the_systems_until_it_is_chosen(open_view: OpenPage) -> None:
    page, _ = open_view("", color_scheme="dark")
    page.locator(".message").first.wait_for()
    shade = "Number(getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/)[0])"
    until(page, lambda: page.evaluate(shade) < DARKEST, "it is dark")
    page.keyboard.press("t")
    until(page, lambda: page.evaluate(shade) > LIGHTEST, "it is light")
    page.reload()
    page.locator(".message").first.wait_for()
    until(page, lambda: page.evaluate(shade) > LIGHTEST, "it is light still")


def test_a_phone_leads_from_agents_to_what_was_said_and_back(visit: Visit) -> None:
    page = visit("agents", **ON_A_PHONE)
    page.locator(".agent[data-agent=Alice]").tap()
    expect(page.locator("main h1")).to_have_text("Alice")
    expect(page.locator(".message").last).to_be_in_viewport()
    page.get_by_role("button", name="Conversations").tap()
    page.locator(".conversation", has_text="build").first.tap()
    expect(page.locator("main h1")).to_have_text("#build")
    page.get_by_label("Message", exact=True).fill("from a phone")
    page.get_by_role("button", name="Send").tap()
    expect(page.locator(".message").last).to_contain_text("from a phone")


def test_a_request_is_decided_on_a_phone(visit: Visit, stage: Stage) -> None:
    page = visit("conversations", **ON_A_PHONE)
    stage.report(
        "Bob", "permission.requested", requestId="phone", isExact=True, tool="Bash", command="make phone", description="?",
        options=["Yes", "No"],
    )  # fmt: skip
    page.locator(".dock").get_by_role("link", name=re.compile("Inbox")).tap()
    card = page.locator('[data-request="phone"]')
    card.locator("[data-press=approve]").tap()
    expect(card).to_have_count(0)


@pytest.mark.parametrize(
    ("view", "shows"),
    [
        ("Timeline", ".tl-picture canvas"),
        ("Replay", ".rp-session"),
        ("Graph", "[data-node=Alice]"),
        ("Costs", ".chart canvas"),
        ("Dead letters", ".letter"),
    ],
)
def test_the_other_views_are_behind_more_and_fit(visit: Visit, view: str, shows: str) -> None:
    page = visit("inbox", **ON_A_PHONE)
    page.locator(".dock").get_by_role("button", name="More").tap()
    page.get_by_role("menuitem", name=view).tap()
    expect(page.locator("main h1").first).to_have_text(view)
    expect(page.locator(shows).first).to_be_visible()
    expect_to_fit(page)
