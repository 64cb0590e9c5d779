"""The timeline, used as a person does: looked at, zoomed, moved, filtered, as a picture and as a table."""

from __future__ import annotations

import time

import httpx
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage, Visit
from tests.browser.stage import Stage, box_of, steady, until


def open_timeline(open_view: OpenPage, view: str = "#/timeline") -> tuple[Page, Locator]:
    page, _ = open_view(view)
    canvas = page.locator(".tl-picture canvas")
    canvas.wait_for()
    return page, canvas


def shown_time(page: Page) -> tuple[int, int]:
    begin, end = page.locator(".tl-where").evaluate("({ dataset }) => [dataset.from, dataset.to]")
    return int(begin), int(end)


def length(page: Page) -> int:
    begin, end = shown_time(page)
    return end - begin


def come_closer(page: Page, canvas: Locator, ask: str) -> None:
    match ask:
        case "button":
            page.get_by_role("button", name="Zoom in").click()
        case "key":
            page.keyboard.press("+")
        case _:
            canvas.hover()
            page.mouse.wheel(0, -300)


def hold_still(page: Page) -> None:
    live = page.get_by_role("button", name="Live", exact=True)
    if live.get_attribute("aria-pressed") == "true":
        live.click()
    expect(live).to_have_attribute("aria-pressed", "false")


def test_an_event_of_the_table_opens_its_payload_and_can_be_stepped_from(visit: Visit, stage: Stage) -> None:
    page = visit("timeline?as=table")
    page.locator(".tl-row").first.wait_for()
    stage.report("Alice", "command.executed", command="make ship <b>now</b>", exitCode=3, duration=40)
    row = page.locator(".tl-row", has_text="command.executed").filter(has_text="Alice").first
    expect(row).to_contain_text("40 ms")
    row.click()
    payload = page.locator(".details .payload")
    expect(payload).to_contain_text('"command": "make ship <b>now</b>"')
    expect(payload.locator("b")).to_have_count(0)
    chosen = page.url
    page.keyboard.press("p")
    expect(page).not_to_have_url(chosen)
    page.keyboard.press("n")
    expect(page).to_have_url(chosen)
    page.get_by_role("tab", name="Lanes").click()
    for name in stage.scene.agents:
        expect(page.locator(".tl-labels li", has_text=name).first).to_be_attached()


def test_the_timeline_is_zoomed_and_moved_by_buttons_keys_wheel_and_hand(open_view: OpenPage, stage: Stage) -> None:
    page, canvas = open_timeline(open_view)
    page.get_by_role("button", name="5m").click()
    until(page, lambda: 60_000 <= length(page) <= 320_000, "the last minutes")
    for ask in ("button", "key", "wheel"):
        before = length(page)
        come_closer(page, canvas, ask)
        until(page, lambda: length(page) < before * 0.8, f"closer, by {ask}")  # noqa: B023 - it is over in this turn
    page.keyboard.press("l")  # the wheel has led to where the pointer was, which may be before the first event
    expect(page.get_by_role("button", name="Live", exact=True)).to_have_attribute("aria-pressed", "true")
    past = time.time() * 1_000 - first_moment(stage)
    while length(page) > past / 4:  # so that there is something before what is shown, however young the daemon is
        before = length(page)
        come_closer(page, canvas, "key")
        until(page, lambda: length(page) < before * 0.8, "closer still")  # noqa: B023 - it is over in this turn
    hold_still(page)
    begin, end = shown_time(page)
    page.keyboard.press("ArrowLeft")
    until(page, lambda: shown_time(page)[0] < begin, "earlier")
    begin, _ = shown_time(page)
    box = box_of(page, canvas)
    page.mouse.move(box["x"] + 300, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + 100, box["y"] + 80, steps=4)
    page.mouse.up()
    until(page, lambda: shown_time(page)[0] > begin, "later, drawn by hand")
    page.keyboard.press("l")
    until(page, lambda: shown_time(page)[1] > end, "now")
    page.keyboard.press("0")
    until(page, lambda: length(page) > end - begin, "everything")


def test_the_window_of_a_young_relay_grows_with_it(open_view: OpenPage, stage: Stage) -> None:
    page, _ = open_timeline(open_view)
    expect(page.get_by_role("button", name="1h", exact=True)).to_have_attribute("aria-pressed", "true")
    until(page, lambda: length(page) < 3_000_000, "there is less than an hour to show")
    page.evaluate("() => { const { now } = Date; Date.now = () => now() + 1_200_000; }")  # twenty minutes later
    until(page, lambda: 1_200_000 < length(page) < 3_000_000, "what was shown is still shown")
    assert shown_time(page)[0] < first_moment(stage)


def first_moment(stage: Stage) -> float:
    """Of the oldest event, in milliseconds."""
    answer = httpx.get(f"{stage.url}/api/v1/events", params={"limit": "1"}, timeout=60, headers=stage.daemon.api_headers)
    return float(answer.json()["events"][0]["_ts"])


def test_a_click_on_the_picture_opens_an_event_or_comes_closer(open_view: OpenPage, stage: Stage) -> None:
    page, canvas = open_timeline(open_view)
    stage.report("Alice", "file.operation", operation="edit", filePath="src/only-one.py")
    moment = stage.wait_for_event("file.operation", "src/only-one.py")["_ts"]
    page.locator(".tl-find input").fill("alice file.operation")
    expect(page.locator(".tl-labels li")).to_have_count(1)
    until(page, lambda: shown_time(page)[1] > moment, "the window has come to it")
    hold_still(page)
    begin, end = shown_time(page)
    box = box_of(page, canvas)
    x = box["x"] + (moment - begin) / (end - begin) * box["width"]
    y = box["y"] + 30 + 34  # the middle of the one lane, below the times
    hint = page.locator(".tl-hint")

    def is_hinted() -> bool:
        page.mouse.move(x - 1, y)
        page.mouse.move(x, y)
        return hint.is_visible()

    until(page, is_hinted, "it is found under the pointer")
    expect(hint).to_contain_text("file.operation")
    page.mouse.down()
    page.mouse.up()
    expect(page.locator(".details .payload")).to_contain_text("src/only-one.py")


def test_kinds_of_events_are_left_out(open_view: OpenPage, stage: Stage) -> None:
    page, _ = open_view("#/timeline?as=table")
    expect(page.locator(".tl-row", has_text="message.exchanged").first).to_be_visible()
    page.get_by_role("button", name="Messages", exact=True).click()
    expect(page.locator(".tl-row", has_text="message.")).to_have_count(0)
    page.locator(".tl-find input").fill("permission")
    expect(page.locator(".tl-row").first).to_contain_text("permission.")
    expect(page.locator(".tl-row", has_text="tokens.used")).to_have_count(0)


def test_a_link_to_an_event_goes_where_it_is(visit: Visit, open_view: OpenPage, stage: Stage) -> None:
    page = visit("timeline?as=table")
    page.locator(".tl-row").first.click()
    expect(page.locator(".details .payload")).to_be_visible()
    shown = steady(page, page.locator(".details .payload").inner_text)
    other, _ = open_timeline(open_view, page.url.removeprefix(f"{stage.url}/").replace("as=table&", ""))
    expect(other.locator(".details .payload")).to_have_text(shown)


def test_what_is_shown_is_saved_as_a_picture(visit: Visit) -> None:
    page = visit("timeline")
    expect(page.locator("canvas[data-timeline]")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as a picture").click()
    path = download.value.path()
    assert download.value.suggested_filename.startswith("timeline-")
    assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
