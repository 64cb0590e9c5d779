"""The second line of an agent: what it does, what it asks, since when it is idle; and nobody changes places under the pointer."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.stage import Stage, until
from tests.browser.test_attention import ask


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage(asks=False) as made:
        yield made


@pytest.fixture
def page(open_view: OpenPage) -> Page:
    page, _ = open_view("#/conversations/all")
    expect(page.locator("[data-connection=live]")).to_be_visible()
    expect(line(page, "Bob")).to_be_visible()
    return page


def line(page: Page, agent: str) -> Locator:
    return page.locator(f"[data-agent={agent}] [data-activity]")


def names(page: Page) -> list[str]:
    return list(page.locator(".agents [data-agent]").evaluate_all("(rows) => rows.map((row) => row.dataset.agent)"))


def test_it_says_what_an_agent_does_as_it_does_it(stage: Stage, page: Page) -> None:
    stage.report("Bob", "agent.state", state="working")
    stage.report("Bob", "file.operation", operation="edit", filePath="/srv/shop/src/auth.py")
    expect(line(page, "Bob")).to_have_text("Editing src/auth.py")
    stage.report("Bob", "command.executed", command="make test", exitCode=0, duration=5)
    expect(line(page, "Bob")).to_have_text("Ran make test")
    page.reload()
    expect(line(page, "Bob")).to_have_text("Ran make test")  # the daemon knows it, too
    stage.report("Bob", "agent.state", state="idle")
    expect(line(page, "Bob")).to_have_text(re.compile(r"^Idle since \d\d:\d\d$"))


def test_it_says_what_an_agent_asks(stage: Stage, page: Page) -> None:
    ask(stage, "Bob", "ship")
    expect(line(page, "Bob")).to_have_text("Asks: make ship")


def test_the_model_is_in_the_details_and_not_in_the_list(stage: Stage, page: Page) -> None:
    page.locator("[data-agent=Bob]").click()
    expect(page.locator(".details .facts", has_text="Model")).to_contain_text("gpt-5.3-codex")
    expect(page.locator("[data-agent=Bob]")).not_to_contain_text("gpt-5.3-codex")


def test_nobody_changes_places_under_the_pointer(stage: Stage, page: Page) -> None:
    page.locator(".agents [data-agent]").nth(1).hover()
    before = names(page)
    ask(stage, before[-2], "late")
    expect(line(page, before[-2])).to_have_text("Asks: make late")
    assert names(page) == before
    page.mouse.move(800, 500)
    until(page, lambda: names(page)[0] == before[-2], "whoever asks is first")
