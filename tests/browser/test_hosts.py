"""The hosts of a cluster on the page: where an agent runs, and where a new one is to."""

from __future__ import annotations

import os

from playwright.sync_api import Browser, expect

from tests.browser.stage import open_page
from tests.cluster.hosts import run_hosts


def test_the_page_shows_the_host_of_each_agent_and_offers_hosts_for_a_new_one(browser: Browser) -> None:
    with run_hosts(2, servers=1, flags=("--port=0",)) as hosts:
        seat = hosts[hosts.seat]
        edge = next(name for name in hosts.daemons if name != hosts.seat)
        address = f"{seat.wait_for_url()}/#/conversations/all?select=agent:Bob"
        with (
            seat.connect_sync("Alice"),
            hosts[edge].connect_sync("Bob"),
            open_page(browser, address, seat) as (page, watched),
        ):
            expect(page.locator(f"[data-agent=Bob] [data-host={edge}]")).to_be_visible()
            expect(page.locator(f"[data-agent=Alice] [data-host={hosts.seat}]")).to_be_visible()
            expect(page.locator(".details dl").first).to_contain_text(f"Host{edge}")
            page.get_by_role("button", name="Start an agent").click()
            dialog = page.get_by_role("dialog")
            expect(dialog.get_by_label("Host").locator("option")).to_have_count(3)
            if folder := os.environ.get("SCREENSHOTS"):
                page.screenshot(path=f"{folder}/hosts.png")
            watched.allows_network_errors = True  # the refusal below
            dialog.get_by_label("Host").select_option(edge)
            dialog.get_by_label("Name").fill("Newcomer")
            dialog.get_by_role("button", name="Start agent").click()
            expect(dialog.get_by_role("alert")).to_contain_text("cluster_control")
