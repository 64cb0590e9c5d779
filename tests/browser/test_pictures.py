"""The pictures: timeline, graph and costs, used as a person does, and each as text as well."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.stage import PHONE, WAIT_MS, Stage


def until(page: Page, is_so: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + WAIT_MS / 1_000
    while not is_so():
        assert time.monotonic() < ends, f"not within {WAIT_MS} ms: {what}"
        page.wait_for_timeout(50)


# --- timeline ------------------------------------------------------------------------------------------------------------


def open_timeline(open_view: OpenPage, view: str = "#/timeline") -> tuple[Page, Locator]:
    page, _ = open_view(view)
    canvas = page.locator(".tl-picture canvas")
    canvas.wait_for()
    return page, canvas


SHORT_MS = 2_000


def shown_time(page: Page) -> tuple[int, int]:
    where = page.locator(".tl-where")
    return int(where.get_attribute("data-from") or 0), int(where.get_attribute("data-to") or 0)


def length(page: Page) -> int:
    begin, end = shown_time(page)
    return end - begin


def come_closer(page: Page, canvas: Locator, ask: str) -> None:
    match ask:
        case "button":
            page.get_by_role("button", name="Closer").click()
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


def test_an_event_of_the_table_opens_its_payload_and_can_be_stepped_from(open_view: OpenPage, stage: Stage) -> None:
    page, _ = open_view("#/timeline?as=table")
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


def test_the_timeline_is_zoomed_and_moved_by_buttons_keys_wheel_and_hand(open_view: OpenPage) -> None:
    page, canvas = open_timeline(open_view)
    page.get_by_role("button", name="5m").click()
    until(page, lambda: 60_000 <= length(page) <= 320_000, "the last minutes")
    for ask in ("button", "key", "wheel"):
        before = length(page)
        come_closer(page, canvas, ask)
        until(page, lambda: length(page) < before * 0.8, f"closer, by {ask}")  # noqa: B023 - it is over in this turn
    while length(page) > SHORT_MS:  # there is nothing to see before the first event, which may be seconds old
        before = length(page)
        come_closer(page, canvas, "key")
        until(page, lambda: length(page) < before * 0.8, "closer still")  # noqa: B023 - it is over in this turn
    hold_still(page)
    begin, end = shown_time(page)
    page.keyboard.press("ArrowLeft")
    until(page, lambda: shown_time(page)[0] < begin, "earlier")
    begin, _ = shown_time(page)
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + 100, box["y"] + 80, steps=4)
    page.mouse.up()
    until(page, lambda: shown_time(page)[0] > begin, "later, drawn by hand")
    page.keyboard.press("l")
    until(page, lambda: shown_time(page)[1] > end, "now")
    page.keyboard.press("0")
    until(page, lambda: length(page) > end - begin, "everything")


def test_a_click_on_the_picture_opens_an_event_or_comes_closer(open_view: OpenPage, stage: Stage) -> None:
    page, canvas = open_timeline(open_view)
    stage.report("Alice", "file.operation", operation="edit", filePath="src/one.py")
    page.locator(".tl-find input").fill("alice file.operation")
    expect(page.locator(".tl-labels li")).to_have_count(1)
    hold_still(page)
    box = canvas.bounding_box()
    assert box is not None
    middle = box["y"] + 30 + 34  # of the one lane, below the times
    hint = page.locator(".tl-hint")
    for x in range(int(box["x"] + box["width"]) - 4, int(box["x"]), -4):
        page.mouse.move(x, middle)
        if hint.count():
            break
    expect(hint).to_contain_text("file.operation")
    page.mouse.down()
    page.mouse.up()
    expect(page.locator(".details .payload")).to_contain_text('"operation"')


def test_kinds_of_events_are_left_out(open_view: OpenPage, stage: Stage) -> None:
    page, _ = open_view("#/timeline?as=table")
    expect(page.locator(".tl-row", has_text="message.exchanged").first).to_be_visible()
    page.get_by_role("button", name="Messages", exact=True).click()
    expect(page.locator(".tl-row", has_text="message.")).to_have_count(0)
    page.locator(".tl-find input").fill("permission")
    expect(page.locator(".tl-row").first).to_contain_text("permission.")
    expect(page.locator(".tl-row", has_text="tokens.used")).to_have_count(0)


def test_a_link_to_an_event_goes_where_it_is(open_view: OpenPage, stage: Stage) -> None:
    page, _ = open_view("#/timeline?as=table")
    page.locator(".tl-row").first.click()
    expect(page.locator(".details .payload")).to_be_visible()
    other, _ = open_timeline(open_view, page.url.removeprefix(f"{stage.url}/").replace("as=table&", ""))
    expect(other.locator(".details .payload")).to_have_text(page.locator(".details .payload").inner_text())


# --- graph ---------------------------------------------------------------------------------------------------------------


NOTE_SIGNS = """
() => {
  window.seen = [];
  const note = (node) => /gr-(pulse|lit)/.test(node.getAttribute?.("class")) && window.seen.push(node.getAttribute("class"));
  const watch = new MutationObserver((changes) => changes.forEach((change) => change.addedNodes.forEach(note)));
  watch.observe(document.body, { subtree: true, childList: true });
}
"""


def note_signs(page: Page) -> None:
    """From now on `window.seen` has every sign of a message under way, which are there for a moment only."""
    page.evaluate(NOTE_SIGNS)


def test_a_message_travels_along_an_edge_that_leads_to_the_conversation(open_view: OpenPage, stage: Stage) -> None:
    stage.send("Alice", "Bob", "Hello, graph.")
    page, _ = open_view("#/graph")
    edge = page.locator('[data-edge="Alice,Bob"]')
    edge.wait_for(state="attached")
    note_signs(page)
    stage.send("Alice", "Bob", "And another one.")
    until(page, lambda: "gr-pulse" in page.evaluate("window.seen"), "a dot on its way")
    before = page.locator('[data-node="Gina"]').get_attribute("transform")
    edge.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/conversations/pair/Alice%2CBob"))
    page.go_back()
    expect(page.locator('[data-node="Gina"]')).to_have_attribute("transform", before or "")  # nobody has moved


def test_without_motion_an_edge_lights_up(open_view: OpenPage, stage: Stage) -> None:
    page, _ = open_view("#/graph", reduced_motion="reduce")
    page.locator('[data-node="Bob"]').wait_for()
    note_signs(page)
    stage.send("Bob", "Ada", "Without motion, please.")
    until(page, lambda: "gr-lit" in page.evaluate("window.seen"), "a lit edge")
    assert "gr-pulse" not in page.evaluate("window.seen")


def test_a_node_shows_its_agent_and_stays_where_it_is_put(open_view: OpenPage) -> None:
    page, _ = open_view("#/graph")
    node = page.locator('[data-node="Alice"]')
    node.locator(".ring").click()
    expect(page.locator(".details")).to_contain_text("Alice")
    page.keyboard.press("Escape")
    expect(page.locator(".details")).to_have_count(0)
    box = node.locator(".ring").bounding_box()
    before = node.get_attribute("transform")
    assert box is not None
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 70, steps=5)
    page.mouse.up()
    expect(node).not_to_have_attribute("transform", before or "")
    expect(page.locator(".details")).to_have_count(0)  # a drag is no click


def test_the_graph_as_a_table(open_view: OpenPage, stage: Stage) -> None:
    stage.send("Bob", "Alice", "Counted.")
    page, _ = open_view("#/graph?as=table")
    row = page.locator(".gr-table tbody tr", has_text="Alice and Bob")
    expect(row).to_be_visible()
    row.get_by_role("link").click()
    expect(page).to_have_url(re.compile("#/conversations/pair/Alice%2CBob"))


# --- costs ---------------------------------------------------------------------------------------------------------------


def dollars(shown: Locator) -> float:
    return float(shown.inner_text().lstrip("$").replace(",", ""))


def test_costs_go_up_as_tokens_are_used_and_unknown_prices_are_told(open_view: OpenPage, stage: Stage) -> None:
    page, _ = open_view("#/costs?range=1h")
    total = page.locator(".tile dd").first
    expect(total).to_contain_text("$")
    before = dollars(total)
    stage.report("Ada", "tokens.used", model="claude-opus-4-5", inputTokens=1_000_000, outputTokens=0)
    until(page, lambda: dollars(total) >= before + 5, "five dollars more")
    stage.report("Ada", "tokens.used", model="<i>nobody's</i>", inputTokens=77, outputTokens=0)
    note = page.locator(".note.warn")
    expect(note).to_contain_text("<i>nobody's</i>")
    expect(page.locator(".spent tr", has_text="<i>nobody's</i>")).to_contain_text("no price")
    page.get_by_role("tab", name="Agent").click()
    expect(page.locator(".legend")).to_contain_text("Ada")
    page.get_by_role("button", name="Show as a table").click()
    expect(page.locator(".figures thead")).to_contain_text("Ada")


def test_a_budget_is_set_and_its_bar_shows_how_far_it_is_spent(open_view: OpenPage, stage: Stage) -> None:
    stage.report("Ada", "tokens.used", model="claude-opus-4-5", inputTokens=1_000_000, outputTokens=0)
    page, _ = open_view("#/costs")
    page.get_by_role("button", name="Set a budget").click()
    page.get_by_label("Altogether").fill("1000")
    page.get_by_label("Per hour").fill("1")
    page.get_by_label("Tell me before, at").fill("80")
    page.get_by_text("Start no more agents").click()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toast", has_text="The budget is set.")).to_be_visible()
    hour, total = page.get_by_role("meter", name="Per hour"), page.get_by_role("meter", name="Altogether")
    expect(hour).to_have_class(re.compile("danger"))
    expect(total).to_have_class(re.compile("ok"))
    page.reload()
    expect(total).to_be_visible()
    expect(page.locator(".budget")).to_contain_text("start no more agents")


@pytest.mark.parametrize(
    ("view", "shows"),
    [("timeline", ".tl-picture canvas"), ("graph", "[data-node=Alice]"), ("costs", ".chart canvas"), ("replay", ".rp-session")],
)
def test_it_fits_a_phone(open_view: OpenPage, view: str, shows: str) -> None:
    page, _ = open_view(f"#/{view}", viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark")
    expect(page.locator(shows).first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"
