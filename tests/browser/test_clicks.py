"""What people come for, counted in clicks from the first view: docs/dashboard.md has the same numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.stage import Stage
from tests.browser.test_attention import ask, card

COUNT = "window.clicks = 0; addEventListener('click', (event) => { window.clicks += event.isTrusted; }, true);"
PAGE = (Path(__file__).parents[2] / "docs/dashboard.md").read_text()


def documented(task: str) -> int:
    found = re.search(rf"^\| {re.escape(task)} \| (\d) \|", PAGE, re.MULTILINE)
    assert found is not None, f"docs/dashboard.md does not count the clicks of: {task}"
    return int(found[1])


def clicks(page: Page) -> int:
    return int(page.evaluate("window.clicks"))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """With a CLI that can be started: what is not installed the page does not submit."""
    program = tmp_path_factory.mktemp("programs") / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    made = Stage()
    made.daemon.environ["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    with made:
        yield made


@pytest.fixture
def page(open_view: OpenPage) -> Page:
    page, _ = open_view("", script=COUNT)
    expect(page.locator("[data-connection=live]")).to_be_visible()
    expect(page.locator("body[data-loaded=all]")).to_be_visible()
    return page


def test_write_to_an_agent_and_see_that_it_was_taken(page: Page) -> None:
    page.locator("[data-agent=Bob]").click()
    page.get_by_label("Message", exact=True).click()
    page.keyboard.type("Are you there?")
    page.keyboard.press("Enter")
    message = page.locator(".message", has_text="Are you there?")
    expect(message.locator(".ticks.delivered, .ticks.read")).to_be_visible()
    assert clicks(page) == documented("Write to an agent and see that it was taken")


def test_approve_a_request(stage: Stage, page: Page) -> None:
    ask(stage, "Bob", "ship")
    expect(page.locator("[data-agent=Bob]")).to_contain_text("Asks: make ship")
    page.locator(".topbar").get_by_role("link", name="in your inbox").click()
    card(page, "ship").locator("[data-press=approve]:not([aria-disabled=true])").click()
    expect(card(page, "ship")).to_have_count(0)
    assert clicks(page) == documented("Approve a request")


def test_see_why_a_message_was_not_delivered(page: Page) -> None:
    page.locator(".sidebar").get_by_role("link", name="Dead letters").click()
    expect(page.locator(".letter-why").first).to_contain_text("was not there to get it")
    assert clicks(page) == documented("See why a message was not delivered")


def test_find_a_message(page: Page) -> None:
    page.get_by_label("Search in All messages").click()
    page.keyboard.type("base64url")
    expect(page.locator(".message mark").first).to_have_text("base64url")
    assert clicks(page) == documented("Find a message")


def test_start_an_agent(open_view: OpenPage) -> None:
    page, watched = open_view("", script=COUNT)
    watched.allows_network_errors = True  # the daemon refuses: there is no such directory
    expect(page.locator("body[data-loaded=all]")).to_be_visible()
    page.get_by_role("button", name="Start an agent").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Directory").fill("/nowhere")
    dialog.get_by_label("Task").fill("Look at the tests.")
    dialog.get_by_role("button", name="Start agent").click()
    expect(dialog.get_by_role("alert")).not_to_be_empty()
    assert clicks(page) == documented("Start an agent")
