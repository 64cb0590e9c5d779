"""Whoever decides in the page decides about what is shown: nothing that arrives, goes or changes meanwhile gets the answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.browser.stage import PHONE, Stage, open_page, until
from tests.browser.test_attention import CURRENT, ask, card, show

PRESS_AT_ONCE = """(id) => new MutationObserver((_, watch) => {
  const button = document.querySelector(`[data-request="${id}"] [data-press=approve]`);
  if (!button) return;
  watch.disconnect();
  button.click();
}).observe(document.body, { childList: true, subtree: true })"""
TOO_SOON = "The list just changed"
OTHER_WORDS = """async () => {
  const { permissions } = await import('./static/lib/store.js');
  permissions.value = new Map([["test", { ...permissions.value.get("test"), command: "rm -rf build" }]]);
}"""


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Nobody asks anything. One for each test: an answer that is still on its way would reach the same request of the next."""
    with Stage(asks=False) as made:
        yield made


@pytest.fixture
def page(browser: Browser, stage: Stage) -> Iterator[Page]:
    """Bob asks to run `make test`, and that is what is being read."""
    ask(stage, "Bob", "test")
    with open_page(browser, f"{stage.url}/#/inbox", stage.daemon) as (opened, _):
        expect(card(opened, "test")).to_have_class(CURRENT)
        expect(card(opened, "test").locator("[data-press=approve]")).to_be_enabled()
        yield opened


def sent_by(page: Page) -> list[str]:
    """Decisions as they leave the page, from now on: `test/approve`."""
    found: list[str] = []

    def note(request: Request) -> None:
        if request.method == "POST" and "/permissions/" in request.url:
            found.append(request.url.partition("/permissions/")[2])

    page.on("request", note)
    return found


def test_a_request_that_arrives_does_not_take_the_place_of_the_one_being_read(stage: Stage, page: Page) -> None:
    sent = sent_by(page)
    place = card(page, "test").bounding_box()
    ask(stage, "Ada", "push", command="git push --force origin main")
    expect(page.locator("[data-new]")).to_contain_text("1 new request")
    expect(card(page, "push")).to_have_count(0)
    assert card(page, "test").bounding_box() == place
    page.keyboard.press("a")
    until(page, lambda: sent == ["test/approve"], "the one that was read is approved, and nothing else")
    assert stage.wait_for_event("permission.resolved", "test")["resolution"] == "approved"
    assert sent == ["test/approve"]


def test_what_is_new_is_shown_when_it_is_asked_for_and_the_chosen_one_stays_chosen(stage: Stage, page: Page) -> None:
    ask(stage, "Ada", "push", command="git push --force origin main")
    page.locator("[data-new]").wait_for()
    page.keyboard.press("n")
    expect(page.locator("[data-request]").first).to_have_attribute("data-request", "push")
    expect(card(page, "test")).to_have_class(CURRENT)
    expect(page.locator("[data-new]")).to_have_count(0)


def test_a_press_that_comes_with_the_change_does_nothing(stage: Stage, page: Page) -> None:
    sent = sent_by(page)
    page.evaluate(PRESS_AT_ONCE, "lint")
    ask(stage, "Ada", "lint")
    page.locator("[data-new]").click()
    expect(page.locator(".toast", has_text=TOO_SOON)).to_be_visible()
    expect(page.locator("[data-undo]")).to_have_count(0)
    card(page, "test").locator("[data-press=deny]").click()
    until(page, lambda: sent == ["test/deny"], "only what was pressed later is sent")


def test_when_the_chosen_one_goes_away_its_key_reaches_no_other(stage: Stage, page: Page) -> None:
    sent = sent_by(page)
    ask(stage, "Ada", "lint")
    page.locator("[data-new]").click()
    expect(card(page, "lint").locator("[data-press=approve]")).to_be_enabled()
    stage.report("Bob", "permission.resolved", requestId="test", resolution="denied", resolvedBy="person")
    expect(card(page, "test")).to_have_count(0)
    expect(card(page, "lint").locator("[data-press=approve]")).to_be_enabled()
    page.keyboard.press("a")
    expect(page.locator(".toast", has_text="no other is selected")).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("d")
    until(page, lambda: sent == ["lint/deny"], "the one that was chosen then is decided")


@pytest.mark.parametrize("by", ["button", "key"])
def test_a_decision_can_be_taken_back_before_it_is_sent(stage: Stage, page: Page, by: str) -> None:
    sent = sent_by(page)
    page.keyboard.press("a")
    undo = page.locator('[data-undo="test"]')
    expect(undo).to_contain_text("Approving in")
    page.keyboard.press("u") if by == "key" else undo.get_by_role("button", name="Undo").click()
    expect(undo).to_have_count(0)
    card(page, "test").locator("[data-press=deny]").click()
    until(page, lambda: sent, "what was decided after that is sent")
    assert sent == ["test/deny"]
    assert stage.wait_for_event("permission.resolved", "test")["resolution"] == "denied"


def test_it_is_sent_from_another_view_too_and_can_be_taken_back_there(stage: Stage, page: Page) -> None:
    sent = sent_by(page)
    page.keyboard.press("a")
    page.goto(f"{stage.url}/#/costs")
    expect(page.locator(".undo-bar")).to_contain_text("Bob")
    page.locator(".undo-bar").get_by_role("button", name="Undo").click()
    expect(page.locator(".undo-bar")).to_have_count(0)
    page.goto(f"{stage.url}/#/inbox")
    card(page, "test").locator("[data-press=deny]").click()
    page.goto(f"{stage.url}/#/costs")
    until(page, lambda: sent == ["test/deny"], "it is sent")


@pytest.mark.parametrize("change", ["decided", "another", "other words"])
def test_a_decision_is_dropped_when_somebody_else_decides_or_the_request_changes(stage: Stage, page: Page, change: str) -> None:
    sent = sent_by(page)
    page.keyboard.press("a")
    expect(page.locator('[data-undo="test"]')).to_be_visible()
    if change == "other words":  # as a page finds it that was away meanwhile
        page.evaluate(OTHER_WORDS)
    else:
        stage.report("Bob", "permission.resolved", requestId="test", resolution="denied", resolvedBy="person")
    if change == "another":
        ask(stage, "Bob", "test", command="rm -rf build")
    expect(page.locator(".toast", has_text="Approving for Bob was not sent")).to_be_visible()
    expect(page.locator("[data-undo]")).to_have_count(0)
    ask(stage, "Ada", "lint")
    show(page, "lint").locator("[data-press=deny]").click()
    until(page, lambda: sent, "a decision that was made later is sent")
    assert sent == ["lint/deny"]


def test_a_page_that_is_closed_sends_nothing_and_asks_before(stage: Stage, page: Page) -> None:
    sent, asked = sent_by(page), []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.keyboard.press("a")
    expect(page.locator('[data-undo="test"]')).to_be_visible()
    page.reload()
    expect(card(page, "test").locator("[data-press=deny]")).to_be_enabled()
    assert asked == ["beforeunload"]
    card(page, "test").locator("[data-press=deny]").click()
    until(page, lambda: sent, "what was decided then is sent")
    assert sent == ["test/deny"]


def test_on_a_phone_the_button_fits_and_moves_nothing(browser: Browser, stage: Stage) -> None:
    ask(stage, "Bob", "test")
    with open_page(browser, f"{stage.url}/#/inbox", stage.daemon, viewport=PHONE) as (page, _):
        expect(card(page, "test").locator("[data-press=approve]")).to_be_enabled()
        place = card(page, "test").bounding_box()
        ask(stage, "Ada", "push", command="rm -rf build")
        expect(page.locator("[data-new]")).to_contain_text("1 new request, 1 critical")
        expect(page.locator("[data-new]")).to_be_in_viewport(ratio=1)
        assert card(page, "test").bounding_box() == place
