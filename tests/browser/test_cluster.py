"""The page at a host of a cluster that has not the seat: it works like at any other, and says why while it cannot."""

from __future__ import annotations

import httpx
from playwright.sync_api import Browser, expect

from tests.browser.stage import open_page
from tests.cluster.hosts import run_hosts

HEALED_MS = 90_000  # a seat that has to be taken, on a busy machine


def test_the_page_of_an_edge_shows_the_relay_and_says_why_it_cannot(browser: Browser) -> None:
    with run_hosts(2, 1, ["--port=0"]) as hosts:
        edge = next(hosts[name] for name in hosts.daemons if name != hosts.seat)
        url = edge.wait_for_url()
        made = httpx.post(f"{url}/api/v1/page-codes", headers=edge.api_headers, timeout=60)
        address = f"{url}/#code={made.json()['code']}"  # as `agent-relay open` does
        with hosts[hosts.seat].connect_sync("Alice") as alice, open_page(browser, address, None) as (page, watched):
            expect(page.locator("[data-connection=live]")).to_be_visible()
            page.goto(f"{url}/#/conversations/all")
            alice.send("*", "heard at every host")
            expect(page.locator(".message").last).to_contain_text("heard at every host")
            watched.allows_network_errors = True
            (server,) = hosts.servers.servers
            server.kill()
            banner = page.locator(".banner")
            expect(banner).to_contain_text("This host cannot reach its cluster", timeout=HEALED_MS)
            expect(banner).to_contain_text("nothing is lost")
            page.reload()  # whoever comes now is told too
            expect(page.get_by_role("heading", name="The relay is not available here now")).to_be_visible()
            server.start()
            hosts.servers.wait_ready()
            expect(page.locator("[data-connection=live]")).to_be_visible(timeout=HEALED_MS)  # by itself, and still signed in
            expect(page.locator(".message").last).to_contain_text("heard at every host")
