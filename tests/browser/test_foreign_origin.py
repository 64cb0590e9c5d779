"""A person who is let in visits a page of somebody else: at another port of this machine, or of another site. It gets nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.stage import USUAL, WAIT_MS, Stage

# Everything a page can do without being asked; what came back, or why nothing did.
ATTACK = """async (relay) => {
  const json = { "Content-Type": "application/json" };
  const body = JSON.stringify({ to: "Bob", body: "from a foreign page" });
  const ask = async (path, options) =>
    (await fetch(`${relay}/api/v1/${path}`, { credentials: "include", ...options })).text();
  const tries = {
    read: () => ask("messages"),
    blind: () => ask("messages", { mode: "no-cors" }),
    post: () => ask("messages", { method: "POST", headers: json, body }),
    plain: () => ask("messages", { method: "POST", mode: "no-cors", body }),
    header: () => ask("messages", { headers: { "X-Relay-Page": "x" } }),
    code: () => ask("page-codes", { method: "POST" }),
    forget: () => ask("page-keys", { method: "DELETE" }),
    stream: () => new Promise((resolve, reject) => {
      const source = new EventSource(`${relay}/api/v1/events/sse?offset=0`, { withCredentials: true });
      source.onmessage = (event) => resolve(event.data);
      source.onopen = () => resolve("open");
      source.onerror = () => { source.close(); reject(new Error("refused")); };
    }),
    socket: () => new Promise((resolve, reject) => {
      const socket = new WebSocket(`${relay.replace("http", "ws")}/arc`);
      socket.onopen = () => resolve("open");
      socket.onerror = () => reject(new Error("refused"));
    }),
    frame: () => new Promise((resolve) => {
      const frame = document.createElement("iframe");
      frame.onload = () => { try { resolve(frame.contentDocument?.body.innerText ?? ""); } catch { resolve(""); } };
      frame.src = `${relay}/`;
      document.body.append(frame);
    }),
    storage: async () => Object.keys(localStorage).join(),
    cookie: async () => document.cookie,
  };
  const found = {};
  for (const [name, attempt] of Object.entries(tries)) {
    try { found[name] = await attempt(); } catch { found[name] = null; }
  }
  return found;
}"""


class Elsewhere(ThreadingHTTPServer):
    """A server of somebody else, at another port. It notes the cookies it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Nothing)
        self.cookies: list[str] = []

    def __enter__(self) -> Elsewhere:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class Nothing(BaseHTTPRequestHandler):
    server: Elsewhere

    def do_GET(self) -> None:
        self.server.cookies.append(self.headers.get("Cookie", ""))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>Elsewhere</title><p>Nothing to see here.")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    with Elsewhere() as server:
        yield server


@pytest.fixture
def context(browser: Browser, stage: Stage) -> Iterator[BrowserContext]:
    """Of a person who is let in, and has the dashboard open."""
    opened = browser.new_context(**USUAL)
    opened.set_default_timeout(WAIT_MS)
    code = httpx.post(f"{stage.url}/api/v1/page-codes", headers=stage.daemon.api_headers, timeout=60).json()["code"]
    own = opened.new_page()
    own.goto(f"{stage.url}/#code={code}")
    expect(own.locator("[data-connection=live]")).to_be_visible()
    yield opened
    own.reload()
    expect(own.locator("[data-connection=live]")).to_be_visible()  # and still is
    opened.close()


def messages(stage: Stage) -> str:
    return httpx.get(f"{stage.url}/api/v1/messages", headers=stage.daemon.api_headers, timeout=60).text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_foreign_page_reads_and_sends_nothing(context: BrowserContext, stage: Stage, elsewhere: Elsewhere, host: str) -> None:
    page: Page = context.new_page()
    page.goto(f"http://{host}:{elsewhere.server_port}/")
    statuses: set[int] = set()
    page.on("response", lambda answer: statuses.add(answer.status) if "/api/" in answer.url else None)
    found = page.evaluate(ATTACK, stage.url)
    assert {name: said for name, said in found.items() if said} == {}
    # The browser alone would show the page nothing. That it comes from elsewhere is refused by us, too, whatever it shows.
    assert statuses == {403}
    assert "from a foreign page" not in messages(stage)


def test_a_form_of_a_foreign_page_sends_nothing(context: BrowserContext, stage: Stage, elsewhere: Elsewhere) -> None:
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{elsewhere.server_port}/")
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        page.evaluate(
            """([relay, kind]) => {
              const form = document.createElement("form");
              Object.assign(form, { method: "post", action: `${relay}/api/v1/messages`, enctype: kind });
              const field = document.createElement("input");
              Object.assign(field, { name: '{"to":"Bob","body":"from a foreign page","x":"', value: '"}' });
              form.append(field);
              document.body.append(form);
              form.submit();
            }""",
            [stage.url, kind],
        )
        page.wait_for_url(f"{stage.url}/**")
        assert '"PERMISSION_DENIED"' in page.content()
        assert '"origin"' in page.content()
        page.goto(f"http://127.0.0.1:{elsewhere.server_port}/")
    assert "from a foreign page" not in messages(stage)


def test_a_server_at_another_port_sees_the_cookie_and_cannot_use_it(
    context: BrowserContext, stage: Stage, elsewhere: Elsewhere
) -> None:
    """Cookies know no ports: this is what the second half of the key is for."""
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{elsewhere.server_port}/")
    seen = elsewhere.cookies[-1]
    assert "agent-relay-" in seen
    stolen = {"Cookie": seen, "Sec-Fetch-Site": "same-origin", "Origin": stage.url}
    assert httpx.get(f"{stage.url}/api/v1/agents", headers=stolen, timeout=60).status_code == 401
    half = page.evaluate("Object.values(localStorage).join()")
    assert half == ""


def test_the_cookie_is_for_no_script_and_no_other_site(context: BrowserContext, stage: Stage) -> None:
    (cookie,) = [cookie for cookie in context.cookies(stage.url) if cookie["name"].startswith("agent-relay-")]
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    assert cookie["domain"] == urlsplit(stage.url).hostname
