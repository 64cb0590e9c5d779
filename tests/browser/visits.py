"""Pages that stay open from test to test, as a person's do: to load one takes ten times as long as to go to another view."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.browser.stage import Stage, Watched, open_page

BETWEEN = "dead-letters"  # a view with little in it: what was begun in the last one is gone then


class Visits:
    """One page for each set of options, of one stage."""

    def __init__(self, browser: Browser, stage: Stage) -> None:
        self._browser = browser
        self._stage = stage
        self._stack = ExitStack()
        self._open: dict[str, tuple[Page, Watched]] = {}

    def visit(self, view: str, **options: Any) -> Page:
        """The page, as it is after coming to `#/view` from another view."""
        key = json.dumps(options, sort_keys=True)
        url = f"{self._stage.url}/#/"
        if key not in self._open:
            self._open[key] = self._stack.enter_context(open_page(self._browser, f"{url}{view}", self._stage.daemon, **options))
            return self._open[key][0]
        page, _ = self._open[key]
        page.goto(f"{url}{BETWEEN}")
        expect(page.locator(f"body[data-view={BETWEEN}] main h1")).to_be_visible()
        page.goto(f"{url}{view}")
        return page

    def check(self, *, has_failed: bool) -> None:
        """After a test: what the pages did wrong fails it, and the next one does not inherit what went wrong."""
        try:
            for _, watched in self._open.values():
                watched.check()
        except AssertionError:
            has_failed = True
            raise
        finally:
            if has_failed:
                self.close()

    def close(self) -> None:
        self._open.clear()
        self._stack.close()
