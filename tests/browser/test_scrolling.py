"""A long conversation: it is read piece by piece in both directions, without a gap, and what is looked at stays where it is."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.stage import Stage, until

COUNT = 240
DEADLINE_S = 60.0
PAIR = "conversations/pair/Ada,Bob"
# The numbers of the messages that can be seen, of the many alone, and where the first of them is.
SEEN = """() => {
  const box = document.querySelector(".message-list").getBoundingClientRect();
  const rows = [...document.querySelectorAll(".message")].map((row) => [row, row.getBoundingClientRect()]);
  const seen = rows.filter(([, place]) => place.bottom > box.top + 4 && place.top < box.bottom - 4);
  const numbers = seen.map(([row]) => Number(row.textContent.match(/number (\\d+)/)[1])).filter((number) => number < COUNT);
  return { numbers, top: Math.round(seen[0]?.[1].top ?? 0) };
}""".replace("COUNT", str(COUNT))


@pytest.fixture(scope="module")
def ids(stage: Stage) -> list[str]:
    """Of the messages, which are of very different heights."""

    async def send() -> list[str]:
        bob = stage.scene.agents["Bob"]
        bodies = [
            f"number {number} " + "word " * (number * 37 % 160) + ("\n```python\nx = 1\n```" if number % 9 == 0 else "")
            for number in range(COUNT)
        ]
        found = []
        for start in range(0, COUNT, 50):
            found += await asyncio.gather(*(bob.send("Ada", body) for body in bodies[start : start + 50]))
        return [receipt.message_id for receipt in found]

    return stage.run(send())


@pytest.fixture
def long_page(visit: Visit, ids: list[str]) -> Page:
    page = visit(PAIR)
    expect(page.locator(".message").last).to_be_in_viewport()
    until(page, lambda: seen_in(page)["numbers"][-1:] == [COUNT - 1], "the newest of them")
    return page


def seen_in(page: Page) -> dict[str, Any]:
    """As it is in the next picture: whoever scrolls faster than the page can draw sees nothing for a moment."""
    return dict(page.evaluate(f"async () => {{ await new Promise(requestAnimationFrame); return ({SEEN})(); }}"))


def scroll_until(page: Page, number: int, by: int) -> None:
    """Until this one was reached or passed. What can be seen is without a gap at every moment."""
    deadline = time.monotonic() + DEADLINE_S
    page.locator(".message-list").hover()
    while True:
        page.mouse.wheel(0, by)
        numbers = seen_in(page)["numbers"]
        assert numbers == sorted(range(numbers[0], numbers[-1] + 1) if numbers else [])
        if numbers and (numbers[0] <= number if by < 0 else numbers[-1] >= number):
            return
        assert time.monotonic() < deadline, f"{numbers} is all that was reached"


def test_all_of_it_can_be_scrolled_to_and_little_is_in_the_page(long_page: Page) -> None:
    scroll_until(long_page, 0, -900)
    assert long_page.locator(".message").count() < 80
    scroll_until(long_page, COUNT - 1, 900)


def test_what_is_looked_at_stays_in_its_place_while_older_messages_are_read(long_page: Page) -> None:
    top = "() => document.querySelector('.message-list').scrollTop"
    long_page.evaluate("() => { document.querySelector('.message-list').scrollTop = 0; }")
    oldest = seen_in(long_page)["numbers"][0]
    assert oldest > 0, "there is more above it"
    until(long_page, lambda: long_page.evaluate(top) >= 1_000, "as high as what was put above it")
    assert _wait_until_steady(long_page)["numbers"][0] == oldest


def test_what_is_looked_at_stays_in_its_place_while_messages_come(long_page: Page, stage: Stage) -> None:
    scroll_until(long_page, COUNT - 60, -900)
    before = _wait_until_steady(long_page)
    message = stage.send("Ada", "Bob", f"number {COUNT + 1_000}: this comes at the end")
    expect(long_page.locator(".conversation[aria-current] .last")).to_contain_text("this comes at the end")
    assert _wait_until_steady(long_page) == before
    long_page.get_by_role("button", name="Newest").click()
    expect(long_page.locator(f'[data-message="{message}"]')).to_be_in_viewport()


def _wait_until_steady(page: Page) -> dict[str, Any]:
    """What is seen, as soon as it is the same twice, a moment apart: a wheel goes on for a while."""
    script = f"""async () => {{
      for (let before = "", now = ""; ; before = now) {{
        now = JSON.stringify(({SEEN})());
        if (now === before) return JSON.parse(now);
        await new Promise((resolve) => setTimeout(resolve, 200));
      }}
    }}"""
    return dict(page.evaluate(script))


def test_a_list_that_is_gone_may_still_be_told_that_it_was_scrolled(long_page: Page, stage: Stage) -> None:
    long_page.evaluate("window.gone = document.querySelector('.message-list')")
    long_page.goto(f"{stage.url}/#/inbox")
    expect(long_page.locator(".message-list")).to_have_count(0)
    told = """() => {
      const wrong = [];
      addEventListener("error", (event) => wrong.push(event.message), { once: true });
      gone.dispatchEvent(new Event("scroll"));
      return wrong;
    }"""
    assert long_page.evaluate(told) == []


def test_a_link_leads_to_a_message_in_the_middle_and_on_from_there(visit: Visit, stage: Stage, ids: list[str]) -> None:
    middle = COUNT // 2
    page = visit(f"{PAIR}?at={ids[middle]}")
    expect(page.locator(f'[data-message="{ids[middle]}"]')).to_be_in_viewport()
    expect(page.get_by_role("button", name="Newest")).to_be_visible()
    scroll_until(page, middle - 40, -900)
    scroll_until(page, COUNT - 1, 900)
    page.get_by_label("Message", exact=True).fill("number 5000: written at the end")
    page.keyboard.press("Enter")
    page.goto(f"{stage.url}/#/conversations/all")
    expect(page.locator(".message").last).to_contain_text("number 5000")
