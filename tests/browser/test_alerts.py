"""Whoever looks elsewhere is told, where that was asked for: by a sound, and by a notification while the page is not seen."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.browser.stage import Stage, Watched, open_page, until
from tests.browser.test_attention import ask, card, show

# What is heard and shown is noted, and still done. A page of a browser without windows is never hidden: `isAway` says so instead.
NOTE = """
  window.heard = [];
  window.shown = [];
  const start = AudioScheduledSourceNode.prototype.start;
  AudioScheduledSourceNode.prototype.start = function (...when) {
    heard.push(this.frequency.value);
    return start.apply(this, when);
  };
  window.Notification = class extends Notification {
    constructor(title, about) {
      super(title, about);
      shown.push([title, about.body, about.tag]);
    }
  };
  window.isAway = false;
  Object.defineProperty(document, "hidden", { get: () => window.isAway });
"""
SOUND = [660, 880]


def open_attention(browser: Browser, stage: Stage, **options: Any) -> AbstractContextManager[tuple[Page, Watched]]:
    return open_page(browser, f"{stage.url}/#/inbox", stage.daemon, script=NOTE, **options)


def wait_until_live(page: Page) -> None:
    expect(page.locator("[data-connection=live]")).to_be_visible()
    expect(page.locator("[data-request]").first).to_be_visible()


def choose(page: Page, label: str) -> None:
    page.get_by_role("button", name="Alerts").click()
    page.get_by_role("menuitem", name=label).click()


def show_notifications(page: Page) -> None:
    """The browser is asked first, so the choice is made a moment after the click."""
    choose(page, "Show notifications")
    page.get_by_role("button", name="Alerts").click()
    expect(page.get_by_role("menuitem", name="Notifications are on")).to_be_visible()
    page.keyboard.press("Escape")


def heard(page: Page) -> list[int]:
    return list(page.evaluate("heard.splice(0)"))


def shown(page: Page) -> list[list[str]]:
    return list(page.evaluate("shown.splice(0)"))


def ask_meanwhile(page: Page, stage: Stage, id_: str, *, away: bool) -> None:
    """What is told is told before the card is there."""
    page.evaluate("(away) => { window.isAway = away; }", away)
    ask(stage, "Bob", id_)
    show(page, id_)
    page.evaluate("window.isAway = false")


def test_whoever_asked_for_it_and_nobody_else_hears_and_sees_what_is_new(browser: Browser, stage: Stage) -> None:
    with open_attention(browser, stage, permissions=["notifications"]) as (page, _):
        wait_until_live(page)
        page.locator("main h1").click()  # else no page may make a sound
        ask_meanwhile(page, stage, "unasked", away=True)
        assert (heard(page), shown(page)) == ([], [])
        choose(page, "Play a sound")
        until(page, lambda: heard(page) == SOUND, "it is played once, to be known again")
        show_notifications(page)
        ask_meanwhile(page, stage, "seen", away=False)
        assert (heard(page), shown(page)) == (SOUND, [])  # whoever looks at it needs no notification
        ask_meanwhile(page, stage, "elsewhere", away=True)
        assert heard(page) == SOUND
        assert shown(page) == [["Bob asks to use Bash", "make elsewhere", "elsewhere"]]
        page.evaluate("window.isAway = true")
        stage.report("Ada", "question.requested", questionId="which", question="Which one?", options=["this", "that"])
        show(page, "which")
        assert (heard(page), shown(page)) == (SOUND, [["Ada asks", "Which one?", "which"]])


def test_the_choice_is_kept_and_what_was_there_before_is_no_news(browser: Browser, stage: Stage) -> None:
    ask(stage, "Bob", "before")
    with open_attention(browser, stage, permissions=["notifications"]) as (page, _):
        wait_until_live(page)
        choose(page, "Play a sound")
        show_notifications(page)
        page.reload()
        wait_until_live(page)
        expect(card(page, "before")).to_have_count(1)
        page.get_by_role("button", name="Alerts").click()
        for label in ("Sound is on", "Notifications are on"):
            expect(page.get_by_role("menuitem", name=label)).to_be_visible()
        page.keyboard.press("Escape")
        ask_meanwhile(page, stage, "after", away=True)
        assert (heard(page), [tag for _, _, tag in shown(page)]) == (SOUND, ["after"])
        choose(page, "Sound is on")
        choose(page, "Notifications are on")
        ask_meanwhile(page, stage, "quiet", away=True)
        assert (heard(page), shown(page)) == ([], [])


def test_a_browser_that_shows_none_is_told_of(browser: Browser, stage: Stage) -> None:
    with open_attention(browser, stage) as (page, _):
        wait_until_live(page)
        choose(page, "Show notifications")
        expect(page.get_by_text("The browser blocks notifications from this page.")).to_be_visible()
        page.get_by_role("button", name="Alerts").click()
        expect(page.get_by_role("menuitem", name="Show notifications")).to_be_visible()
