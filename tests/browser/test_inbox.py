"""The inbox: one list of what needs a person, and the one number of it; what is done or put off is so in each browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from agent_relay.sdk.client import RelayClient
from tests.browser.conftest import OpenPage
from tests.browser.stage import PHONE, Stage, expect_to_fit, until
from tests.browser.test_accessibility import find_faults
from tests.browser.test_attention import ask, card

IS_DOTTED = "document.querySelector('link[rel=icon]').href.startsWith('data:')"


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Nobody asks anything; one message is dead."""
    with Stage(asks=False) as made:
        yield made


@pytest.fixture
def page(open_view: OpenPage) -> Page:
    page, _ = open_view("#/inbox")
    expect(item(page, "dead:release-notes")).to_be_visible()
    return page


def item(page: Page, id_: str) -> Locator:
    return page.locator(f'[data-item="{id_}"]')


def show_new(page: Page, id_: str) -> Locator:
    """What is new takes nobody's place."""
    until(page, lambda: page.locator("[data-new]").count() or item(page, id_).count(), f"{id_} has arrived")
    if not item(page, id_).count():
        page.locator("[data-new]").click()
    expect(item(page, id_)).to_be_visible()
    return item(page, id_)


def expect_count(page: Page, count: int) -> None:
    """In the bar, in the list of views, in the title and in the icon: the same."""
    expect(page.locator(".topbar .stat", has_text="in your inbox").locator("b")).to_have_text(str(count))
    link = page.locator(".sidebar nav").get_by_role("link", name=re.compile("^Inbox"))
    expect(link.locator(".badge")).to_have_text(str(count)) if count else expect(link.locator(".badge")).to_have_count(0)
    expect(page).to_have_title(re.compile(rf"^\({count}\) " if count else r"^[^(]"))
    until(page, lambda: page.evaluate(IS_DOTTED) == (count > 0), "the icon says so, too")


def test_what_is_done_is_counted_no_more_in_any_browser_and_can_be_taken_back(open_view: OpenPage, page: Page) -> None:
    other, _ = open_view("#/inbox")
    expect(item(other, "dead:release-notes")).to_be_visible()
    expect_count(page, 1)
    item(page, "dead:release-notes").get_by_role("button", name="Done").click()
    expect(page.get_by_role("heading", name="Nothing needs you")).to_be_visible()
    expect_count(page, 0)
    other.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    other.reload()
    expect(other.get_by_role("heading", name="Nothing needs you")).to_be_visible()
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(item(page, "dead:release-notes")).to_be_visible()
    expect_count(page, 1)


def test_what_was_done_is_there_again_when_there_is_more_of_it(stage: Stage, page: Page) -> None:
    item(page, "dead:release-notes").get_by_role("button", name="Done").click()
    expect(page.get_by_role("heading", name="Nothing needs you")).to_be_visible()
    stage.send("Lead", "release-notes", "one more", ttl_ms=1)
    expect(item(page, "dead:release-notes")).to_contain_text("did not get 2 messages")


def test_a_request_is_put_off_and_brought_back(stage: Stage, page: Page) -> None:
    ask(stage, "Bob", "lint")
    page.locator("[data-new]").click()
    expect(card(page, "lint").locator("[data-press=approve]")).not_to_have_attribute("aria-disabled", "true")
    card(page, "lint").get_by_role("button", name="Later").click()
    page.get_by_role("menuitem", name="In an hour").click()
    expect(card(page, "lint")).to_have_count(0)
    expect_count(page, 1)
    page.get_by_role("tab", name="Later").click()
    later = page.locator('[data-later="lint"]')
    expect(later).to_contain_text("Bob asks to use Bash")
    expect(later).to_contain_text(re.compile(r"comes back .*\d\d:\d\d"))
    later.get_by_role("button", name="Bring it back now").click()
    page.get_by_role("tab", name="Open").click()
    expect(card(page, "lint")).to_be_visible()
    expect_count(page, 2)


def write(stage: Stage, body: str) -> None:
    message = {"to": "Ada", "body": body}
    httpx.post(f"{stage.url}/api/v1/messages", json=message, headers=stage.daemon.api_headers).raise_for_status()


def test_a_message_to_you_is_there_until_it_is_answered(stage: Stage, page: Page) -> None:
    write(stage, "Are you done?")
    you = stage.get("status")["you"]
    stage.send("Ada", you, "Shall I publish the docs?")
    stage.send("Ada", you, "They are ready.")
    found = show_new(page, "message:Ada")
    expect(found).to_contain_text("They are ready.")
    expect(found).to_contain_text("2 messages")
    write(stage, "Yes.")
    expect(found).to_have_count(0)


def test_a_budget_that_is_spent_is_in_it(stage: Stage, page: Page) -> None:
    budget = {"maxTotal": 0.5, "action": "alert"}
    httpx.post(f"{stage.url}/api/v1/costs/budget", json=budget, headers=stage.daemon.api_headers).raise_for_status()
    found = show_new(page, "budget:total")
    expect(found).to_contain_text("is spent")
    found.get_by_role("link", name="Costs and budget").click()
    expect(page.locator("main h1")).to_have_text("Costs")


def test_an_agent_whose_messages_wait_for_a_person_is_stuck(stage: Stage, page: Page) -> None:
    async def say(client: RelayClient) -> None:
        client.report("agent.state", state="starting", hold="prompt", holdDetail="its prompt is not to be seen")

    with stage.visitor("Unseen") as unseen:  # it takes no messages
        stage.send("Ada", "Unseen", "Are you there?")
        stage.run(say(unseen))
        expect(show_new(page, "stuck:Unseen")).to_contain_text("prompt was not recognised")
    expect(item(page, "stuck:Unseen")).to_have_count(0)


def test_by_keys_alone(stage: Stage, page: Page) -> None:
    ask(stage, "Bob", "lint")
    page.locator("[data-new]").click()
    page.keyboard.press("j")
    expect(item(page, "dead:release-notes")).to_be_focused()
    until(
        page,
        lambda: item(page, "dead:release-notes").locator("[data-press=done][aria-disabled=true]").count() == 0,
        "it has settled",
    )
    page.keyboard.press("e")
    expect(item(page, "dead:release-notes")).to_have_count(0)
    page.keyboard.press("u")
    expect(item(page, "dead:release-notes")).to_have_count(1)
    page.keyboard.press("k")
    page.keyboard.press("k")
    expect(card(page, "lint")).to_be_focused()
    page.keyboard.press("e")  # a request is decided, or put off
    expect(page.locator(".toast", has_text="goes away once it is decided")).to_be_visible()
    expect(card(page, "lint")).to_have_count(1)


def test_what_was_decided_says_who_and_when(stage: Stage, page: Page) -> None:
    ask(stage, "Bob", "ship")
    page.locator("[data-new]").click()
    card(page, "ship").locator("[data-press=approve]:not([aria-disabled=true])").click()
    page.get_by_role("tab", name="Decided").click()
    decided = page.locator('[data-decided="ship"]')
    expect(decided).to_contain_text("make ship")
    expect(decided).to_contain_text("Approved")
    expect(decided.locator(".decided-who")).to_contain_text("By")


def test_an_option_of_its_dialog_that_allows_more_is_chosen_by_its_words(stage: Stage, page: Page) -> None:
    always = "Yes, and don't ask again for make"
    ask(stage, "Bob", "wide", options=["Yes", always, "No"], widerOptions=[always])
    page.locator("[data-new]").click()
    chosen = card(page, "wide").get_by_role("button", name=always)
    expect(chosen).not_to_have_attribute("aria-disabled", "true")
    chosen.click()
    expect(card(page, "wide")).to_contain_text(f"Choosing “{always}”")
    expect(card(page, "wide")).to_have_count(0)
    assert stage.wait_for_event("permission.resolved", "wide")["reason"] == always
    page.get_by_role("tab", name="Decided").click()
    expect(page.locator('[data-decided="wide"]')).to_contain_text(always)


def test_a_rule_is_made_of_a_request_with_what_it_would_have_approved(stage: Stage, page: Page) -> None:
    for id_, command in (("r1", "make lint"), ("r2", "make build")):
        ask(stage, "Bob", id_, command=command)
        stage.wait_for_event("permission.requested", command)
    page.locator("[data-new='2']").click()
    card(page, "r2").get_by_role("button", name="Allow like this").click()
    dialog = page.get_by_role("dialog")
    past = dialog.locator(".rule-past")
    expect(past).to_have_attribute("data-count", "1")
    dialog.get_by_label("Command").fill("m*")
    expect(dialog.locator("[data-problem]")).to_contain_text("whole program")
    expect(dialog.get_by_role("button", name="Add the rule")).to_be_disabled()
    dialog.get_by_role("button", name="make *", exact=True).click()
    expect(past).to_contain_text("make lint")
    expect(past).to_have_attribute("data-count", "2")
    assert find_faults(page) == []
    dialog.get_by_role("button", name="Add the rule").click()
    expect(page.locator(".toast", has_text="config.toml")).to_be_visible()
    expect(card(page, "r2")).to_have_count(0)
    ask(stage, "Bob", "r3", command="make test")  # which nobody needs to see
    assert stage.wait_for_event("permission.resolved", "r3")["resolvedBy"] == "policy"
    page.get_by_role("tab", name="Decided").click()
    expect(page.locator('[data-decided="r3"] .decided-who')).to_have_text("By a rule: You allowed requests like this.")


def test_there_is_no_rule_for_what_can_destroy(stage: Stage, page: Page) -> None:
    ask(stage, "Bob", "destroys", command="rm -rf build")
    page.locator("[data-new]").click()
    expect(card(page, "destroys").locator("[data-press=approve]")).to_be_visible()
    expect(card(page, "destroys").locator("[data-press=rule]")).to_have_count(0)


def test_the_old_address_leads_to_it_and_it_fits_on_a_phone(open_view: OpenPage, stage: Stage) -> None:
    ask(stage, "Bob", "lint")
    page, _ = open_view("#/attention", viewport=PHONE, has_touch=True, is_mobile=True)
    expect(card(page, "lint")).to_be_visible()
    expect_to_fit(page)
