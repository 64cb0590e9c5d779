"""The graph: messages on their way, who talks with whom, nodes that stay where they are, and the same as a table."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.stage import Stage, box_of, steady, until
from tests.browser.test_accessibility import find_faults

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


def test_a_message_travels_along_an_edge_that_leads_to_the_conversation(visit: Visit, stage: Stage) -> None:
    stage.send("Alice", "Bob", "Hello, graph.")
    page = visit("graph", reduced_motion="no-preference")
    edge = page.locator('[data-edge="Alice,Bob"]')
    edge.wait_for(state="attached")
    gina = page.locator('[data-node="Gina"]')
    before = steady(page, lambda: gina.get_attribute("transform"))
    note_signs(page)
    stage.send("Alice", "Bob", "And another one.")
    until(page, lambda: "gr-pulse" in page.evaluate("window.seen"), "a dot on its way")
    edge.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/conversations/pair/Alice%2CBob"))
    page.go_back()
    expect(gina).to_have_attribute("transform", before or "")  # nobody has moved


def test_without_motion_an_edge_lights_up(visit: Visit, stage: Stage) -> None:
    page = visit("graph")
    page.locator('[data-node="Bob"]').wait_for()
    note_signs(page)
    stage.send("Bob", "Ada", "Without motion, please.")
    until(page, lambda: "gr-lit" in page.evaluate("window.seen"), "a lit edge")
    assert "gr-pulse" not in page.evaluate("window.seen")


def test_a_node_shows_its_agent_and_stays_where_it_is_put(visit: Visit) -> None:
    page = visit("graph")
    node = page.locator('[data-node="Alice"]')
    node.locator(".ring").click()
    expect(page.locator(".details")).to_contain_text("Alice")
    page.keyboard.press("Escape")
    expect(page.locator(".details")).to_have_count(0)
    box = box_of(page, node.locator(".ring"))
    before = node.get_attribute("transform")
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 70, steps=5)
    page.mouse.up()
    expect(node).not_to_have_attribute("transform", before or "")
    expect(page.locator(".details")).to_have_count(0)  # a drag is no click


def test_the_graph_as_a_table(visit: Visit, stage: Stage) -> None:
    stage.send("Bob", "Alice", "Counted.")
    page = visit("graph?as=table")
    row = page.locator(".gr-table tbody tr", has_text="Alice and Bob")
    expect(row).to_be_visible()
    row.get_by_role("link").click()
    expect(page).to_have_url(re.compile("#/conversations/pair/Alice%2CBob"))


def test_many_are_a_matrix_with_channels_together_and_the_silent_folded(visit: Visit, stage: Stage) -> None:
    stage.send("Alice", "Bob", "for the matrix")
    with stage.visitor("a-name-that-is-longer-than-eighteen-signs"):
        page = visit("graph?as=matrix")
        build = page.locator("tbody[data-cluster='#build']")
        expect(build.locator("th[scope=row]", has_text="Alice")).to_be_visible()
        cell = build.get_by_role("link", name=re.compile("^Alice and Bob: "))
        expect(cell.first).to_be_visible()
        page.get_by_role("button", name=re.compile("said nothing")).click()
        expect(page.locator(".gr-silent a", has_text="a-name-that-is-longer-than-eighteen-signs")).to_be_visible()
        assert find_faults(page) == []
        cell.first.click()
        expect(page).to_have_url(re.compile("#/conversations/pair/Alice%2CBob"))
        page.goto(f"{stage.url}/#/graph")
        expect(page.locator("[data-node='a-name-that-is-longer-than-eighteen-signs']")).to_contain_text(
            "longer-than-eighteen-signs"
        )
