"""What waits for a person: decided by click and by key, gone when it was decided elsewhere, and never HTML.

How the list keeps still under whoever reads it is in `tests/security/test_approving.py`.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Visit
from tests.browser.stage import Stage, until

LOOK = "(button) => [getComputedStyle(button).backgroundColor, getComputedStyle(button).color]"
CURRENT = re.compile(r"\bcurrent\b")
HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'


def ask(stage: Stage, agent: str, id_: str, **fields: object) -> None:
    said = {"tool": "Bash", "command": f"make {id_}", "description": f"Run make {id_}?", "options": ["Yes", "No"]} | fields
    stage.report(agent, "permission.requested", requestId=id_, isExact=True, **said)


def card(page: Page, id_: str) -> Locator:
    return page.locator(f'[data-request="{id_}"]')


def show(page: Page, id_: str) -> Locator:
    """The card of a request that has just been made, once it is shown: where others are being read, it waits to be asked for."""
    news = page.locator("[data-new]")

    def is_shown() -> bool:
        if not card(page, id_).count() and news.count():  # others may have arrived before it
            news.click()
        return card(page, id_).count() > 0

    until(page, is_shown, f"{id_} is shown")
    card(page, id_).wait_for()
    return card(page, id_)


@pytest.fixture
def page(visit: Visit) -> Page:
    found = visit("inbox")
    expect(found.locator("[data-connection=live]")).to_be_visible()
    return found


def test_it_is_approved_by_a_click_and_the_title_counts(stage: Stage, page: Page) -> None:
    ask(stage, "Bob", "install")
    expect(show(page, "install")).to_contain_text("make install")
    expect(page).to_have_title(re.compile(r"^\(\d+\) \S+ · Agent Relay$"))
    card(page, "install").locator("[data-press=approve]").click()
    expect(card(page, "install")).to_have_count(0)
    expect(page.get_by_text("Approved for Bob.")).to_be_visible()


def test_it_is_denied_with_a_reason_by_keys_alone(stage: Stage, page: Page) -> None:
    ask(stage, "Bob", "lint")
    show(page, "lint")
    cards = page.locator("[data-request]")
    for _ in range(cards.count()):
        page.keyboard.press("k")
    expect(cards.first).to_have_class(CURRENT)
    for place in range(1, 1 + cards.evaluate_all("(cards) => cards.findIndex((card) => card.dataset.request === 'lint')")):
        page.keyboard.press("j")
        expect(cards.nth(place)).to_have_class(CURRENT)
    expect(card(page, "lint")).to_have_class(CURRENT)
    expect(card(page, "lint").locator("[data-press=deny]")).to_be_enabled()
    page.keyboard.type("rNot now, please.")  # without a pause: no letter of it may be taken for a shortcut
    expect(card(page, "lint").get_by_label("Reason")).to_have_value("Not now, please.")
    page.keyboard.press("Tab")  # to "Approve", and then to "Deny"
    page.keyboard.press("Tab")
    expect(page.locator(".request.current [data-press=deny]")).to_be_focused()
    page.keyboard.press("Enter")
    expect(card(page, "lint")).to_have_count(0)
    assert stage.wait_for_event("permission.resolved", "lint")["resolution"] == "denied"


def test_what_is_critical_is_asked_twice(stage: Stage, page: Page) -> None:
    ask(stage, "Bob", "wipe", command="rm -rf build")
    expect(show(page, "wipe")).to_contain_text("Critical")
    approve, deny = (card(page, "wipe").locator(f"[data-press={what}]").evaluate(LOOK) for what in ("approve", "deny"))
    assert approve[0] not in deny, "nobody tells them apart"
    card(page, "wipe").locator("[data-press=approve]").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("rm -rf build")
    page.keyboard.press("Escape")
    expect(card(page, "wipe")).to_be_visible()
    card(page, "wipe").locator("[data-press=deny]").click()
    expect(card(page, "wipe")).to_have_count(0)


def test_one_that_was_decided_elsewhere_goes_away_at_once(stage: Stage, page: Page) -> None:
    ask(stage, "Bob", "deploy")
    show(page, "deploy")
    stage.report("Bob", "permission.resolved", requestId="deploy", resolution="denied", resolvedBy="person")
    expect(card(page, "deploy")).to_have_count(0)


def test_a_question_is_answered_by_its_number_or_in_own_words(stage: Stage, page: Page) -> None:
    for id_ in ("colour", "size"):
        stage.report("Ada", "question.requested", questionId=id_, question=f"Which {id_}?", options=["the first", "the second"])
        show(page, id_)
    expect(card(page, "colour").locator("[data-press=answer-2]")).to_be_enabled()
    card(page, "colour").locator(".asked").click()
    page.keyboard.press("2")
    expect(card(page, "colour")).to_have_count(0)
    card(page, "size").get_by_label("Another answer").fill("neither")
    expect(card(page, "size").locator("[data-press=answer-2]")).to_be_enabled()
    page.keyboard.press("Enter")
    expect(card(page, "size")).to_have_count(0)


def test_html_in_a_request_stays_text(stage: Stage, page: Page) -> None:
    ask(stage, "Bob", "hostile", tool=HOSTILE, command=HOSTILE, description=HOSTILE)
    expect(show(page, "hostile").locator(".command")).to_have_text(HOSTILE)
    expect(card(page, "hostile").locator("img, script")).to_have_count(0)
    card(page, "hostile").locator("[data-press=deny]").click()
    expect(card(page, "hostile")).to_have_count(0)
