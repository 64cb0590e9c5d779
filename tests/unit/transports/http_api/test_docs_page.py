"""The page of the API: every operation, what it takes in words, and links that lead somewhere."""

from __future__ import annotations

import re

import msgspec

from agent_relay.transports.http.docs_page import docs_page
from agent_relay.transports.http.openapi import encode_description
from agent_relay.transports.http.table import ROUTES

PAGE = docs_page(msgspec.json.decode(encode_description(ROUTES))).decode()


def test_every_operation_is_there() -> None:
    for route in ROUTES:
        assert (f"<b>{route.method}</b> <code>{route.path}</code>" in PAGE) is route.is_described, route.path


def test_links_lead_to_what_they_name() -> None:
    names = re.findall('href="#([^"]+)"', PAGE)
    assert {"NewMessage", "AgentView", "ErrorBody"} <= set(names)
    assert set(names) <= set(re.findall('id="([^"]+)"', PAGE))


def test_a_body_is_shown_by_its_fields() -> None:
    (shown,) = re.findall(r"<b>POST</b> <code>/api/v1/messages</code>.*?</details>", PAGE, re.DOTALL)
    assert "<tr><td><code>body</code></td><td></td><td>string</td><td></td></tr>" in shown
    assert "<td><code>await_ms</code></td><td>optional</td><td>integer, 1 to 600000 or null</td>" in shown
    assert '<td><code>201</code></td><td>Created: application/json <a href="#Receipt">Receipt</a></td>' in shown


def test_words_to_choose_from_are_listed() -> None:
    assert "<code>&quot;pause-spawning&quot;</code>" in PAGE
