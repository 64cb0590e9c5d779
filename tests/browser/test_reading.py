"""Reading: in any direction, by one clock, on paper, by keys, and by ear; and links that are not what they seem."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, Visit
from tests.browser.stage import Stage, until
from tests.browser.test_attention import ask

TWELVE_HOURS = re.compile(r"\d\s*[AP]M\b")
DIRECTION = "(place) => getComputedStyle(place).direction"


def shown(page: Page, id_: str) -> str:
    return f'[data-message="{id_}"]'


def test_each_paragraph_is_in_the_direction_of_its_own_letters(visit: Visit, stage: Stage) -> None:
    id_ = stage.send("Ada", "Bob", "שלום, זה מוכן.\n\nAnd this is English.\n\n```\nx = 1\n```")
    page = visit("conversations/pair/Ada,Bob")
    message = page.locator(shown(page, id_))
    expect(message).to_contain_text("English")
    directions = [message.locator(".prose > *").nth(at).evaluate(DIRECTION) for at in range(3)]
    assert directions == ["rtl", "ltr", "ltr"]


def test_there_is_one_clock_of_24_hours(open_view: OpenPage, stage: Stage) -> None:
    id_ = stage.send("Ada", "Bob", "what time is it?")
    page, _ = open_view("#/conversations/pair/Ada,Bob", locale="en-US", timezone_id="Asia/Tokyo")
    moment = page.locator(shown(page, id_)).locator("time")
    expect(moment).to_have_text(re.compile(r"^\d\d:\d\d$"))
    assert not TWELVE_HOURS.search(moment.get_attribute("title") or "")
    page.goto(f"{stage.url}/#/timeline?as=table")
    expect(page.locator(".tl-row").first).to_be_visible()
    assert not TWELVE_HOURS.search(page.locator("main").inner_text())


def test_a_link_that_shows_another_host_than_it_leads_to_asks_first(visit: Visit, stage: Stage) -> None:
    lying, honest = "[bank.example](https://evil.invalid/login)", "[the docs](https://docs.invalid/x)"
    id_ = stage.send("Ada", "Bob", f"See {lying} and {honest} and [auth.py](https://git.invalid/auth.py).")
    page = visit("conversations/pair/Ada,Bob")
    message = page.locator(shown(page, id_))
    opened: list[str] = []
    page.context.route("**/*.invalid/**", lambda route: route.abort())
    page.on("popup", lambda popup: opened.append(popup.url))
    message.get_by_role("link", name="bank.example").click()
    asked = page.get_by_role("dialog", name="This link leads somewhere else")
    expect(asked).to_contain_text("https://evil.invalid/login")
    asked.get_by_role("button", name="Cancel").click()
    expect(asked).to_have_count(0)
    assert opened == []
    for name in ("the docs", "auth.py"):
        with page.expect_popup() as popup:
            message.get_by_role("link", name=name).click()
        popup.value.close()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_many_agents_are_one_stop_of_the_tab_key(visit: Visit) -> None:
    page = visit("conversations/all")
    rows = page.locator(".agents [data-agent]")
    expect(rows.first).to_be_visible()
    assert rows.count() > 3
    expect(page.locator('.agents [data-agent][tabindex="0"]')).to_have_count(1)
    expect(page.locator('.conversations-list .row[tabindex="0"]')).to_have_count(1)
    page.locator('.agents [data-agent][tabindex="0"]').focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    place = rows.count() - 2
    expect(rows.nth(place)).to_be_focused()
    expect(rows.nth(place)).to_have_attribute("tabindex", "0")  # where Tab comes back to
    expect(page.locator('.agents [data-agent][tabindex="0"]')).to_have_count(1)


def test_a_request_is_announced_to_whoever_hears_the_page(visit: Visit, stage: Stage) -> None:
    page = visit("conversations/all")
    expect(page.locator("[data-connection=live]")).to_be_visible()
    announced = page.locator("[data-announcer]")
    expect(announced).to_have_attribute("aria-live", "polite")
    ask(stage, "Bob", "heard", command="rm -rf build")
    expect(announced).to_have_text("Bob asks to use Bash, which is critical.")
    stage.report("Bob", "permission.resolved", requestId="heard", resolution="denied", resolvedBy="person")


def test_on_paper_is_the_conversation_in_full_and_in_light(open_view: OpenPage, stage: Stage) -> None:
    for number in range(70):
        stage.send("Ada", "Gina", f"line {number}\n\n{'word ' * 40}")
    page, _ = open_view("#/conversations/pair/Ada,Gina", color_scheme="dark")
    expect(page.locator(".message").last).to_contain_text("line 69")
    shown_now = page.locator(".message").count()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    until(page, lambda: page.locator(".message").count() >= 60 > shown_now, "all that was read is there")
    for hidden in (".composer", ".topbar", ".sidebar", ".conversations-list"):
        expect(page.locator(hidden)).to_be_hidden()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.evaluate(
        "document.querySelector('.message-list').scrollHeight <= document.querySelector('.message-list').clientHeight + 1"
    )
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    until(page, lambda: page.locator(".message").count() < 60, "only what is seen is there")
