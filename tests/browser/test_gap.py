"""Nothing is missing that was said while the page was being read, however slowly that goes."""

from __future__ import annotations

import httpx
from playwright.sync_api import APIResponse, Route, expect

from tests.browser.conftest import OpenPage
from tests.browser.stage import Stage
from tests.integration.stage import until

MESSAGES = "**/api/v1/messages?*"
EXCHANGED = {"types": "message.exchanged", "limit": "1000"}
STATUS = "**/api/v1/status"


def test_what_is_said_while_the_messages_are_read(open_view: OpenPage, stage: Stage) -> None:
    page, _ = open_view("#/attention")
    expect(page.locator("[data-connection=live]")).to_be_visible()
    held: list[tuple[Route, APIResponse]] = []
    page.route(MESSAGES, lambda route: held.append((route, route.fetch())))  # answered, and under way
    page.evaluate("location.hash = '#/conversations/pair/Ada,Bob'")
    until(lambda: page.wait_for_timeout(20) or held, "the page asks")  # its requests are told while it waits
    sent = stage.send("Ada", "Bob", "said meanwhile")
    expect(page.locator(".conversation", has_text="said meanwhile")).to_be_visible()  # the stream has told it
    for route, answer in held:
        route.fulfill(response=answer)
    expect(page.locator(f'[data-message="{sent}"]')).to_have_count(1)


def test_what_is_said_before_the_stream_begins(open_view: OpenPage, stage: Stage) -> None:
    page, _ = open_view("#/attention")
    held: list[Route] = []
    page.route(STATUS, lambda route: held.append(route))  # noqa: PLW0108 - Playwright looks into it
    page.goto(f"{stage.url}/?#/conversations/all")
    expect(page.locator(".message").first).to_be_visible()
    sent = stage.send("Ada", "Bob", "said before the stream")
    until(lambda: sent in httpx.get(f"{stage.url}/api/v1/events", params=EXCHANGED, timeout=60).text, "it is among the events")
    for route in held:
        route.continue_()
    page.unroute(STATUS)
    expect(page.locator("[data-connection=live]")).to_be_visible()
    expect(page.locator(f'[data-message="{sent}"]')).to_have_count(1)
