"""One daemon a module; the browser is that of all tests. Without Chromium they fail: it is a part of the set-up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.stage import Stage, Watched, open_page
from tests.browser.visits import Visits

OpenPage = Callable[..., tuple[Page, Watched]]
Visit = Callable[..., Page]

# Those that take longest, so that no worker is alone with one of them at the end.
FIRST = ("deciding", "terminals", "connection", "control", "costs", "timeline", "accessibility", "conversations", "load")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {f"test_{name}.py": place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path.name, len(FIRST)))


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as made:
        yield made


@pytest.fixture
def open_view(browser: Browser, stage: Stage) -> Iterator[OpenPage]:
    """`open_view("#/inbox", color_scheme="dark")`: a new page. What the pages did wrong fails the test at its end."""
    with ExitStack() as stack:

        def open_it(view: str = "", **options: Any) -> tuple[Page, Watched]:
            return stack.enter_context(open_page(browser, f"{stage.url}/{view}", stage.daemon, **options))

        yield open_it


@pytest.fixture(scope="module")
def visits(browser: Browser, stage: Stage) -> Iterator[Visits]:
    made = Visits(browser, stage)
    yield made
    made.close()


@pytest.fixture
def visit(visits: Visits, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """`visit("inbox", color_scheme="dark")`: a page that the tests of a module share, in another view than before."""
    failed = request.session.testsfailed
    yield visits.visit
    visits.check(has_failed=request.session.testsfailed > failed)


@pytest.fixture
def page(visit: Visit) -> Page:
    return visit("conversations/all")
