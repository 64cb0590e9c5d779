"""One browser for all of these, and one daemon a module. Without Chromium they fail: it is a part of the set-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.stage import Stage, Watched, open_browser, open_page

OpenPage = Callable[..., tuple[Page, Watched]]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with open_browser() as started:
        yield started


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as made:
        yield made


@pytest.fixture
def open_view(browser: Browser, stage: Stage) -> Iterator[OpenPage]:
    """`open_view("#/attention", color_scheme="dark")`; what the pages did wrong fails the test at its end."""
    with ExitStack() as stack:

        def open_it(view: str = "", **options: Any) -> tuple[Page, Watched]:
            return stack.enter_context(open_page(browser, f"{stage.url}/{view}", **options))

        yield open_it


@pytest.fixture
def page(open_view: OpenPage) -> Page:
    return open_view()[0]
