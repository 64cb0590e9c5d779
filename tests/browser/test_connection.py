"""The way from the page to the daemon: broken and mended without a gap, guarded by a token, behind a path prefix."""

from __future__ import annotations

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import OpenPage
from tests.browser.stage import NO_PAGE, Stage, open_page

PREFIX = "/tools/relay"
TOKEN = "sesame-4711"
MEANWHILE = 20  # messages that are said while the page is cut off
VIEWS = ["inbox", "decisions", "terminals", "timeline", "replay", "graph", "costs", "dead-letters"]
OF_ONE_HOP = {"connection", "content-length", "transfer-encoding"}


def expect_live(page: Page) -> None:
    expect(page.locator("[data-connection=live]")).to_be_visible()


def post(stage: Stage, body: str) -> None:
    url, headers = f"{stage.url}/api/v1/messages", stage.daemon.api_headers
    httpx.post(url, json={"to": "Bob", "body": body}, timeout=60, headers=headers).raise_for_status()


def test_after_the_daemon_was_killed_nothing_is_missing_and_nothing_comes_twice(open_view: OpenPage, stage: Stage) -> None:
    page, watched = open_view("#/conversations/all")
    expect_live(page)
    expect(page.locator("body[data-loaded=all]")).to_be_visible()
    post(stage, "before it was killed")
    expect(page.locator(".message").last).to_contain_text("before it was killed")
    watched.allows_network_errors = True
    stage.daemon.kill()
    expect(page.locator("[data-connection=reconnecting]")).to_be_visible()
    expect(page.get_by_text("The daemon does not respond. This page may be out of date; nothing is lost.")).to_be_visible()
    stage.restart()
    said = [f"meanwhile {number:02}" for number in range(MEANWHILE)]
    for body in said:
        post(stage, body)
    expect_live(page)
    watched.allows_network_errors = False
    expect(page.locator(".prose", has_text="meanwhile")).to_have_text(said)
    post(stage, "after it came back")
    expect(page.locator(".message").last).to_contain_text("after it came back")
    expect(page.locator(".prose", has_text="before it was killed")).to_have_count(1)


def refuse_once(page: Page, pattern: str) -> list[str]:
    """The address that was refused, once it was."""
    refused: list[str] = []

    def answer(route: Route) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.abort()

    page.route(pattern, answer)
    return refused


def test_styles_that_could_not_be_loaded_are_tried_again(open_view: OpenPage, stage: Stage) -> None:
    page, watched = open_view(NO_PAGE)
    watched.allows_network_errors = True
    refused = refuse_once(page, "**/css/control.css")
    page.goto(f"{stage.url}/#/conversations/all")
    page.wait_for_function("() => [...document.styleSheets].some((sheet) => sheet.href?.endsWith('css/control.css'))")
    assert refused


def test_modules_that_could_not_be_loaded_are_tried_again(open_view: OpenPage, stage: Stage) -> None:
    page, watched = open_view(NO_PAGE)
    watched.allows_network_errors = True
    refused = refuse_once(page, "**/views/inbox-alerts.js")
    page.goto(f"{stage.url}/#/conversations/all")
    expect(page.locator("body[data-loaded=all]")).to_be_visible()
    assert refused


def test_a_tab_has_one_stream_whatever_it_shows(open_view: OpenPage, stage: Stage) -> None:
    page, _ = open_view(NO_PAGE)
    streams: list[str] = []
    page.on("request", lambda request: streams.append(request.url) if "/events/sse" in request.url else None)
    page.goto(f"{stage.url}/#/conversations/all")
    expect_live(page)
    for view in VIEWS:
        page.evaluate("(hash) => { location.hash = hash; }", f"#/{view}")
        expect(page.locator(f'body[data-view="{view}"] main h1').first).to_be_visible()
    expect_live(page)
    assert len(streams) == 1


def new_code(stage: Stage) -> str:
    answer = httpx.post(f"{stage.url}/api/v1/page-codes", timeout=60, headers=stage.daemon.api_headers)
    return str(answer.json()["code"])


def test_a_code_in_the_address_lets_the_browser_in_and_is_gone_from_it(browser: Browser, stage: Stage) -> None:
    code = new_code(stage)
    with open_page(browser, f"{stage.url}/#code={code}", None) as (page, _):
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        expect_live(page)
        expect(page.locator(".message").first).to_be_visible()
        assert code not in page.url
        page.reload()  # it is known from now on
        expect_live(page)
        assert asked
        assert not [address for address in asked if code in address]
        assert "agent-relay" not in page.evaluate("document.cookie")  # for no script
    with open_page(browser, f"{stage.url}/#code={code}", None, allows_network_errors=True) as (page, _):
        expect(page.get_by_role("alert")).to_contain_text("That code is not valid: each works once, within a minute.")


def test_without_a_code_the_page_says_how_to_get_in(browser: Browser) -> None:
    with Stage(token=TOKEN) as stage, open_page(browser, f"{stage.url}/", None, allows_network_errors=True) as (page, _):
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        expect(page.get_by_role("dialog")).to_contain_text("agent-relay open")
        field = page.get_by_role("textbox", name="Code or token")
        field.fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("That code is not valid")
        field.fill(TOKEN)
        page.keyboard.press("Enter")
        expect_live(page)
        expect(page.locator(".message").first).to_be_visible()
        page.reload()
        expect_live(page)
        expect(field).to_have_count(0)
        assert asked
        assert not [address for address in [*asked, page.url] if TOKEN in address]
        page.goto("about:blank")  # what the page loads later must not break in the middle
        stage.restart()
        page.goto(f"{stage.url}/")  # it is known over a restart of the daemon, too
        expect_live(page)
        assert TOKEN not in page.evaluate("JSON.stringify([localStorage, sessionStorage])")


def test_another_tab_that_was_let_in_opens_this_one_too(browser: Browser, stage: Stage) -> None:
    with open_page(browser, f"{stage.url}/", None, allows_network_errors=True) as (page, _):
        expect(page.get_by_role("dialog")).to_be_visible()
        other = page.context.new_page()
        other.goto(f"{stage.url}/#code={new_code(stage)}")
        expect_live(other)
        expect_live(page)
        expect(page.get_by_role("dialog")).to_have_count(0)


class Proxy(ThreadingHTTPServer):
    """The daemon at another address, below a path; it notes what was asked for beside that path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Passing)
        self.origin = f"http://127.0.0.1:{self.server_port}"
        self.daemon_at = ""
        self.beside: list[str] = []

    def __enter__(self) -> Proxy:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class Passing(BaseHTTPRequestHandler):
    server: Proxy

    def do_GET(self) -> None:
        if not self.path.startswith(f"{PREFIX}/"):
            self.server.beside.append(self.path)
            self.send_error(404)
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in OF_ONE_HOP | {"host"}}
        upstream = http.client.HTTPConnection(self.server.daemon_at)
        upstream.request(self.command, self.path.removeprefix(PREFIX), body, headers)
        self._answer(upstream.getresponse())
        upstream.close()

    do_POST = do_GET

    def _answer(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in OF_ONE_HOP:
                self.send_header(name, value)
        self.end_headers()
        try:
            while piece := answer.read1(65_536):
                self.wfile.write(piece)
                self.wfile.flush()
        except (ConnectionError, http.client.HTTPException):
            pass  # one of the two went away

    def log_message(self, *_: object) -> None:
        pass


def test_it_works_behind_a_prefix(browser: Browser) -> None:
    with Proxy() as proxy, Stage(f"--cors-origins={proxy.origin}") as stage:
        proxy.daemon_at = urlsplit(stage.url).netloc
        url = f"{proxy.origin}{PREFIX}"
        with open_page(browser, f"{url}/#/conversations/all", stage.daemon) as (page, _):
            expect_live(page)
            expect(page.locator('.agent[data-agent="Bob"]')).to_be_visible()
            page.get_by_role("combobox", name="To").fill("bob")
            page.keyboard.press("Enter")
            page.get_by_label("Message", exact=True).fill("through a proxy")
            page.keyboard.press("Enter")
            expect(page.locator(".message").last).to_contain_text("through a proxy")
            for view in VIEWS:
                page.goto(f"{url}/#/{view}")
                expect(page.locator(f'body[data-view="{view}"] main h1').first).to_be_visible()
        assert proxy.beside == []
