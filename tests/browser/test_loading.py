"""A view's file that cannot be had: it is asked for again as soon as it may be there, and nobody has to press anything."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage

GRAPH = "**/static/views/graph.js*"


def test_a_view_that_was_first_opened_while_its_file_could_not_be_had_opens_by_itself(open_view: OpenPage) -> None:
    page, _ = open_view("#/conversations/all", allows_network_errors=True)
    expect(page.locator("[data-connection=live]")).to_be_visible()
    page.route(GRAPH, lambda route: route.abort())
    page.evaluate("location.hash = '#/graph'")
    expect(page.get_by_role("heading", name="This view is not loaded yet")).to_be_visible()
    page.unroute(GRAPH)
    expect(page.locator("[data-node]").first).to_be_visible()


def test_where_it_never_comes_the_page_says_what_helps(open_view: OpenPage) -> None:
    page, _ = open_view("#/conversations/all", allows_network_errors=True)
    expect(page.locator("[data-connection=live]")).to_be_visible()
    page.route(GRAPH, lambda route: route.abort())
    page.evaluate("location.hash = '#/graph'")
    again = page.get_by_role("button", name="Load the page again")
    expect(again).to_be_visible()
    page.unroute(GRAPH)
    again.click()
    expect(page.locator("[data-node]").first).to_be_visible()
