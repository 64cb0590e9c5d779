"""Threads: one that began as an answer begins with what was answered, and is called by its words."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.stage import PHONE, Stage, box_of


def test_a_thread_begins_with_the_message_that_was_answered(visit: Visit, stage: Stage) -> None:
    asked = stage.send("Alice", "Bob", "Which **port** is it?")
    stage.send("Bob", "Alice", "It is 8080.", thread=asked)
    page = visit(f"conversations/thread/{asked}")
    expect(page.locator(".message")).to_have_count(2)
    expect(page.locator(".message").first).to_contain_text("Which port is it?")
    expect(page.locator(".conversation-view h1")).to_have_text("Alice: Which port is it?")
    stage.send("Alice", "Bob", "Thanks.", thread=asked)
    expect(page.locator(".message")).to_have_count(3)
    expect(page.locator(".message").last).to_contain_text("Thanks.")


def test_two_threads_of_one_minute_are_told_apart(visit: Visit, stage: Stage) -> None:
    for words in ("Is the cache cold?", "Is the queue empty?"):
        stage.send("Bob", "Alice", "Yes.", thread=stage.send("Alice", "Bob", words))
    page = visit("conversations/all")
    for words in ("Is the cache cold?", "Is the queue empty?"):
        expect(page.locator(".conversation", has=page.get_by_text(f"Alice: {words}", exact=True))).to_have_count(1)


def test_on_a_phone_send_is_on_the_screen_in_a_thread(visit: Visit, stage: Stage) -> None:
    asked = stage.send(
        "Alice", "Bob", "A question with so many words that its name is longer than the whole screen is wide, and longer."
    )
    stage.send("Bob", "Alice", "Yes.", thread=asked)
    page = visit(f"conversations/thread/{asked}", viewport=PHONE, has_touch=True, is_mobile=True)
    expect(page.locator(".composer .badge")).to_contain_text("A question with")
    place = box_of(page, page.locator(".composer").get_by_role("button", name="Send"))
    assert place["x"] >= 0
    assert place["x"] + place["width"] <= PHONE["width"]
