"""A past session played again: the steps in their order, the scrubber, and the recorded terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.stage import Stage, until


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """With an agent that has done something of every kind."""
    with Stage() as made:
        do_something(made)
        yield made


def do_something(stage: Stage) -> None:
    stage.send("Bob", "Alice", "Please *review* <b>auth.py</b>.")
    stage.report("Alice", "item.started", itemId="i1", itemType="tool_call", startedAt=1)
    stage.report("Alice", "item.delta", itemId="i1", delta={"type": "text", "content": "reading auth.py"})
    stage.report("Alice", "item.completed", itemId="i1", completedAt=2, duration=1_500)
    stage.report("Alice", "command.executed", command="pytest -q", exitCode=1, duration=900, stdout="1 failed")
    stage.wait_for_event("command.executed", "pytest -q")


@pytest.fixture
def played(visit: Visit) -> Page:
    """That agent's session."""
    page = visit("replay")
    page.locator(".rp-session", has_text="Alice").click()
    page.locator(".rp-bar").wait_for()
    return page


def steps_so_far(page: Page) -> int:
    return int(page.locator(".rp-times > :nth-child(2)").inner_text().split(" of ")[0])


def test_what_was_said_and_done_comes_in_order_and_can_be_scrubbed(played: Page) -> None:
    page = played
    scrubber = page.get_by_label("Replay position")
    scrubber.focus()
    page.keyboard.press("End")
    steps = page.locator(".rp-step")
    expect(steps.filter(has_text="pytest -q").last).to_contain_text("exit 1")
    expect(steps.filter(has_text="reading auth.py").last).to_contain_text("2 s")
    message = steps.filter(has_text="Please review <b>auth.py</b>.").last
    expect(message.locator("em")).to_have_text("review")
    page.keyboard.press("Home")
    expect(steps.filter(has_text="pytest -q")).to_have_count(0)
    page.locator("h1").click()
    first = steps_so_far(page)
    page.keyboard.press("ArrowRight")
    until(page, lambda: steps_so_far(page) > first, "the next step")
    page.keyboard.press("ArrowLeft")
    until(page, lambda: steps_so_far(page) == first, "the step before")


def test_it_plays_faster_or_slower_to_its_end(played: Page) -> None:
    page = played
    page.get_by_label("Speed").select_option("100")
    page.get_by_label("Replay position").focus()
    page.keyboard.press("Home")
    expect(page.locator(".rp-step", has_text="pytest -q")).to_have_count(0)
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".rp-step", has_text="pytest -q").last).to_be_visible()
    expect(page.get_by_role("button", name="Play")).to_be_visible()  # it stops at the end
    page.locator("h1").click()
    page.keyboard.press("<")
    expect(page.get_by_label("Speed")).to_have_value("30")


def test_a_recording_is_shown_at_the_same_moment(played: Page, tmp_path: Path) -> None:
    page = played
    file = tmp_path / "alice.cast"
    began = int(time.time()) - 3_600
    lines: list[Any] = [
        {"version": 2, "width": 60, "height": 10, "timestamp": began},
        [0.0, "o", "\x1b[31mfirst <i>line</i>\x1b[0m\r\n"],
    ]
    file.write_text("\n".join(map(json.dumps, lines)) + '\n[5000.0, "o", "never \n')
    page.locator("input[type=file]").set_input_files(file)
    screen = page.locator(".rp-screen .xterm-rows")
    page.get_by_label("Replay position").focus()
    page.keyboard.press("End")
    expect(screen).to_contain_text("first <i>line</i>")
    page.get_by_role("button", name="Close terminal").click()
    expect(page.locator(".rp-screen")).to_have_count(0)
    file.write_text("not a recording")
    page.locator("input[type=file]").set_input_files(file)
    expect(page.locator(".toast")).to_contain_text("not a recording")


def test_a_time_of_all_agents_is_played_from_the_timeline(visit: Visit) -> None:
    page = visit("timeline")
    page.get_by_role("link", name="Replay this time").click()
    expect(page.locator("h1")).to_have_text("All agents")
    page.get_by_label("Replay position").focus()
    page.keyboard.press("End")
    expect(page.locator(".rp-step").last).to_be_visible()
