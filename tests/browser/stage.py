"""A daemon with the agents of the scene on it, and a page that shows it and notes everything that is wrong with it."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    FloatRect,
    Locator,
    Page,
    Request,
    expect,
    sync_playwright,
)

from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.loop_thread import LoopThread
from agent_relay.testing.daemon import DaemonProcess
from scripts.dashboard_scene import Scene, open_scene, open_terminals

T = TypeVar("T")

WAIT_MS = 20_000  # for what has to appear; on a loaded machine, that takes its time
DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
USUAL = {
    "viewport": DESKTOP,
    "reduced_motion": "reduce",
}  # what moves all the time keeps a processor busy, in each of the browsers
POLL_MS = 50
NO_PAGE = "static/favicon.svg"  # of the daemon, and soon there: for what has to be prepared before the page is opened
_PAGE_ERRORS = {"error", "warning"}
expect.set_options(timeout=WAIT_MS)


class Stage:
    """The scene lives on a loop of its own: a test that uses the browser blocks."""

    def __init__(
        self, *flags: str, token: str | None = None, terminals: bool = False, agents: int = 0, messages: int = 0,
        asks: bool = True, directory: Path | None = None,
    ) -> None:  # fmt: skip
        self.daemon = DaemonProcess("--port=0", *flags, directory=directory)
        if token is not None:
            self.daemon.environ["AGENT_RELAY_API_TOKEN"] = token
        self._loop = LoopThread()
        self._stack = AsyncExitStack()
        self._wanted = (terminals, agents, messages, asks)
        self.scene: Scene

    def __enter__(self) -> Stage:
        self.daemon.start()
        self.url = self.daemon.wait_for_url()
        self._loop.start()
        self.scene = self.run(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.run(self._stack.aclose())
        finally:
            self._loop.stop()
            self.daemon.remove()

    async def _open(self) -> Scene:
        terminals, agents, messages, asks = self._wanted
        scene = await self._stack.enter_async_context(open_scene(self.daemon, agents=agents, messages=messages, asks=asks))
        if terminals:
            await self._stack.enter_async_context(open_terminals(self.daemon))
        return scene

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(work)

    def send(self, sender: str, to: str | list[str] | None, body: str, **options: Any) -> str:
        """The message's id."""
        return self.run(self.scene.agents[sender].send(to, body, **options)).message_id

    @contextmanager
    def visitor(self, name: str) -> Iterator[RelayClient]:
        """One more agent, for a while."""
        client = RelayClient(name, socket=self.daemon.socket)
        self.run(client.connect())
        try:
            yield client
        finally:
            self.run(client.close())

    def report(self, agent: str, kind: str, **fields: Any) -> None:
        async def say() -> None:
            self.scene.agents[agent].report(kind, **fields)

        self.run(say())

    def wait_for_event(self, type_: str, words: str) -> dict[str, Any]:
        """The newest event of a type that has these words in it, once it can be read: a report is no more than sent."""
        ends = time.monotonic() + WAIT_MS / 1_000
        while True:
            query = {"types": type_, "limit": "1000"}
            answer = httpx.get(f"{self.url}/api/v1/events", params=query, timeout=60, headers=self.daemon.api_headers)
            events = answer.json()["events"]
            found: list[dict[str, Any]] = [event for event in events if words in str(event)]
            if found:
                return found[-1]
            assert time.monotonic() < ends, f"no {type_} with {words!r} within {WAIT_MS} ms"
            time.sleep(POLL_MS / 1_000)

    def get(self, path: str) -> Any:
        return httpx.get(f"{self.url}/api/v1/{path}", timeout=60, headers=self.daemon.api_headers).json()

    def restart(self) -> None:
        """kill -9, and another one in its place, at the same address."""
        port = urlsplit(self.url).port
        self.daemon.restart(f"--port={port}", *(flag for flag in self.daemon.flags if not flag.startswith("--port")))
        assert self.daemon.wait_for_url() == self.url


class Watched:
    """What a page did that it must not do."""

    def __init__(self, page: Page, own: str, *, allows_network_errors: bool = False) -> None:
        self.faults: list[str] = []
        self.allows_network_errors = allows_network_errors
        self._own = urlsplit(own).netloc
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.faults.append(f"exception: {error}"))
        page.on("request", self._asked)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type not in _PAGE_ERRORS:
            return
        if self.allows_network_errors and "Failed to load resource" in message.text:
            return
        self.faults.append(f"{message.type}: {message.text}")

    def check(self) -> None:
        faults, self.faults = self.faults, []
        if faults:
            raise AssertionError("\n".join(faults))

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in {"http", "https", "ws", "wss"} and parts.netloc != self._own:
            self.faults.append(f"asked elsewhere: {request.url}")


@contextmanager
def open_browser() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program is not None, "Chromium is missing: scripts/setup dev tests"
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=arguments)
        yield started
        started.close()


def let_in(context: BrowserContext, daemon: DaemonProcess, url: str) -> None:
    """As the page itself does with a code, before it is opened."""
    answer = httpx.post(f"{daemon.wait_for_url()}/api/v1/page-keys", json={"code": daemon.api_token}, timeout=60)
    (name, value), key = next(iter(answer.cookies.items())), answer.json()["key"]
    host = urlsplit(url).hostname
    context.add_cookies([{"name": name, "value": value, "domain": host, "path": "/", "httpOnly": True, "sameSite": "Strict"}])
    context.add_init_script(f"localStorage.setItem({json.dumps(f'agent-relay.page.{name}')}, {json.dumps(key)});")


@contextmanager
def open_page(
    browser: Browser,
    url: str,
    daemon: DaemonProcess | None,
    *,
    allows_network_errors: bool = False,
    script: str = "",
    **options: Any,
) -> Iterator[tuple[Page, Watched]]:
    """Fails at its end if the page logged an error, broke its own security policy, or asked another host. `daemon` lets the
    browser in, as a code would. `script` is run in every document before its own."""
    context = browser.new_context(**(USUAL | options))
    context.set_default_timeout(WAIT_MS)
    if daemon is not None:
        let_in(context, daemon, url)
    if script:
        context.add_init_script(script)
    page = context.new_page()
    watched = Watched(page, url, allows_network_errors=allows_network_errors)
    try:
        page.goto(url)
        yield page, watched
        watched.check()
    finally:
        context.close()


def until(page: Page, is_so: Callable[[], object], what: str) -> None:
    """For what `expect` has no words for. The page goes on meanwhile."""
    ends = time.monotonic() + WAIT_MS / 1_000
    while not is_so():
        assert time.monotonic() < ends, f"not within {WAIT_MS} ms: {what}"
        page.wait_for_timeout(POLL_MS)


def steady(page: Page, read: Callable[[], T]) -> T:
    """What is read, once it is the same twice: what has just appeared may still move, and is gone while it is drawn anew."""
    seen: list[T] = [read()]

    def is_same() -> bool:
        seen.append(read())
        return seen[-1] is not None and seen[-1] == seen[-2]

    until(page, is_same, "it comes to rest")
    return seen[-1]


def box_of(page: Page, place: Locator) -> FloatRect:
    """Where something is, once it stays there."""
    box = steady(page, place.bounding_box)
    assert box is not None
    return box


def expect_to_fit(page: Page) -> None:
    """It is no wider than the screen."""
    until(page, lambda: page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it does not scroll sideways")
