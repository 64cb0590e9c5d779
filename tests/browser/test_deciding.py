"""From the page to a program in a real terminal and back: started with a task, it asks; a person decides; it goes on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.stage import open_page
from tests.integration.http_api.scene import ASKS, TASK, Scene
from tests.integration.stage import until


@pytest.fixture
def scene() -> Iterator[Scene]:
    folder = Path(tempfile.mkdtemp(prefix="relay-w-"))  # a short one: sockets are in it
    made = Scene(folder, ASKS)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(("button", "option", "shown"), [("approve", "Yes", "it was allowed"), ("deny", "No", "it was refused")])
def test_it_is_started_asks_and_goes_on(browser: Browser, scene: Scene, button: str, option: str, shown: str) -> None:
    with open_page(browser, f"{scene.server.url}/", scene.server.daemon) as (page, _):
        page.get_by_role("button", name="Start an agent").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_text("other").click()
        dialog.get_by_label("Program").fill(scene.program)
        dialog.get_by_label("Name").fill("Bob")
        dialog.get_by_label("Task").fill(TASK)
        dialog.get_by_role("button", name="Start agent").click()
        page.get_by_text("Bob is starting.").wait_for(timeout=60_000)
        page.goto(f"{scene.server.url}/#/inbox")
        card = page.locator("[data-request]")
        card.wait_for(timeout=60_000)
        expect(card).to_contain_text("Do you want to proceed?")
        card.locator(f"[data-press={button}]").click()
        expect(card).to_have_count(0)
        until(lambda: scene.chosen() == [option], "the program is told")
        page.goto(f"{scene.server.url}/#/terminals?agents=Bob")
        expect(page.locator("[data-terminal=Bob] .xterm-rows")).to_contain_text(shown)
        if button == "approve":
            page.goto(f"{scene.server.url}/#/conversations/agent/Bob")
            expect(page.locator(".message").last).to_contain_text("went on")
