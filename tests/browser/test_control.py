"""What is done to agents from the page: started, paused, typed to, stopped; and a message that did not arrive, sent again."""

from __future__ import annotations

import httpx
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, Visit
from tests.browser.echo import is_paused, open_api, open_echo, screen
from tests.browser.stage import Stage
from tests.integration.stage import until


def test_starting_an_agent_says_what_is_wrong(open_view: OpenPage) -> None:
    page, watched = open_view()
    watched.allows_network_errors = True
    page.get_by_role("button", name="Start an agent").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("other").click()
    dialog.get_by_label("Program").fill("no-such-program")
    dialog.get_by_label("Name").fill("Newcomer")
    dialog.get_by_role("button", name="Start agent").click()
    expect(dialog.get_by_role("alert")).not_to_be_empty()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_dead_letter_is_sent_again(visit: Visit) -> None:
    page = visit("dead-letters")
    letter = page.locator(".letter", has_text="Are you there?").first
    letter.get_by_role("button", name="Send again to release-notes").click()
    expect(page.get_by_text("1 message sent again.")).to_be_visible()


def test_agents_are_paused_typed_to_and_stopped(visit: Visit, stage: Stage) -> None:
    with open_echo(stage) as echo, open_api(stage) as http:
        pause_type_and_stop(visit(f"terminals?agents={echo}&select=agent:{echo}"), http, echo)


def pause_type_and_stop(page: Page, http: httpx.Client, echo: str) -> None:
    details = page.locator(".details")
    details.get_by_role("button", name="Pause").click()
    until(is_paused(http, echo), "it is paused")
    details.get_by_role("button", name="Resume").click()
    until(lambda: not is_paused(http, echo)(), "it goes on")
    details.get_by_role("button", name="Type into it…").click()
    page.get_by_label("Text").fill("from a dialog")
    page.get_by_role("button", name="Type", exact=True).click()
    expect(screen(page, echo)).to_contain_text("got 'from a dialog'")
    details.get_by_role("button", name="Stop…").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert http.get(f"/agents/{echo}").json()["connected"]
    details.get_by_role("button", name="Stop…").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    until(lambda: not http.get(f"/agents/{echo}").json()["connected"], "it has ended")
