"""Modules of the page by themselves, loaded in a browser: what is made of a hostile text, an address, a stream's bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from agent_relay.testing.daemon import DaemonProcess
from tests.browser.stage import open_page


@pytest.fixture(scope="module")
def lab(browser: Browser) -> Iterator[Page]:
    """The page of a daemon with nobody there."""
    with DaemonProcess("--port=0") as daemon, open_page(browser, daemon.wait_for_url(), daemon) as (page, _):
        yield page


def call(page: Page, module: str, script: str, given: Any = None) -> Any:
    """What `script` makes of the module `m` and of what is given, `x`."""
    return page.evaluate(f"async (x) => {{ const m = await import('./static/{module}'); return ({script}); }}", given)


# --- Markdown ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hostile",
    [
        "<img src=x onerror=alert(1)>",
        "<script>alert(1)</script>",
        "text <svg/onload=alert(1)> more",
        "<style>* { display: none }</style>",
        "<form action=/x><input name=y></form>",
        "<a href='javascript:alert(1)'>x</a>",
        "<details open ontoggle=alert(1)>",
        "<!-- <img src=x onerror=alert(1)> -->",
        "<iframe srcdoc='<script>parent.alert(1)</script>'></iframe>",
    ],
)
def test_raw_html_stays_text(lab: Page, hostile: str) -> None:
    shown = call(
        lab,
        "lib/markdown.js",
        """(() => { const place = document.createElement("div"); place.innerHTML = m.renderMarkdown(x);
             return { text: place.textContent.trim(), tags: [...place.querySelectorAll("*")].map((e) => e.localName) }; })()""",
        hostile,
    )
    assert shown["text"] == hostile
    assert set(shown["tags"]) <= {"p"}


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "/relative"])
def test_a_link_that_leads_to_no_page_of_the_web_is_its_text(lab: Page, address: str) -> None:
    assert (
        call(lab, "lib/markdown.js", "m.renderMarkdown(x)", f"[press here]({address})").strip() == '<p dir="auto">press here</p>'
    )


def test_a_link_is_marked_and_tells_nobody_where_it_came_from(lab: Page) -> None:
    made = call(lab, "lib/markdown.js", "m.renderMarkdown(x)", '[it](https://example.org/a"onclick="b "t<i>")')
    assert 'class="outside"' in made
    assert 'rel="noopener noreferrer nofollow"' in made
    assert 'target="_blank"' in made
    assert "<i>" not in made
    assert "onclick=" not in made.replace("&quot;onclick=&quot;", "")


def test_a_picture_is_a_link_and_nothing_is_loaded(lab: Page) -> None:
    made = call(lab, "lib/markdown.js", "m.renderMarkdown(x)", "![a chart](https://example.org/x.png)")
    assert "<img" not in made
    assert 'href="https://example.org/x.png"' in made


def test_words_are_marked_from_their_beginning_in_text_and_code(lab: Page) -> None:
    made = call(lab, "lib/markdown.js", 'm.renderMarkdown(x, m.wordsOf("Flaky (test"))', "a flaky testing, `flaky`, unflaky")
    assert made.count("<mark>") == 3
    assert "<code><mark>flaky</mark></code>" in made
    assert "un<mark>" not in made


def test_a_text_without_end_is_not_parsed(lab: Page) -> None:
    made = call(lab, "lib/markdown.js", "m.renderMarkdown(x)", "**b** " * 20_000)
    assert made.startswith('<pre tabindex="0" dir="ltr"><code>**b** ')


# --- addresses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("view", "path", "query"),
    [
        ("conversations", ["pair", "Alice,Bob"], {}),
        ("conversations", ["channel", "#build"], {"select": "agent:Bob"}),
        ("conversations", ["thread", "a/b?c&d=e #f%"], {"search": "50% of “it”", "at": "msg_1"}),
        ("graph", [], {"x": "1"}),
    ],
)
def test_an_address_says_what_it_was_made_of(lab: Page, view: str, path: list[str], query: dict[str, str]) -> None:
    found = call(lab, "lib/router.js", "m.parse(m.link(...x))", [view, path, query])
    assert found == {"view": view, "path": path, "query": query}


def test_an_address_that_cannot_be_read_leads_to_the_first_view(lab: Page) -> None:
    assert call(lab, "lib/router.js", 'm.parse("")')["view"] == "conversations"
    assert call(lab, "lib/router.js", 'm.parse("#/%E0%A4%A")')["view"] == "%E0%A4%A"


# --- the stream ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_events_are_the_same_however_their_bytes_arrive(lab: Page, size: int) -> None:
    text = (
        ": events follow\n\n"
        'event: agent.state\nid: 41\ndata: {"a":"ü€😀"}\n\n'
        ": heartbeat\n\n"
        'event: message.exchanged\nid: 42\ndata: {"b":1}\n\n'
        "event: half\nid: 43\n"
    )
    script = """(async () => {
      const bytes = new TextEncoder().encode(x.text);
      const body = new ReadableStream({ start(control) {
        for (let at = 0; at < bytes.length; at += x.size) control.enqueue(bytes.slice(at, at + x.size));
        control.close();
      } });
      const found = [];
      await m.readEvents(body, (event) => found.push(event), () => {});
      return found;
    })()"""
    assert call(lab, "lib/sse.js", f"await {script}", {"text": text, "size": size}) == [
        {"type": "agent.state", "id": 41, "data": '{"a":"ü€😀"}'},
        {"type": "message.exchanged", "id": 42, "data": '{"b":1}'},
    ]


# --- receipts and names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stages", "reached"),
    [
        ([], "stored"),
        (["read"], "read"),
        (["read", "delivered"], "delivered"),
        (["delivered", "queued", "read"], "queued"),
        (["read", "rejected"], "rejected"),
        (["read", "dead"], "dead"),
    ],
)
def test_the_ticks_say_what_all_recipients_have_reached(lab: Page, stages: list[str], reached: str) -> None:
    recipients = [{"name": f"A{number}", "stage": each} for number, each in enumerate(stages)]
    assert call(lab, "conversations/receipts.js", "m.stageOf({ recipients: x })", recipients) == reached


def test_the_id_of_a_thread_that_began_as_an_answer_tells_when_what_was_answered_was_written(lab: Page) -> None:
    assert call(lab, "conversations/threads.js", "m.timeOf(x)", "msg_01M7FSBFWXAZ63C21PDYBN0000") == 1794752495517
    assert call(lab, "conversations/threads.js", "m.showThread(x)", "review-1187") == "review-1187"


def test_a_conversation_named_like_a_part_of_the_language_is_none(lab: Page) -> None:
    script = 'm.placeOf({ path: ["constructor", "x"], query: {} }).title'
    assert call(lab, "conversations/place.js", script) == "All messages"


# --- text that lies ------------------------------------------------------------------------------------------------------


def test_what_lies_is_shown_as_the_daemon_and_the_command_line_show_it(lab: Page) -> None:
    cases = json.loads((Path(__file__).parents[1] / "data" / "visible_text.json").read_text("utf-8"))
    shown = call(lab, "lib/visible-text.js", "x.map(m.reveal)", [case["text"] for case in cases])
    assert shown == [case["shown"] for case in cases]
