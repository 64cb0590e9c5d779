"""Nothing is missing that was said while the page was being read, however slowly that goes."""

from __future__ import annotations

from playwright.sync_api import APIResponse, Page, Route, expect

from tests.browser.conftest import OpenPage
from tests.browser.stage import NO_PAGE, Stage, until

MESSAGES = "**/api/v1/messages?*"
STATUS = "**/api/v1/status"


class Held:
    """Requests of the page that are under way: on their way back with an answer, where `answered`, else on their way there."""

    def __init__(self, page: Page, address: str, *, answered: bool) -> None:
        self.routes: list[tuple[Route, APIResponse | None]] = []
        self._answered = answered
        self._is_holding = True
        page.route(address, self._take)

    def _take(self, route: Route) -> None:
        if self._is_holding:
            self.routes.append((route, route.fetch() if self._answered else None))
        else:
            route.continue_()

    def release(self) -> None:
        self._is_holding = False
        for route, answer in self.routes:
            if answer is None:
                route.continue_()
            else:
                route.fulfill(response=answer)


def test_what_is_said_while_the_messages_are_read(open_view: OpenPage, stage: Stage) -> None:
    page, _ = open_view("#/inbox")
    expect(page.locator("[data-connection=live]")).to_be_visible()
    held = Held(page, MESSAGES, answered=True)
    page.evaluate("location.hash = '#/conversations/pair/Ada,Bob'")
    until(page, lambda: held.routes, "the page asks")
    sent = stage.send("Ada", "Bob", "said meanwhile")
    expect(page.locator(".conversation", has_text="said meanwhile")).to_be_visible()  # the stream has told it
    held.release()
    expect(page.locator(f'[data-message="{sent}"]')).to_have_count(1)


def test_what_is_said_before_the_stream_begins(open_view: OpenPage, stage: Stage) -> None:
    page, _ = open_view(NO_PAGE)
    held = Held(page, STATUS, answered=False)
    page.goto(f"{stage.url}/#/conversations/all")
    expect(page.locator(".message").first).to_be_visible()
    until(page, lambda: held.routes, "the page asks where the stream is to begin")
    sent = stage.send("Ada", "Bob", "said before the stream")
    stage.wait_for_event("message.exchanged", sent)
    held.release()
    expect(page.locator("[data-connection=live]")).to_be_visible()
    expect(page.locator(f'[data-message="{sent}"]')).to_have_count(1)
