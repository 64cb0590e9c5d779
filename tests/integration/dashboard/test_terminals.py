"""Live terminals and their keyboards: real wrappers in tmux and on a PTY, seen over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_relay.terminal.screen.emulator import Emulator
from agent_relay.testing.daemon import DaemonProcess
from tests.integration.http_api.server import Server
from tests.integration.stage import BACKENDS, DEADLINE_S, Stage, until

pytestmark = pytest.mark.terminals


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    scene = Stage(folder, "--port=0")
    yield scene
    scene.close()


def open_api(daemon: DaemonProcess) -> httpx.Client:
    return httpx.Client(base_url=daemon.wait_for_url(), timeout=DEADLINE_S, headers=daemon.api_headers)


class View:
    """A tab with terminals: it follows the stream and shows what it is told, as a browser does."""

    def __init__(self, daemon: DaemonProcess, *agents: str) -> None:
        self.screens: dict[str, Emulator] = {}
        self.sizes: dict[str, tuple[int, int]] = {}
        self.ended: set[str] = set()
        self._client = open_api(daemon)
        self._thread = threading.Thread(target=self._follow, args=(",".join(agents),), daemon=True)
        self._thread.start()

    def _follow(self, agents: str) -> None:
        try:
            with self._client.stream("GET", "/api/v1/terminals/stream", params={"agents": agents}) as answer:
                assert answer.headers["content-type"].startswith("text/event-stream")
                event = ""
                for line in answer.iter_lines():
                    if line.startswith("event: "):
                        event = line.removeprefix("event: ")
                    elif line.startswith("data: "):
                        self._show(event, json.loads(line.removeprefix("data: ")))
        except (httpx.HTTPError, RuntimeError, OSError):
            return  # it was closed

    def _show(self, event: str, said: dict[str, Any]) -> None:
        name = said["agent"]
        if event == "snapshot":
            self.sizes[name] = (said["columns"], said["rows"])
            self.screens[name] = Emulator(said["columns"], said["rows"])
        if event in {"snapshot", "output"}:
            self.screens[name].feed(said["text"].encode())
        if event == "end":
            self.ended.add(name)

    def text(self, name: str) -> str:
        screen = self.screens.get(name)
        return "" if screen is None else "\n".join(line.text for line in screen.read().visible)

    def close(self) -> None:
        self._client.close()


def test_several_terminals_are_followed_over_one_stream(stage: Stage) -> None:
    for backend in BACKENDS:
        stage.start(f"In-{backend}", backend, turns=[{"when": "colour", "say": ["\x1b[31mred\x1b[0m <b>bold</b>"]}])
    names = [f"In-{backend}" for backend in BACKENDS]
    view = View(stage.daemon, *names)
    until(lambda: set(view.screens) == set(names), "both are drawn")
    assert set(view.sizes.values()) == {(120, 40)}
    with open_api(stage.daemon) as http:
        for name in names:
            assert http.post(f"/api/v1/agents/{name}/input", json={"text": "hello there\n"}).status_code == 200
        for name in names:
            until(lambda name=name: "hello there" in view.text(name), f"what was typed to {name} is shown")
    late = View(stage.daemon, *names)  # what was shown before it came is in its first drawing
    for name in names:
        until(lambda name=name: late.text(name) == view.text(name) and "hello there" in late.text(name), f"{name} is the same")
    stage.agents[0].process.terminate()
    until(lambda: names[0] in view.ended, "the end is told")
    view.close()
    late.close()


def test_a_new_size_is_told(stage: Stage) -> None:
    agent = stage.start("Bob", "pty", person=True)
    view = View(stage.daemon, "bob")
    until(lambda: view.sizes.get("Bob") == (120, 40), "the first size")
    assert agent.window is not None
    agent.window.resize(90, 30)
    until(lambda: view.sizes["Bob"] == (90, 30), "the new size")
    view.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_messages_wait_while_somebody_has_the_keyboard(stage: Stage, backend: str) -> None:
    bob = stage.start("Bob", backend)
    server = Server(stage.daemon)
    http = open_api(stage.daemon)
    taken = http.post("/api/v1/agents/bob/keyboard").json()
    until(lambda: server.agent("Bob")["paused"], "it is paused")
    assert http.post("/api/v1/agents/Bob/keyboard").status_code == 409
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "for later")
        http.post("/api/v1/agents/Bob/input", json={"text": "mine\r"})
        until(lambda: "mine" in bob.submitted, "what was typed arrives")
        assert bob.messages == []
        kept = http.post("/api/v1/agents/Bob/keyboard", json={"holder": taken["holder"]}).json()
        assert kept["holder"] == taken["holder"]
        assert http.post("/api/v1/agents/Bob/keyboard/release", json={"holder": "wrong"}).json() == {"success": False}
        assert server.agent("Bob")["paused"]
        assert http.post("/api/v1/agents/Bob/keyboard/release", json={"holder": taken["holder"]}).json() == {"success": True}
        until(lambda: bob.messages == ["for later"], "the message follows")
    http.close()
    server.close()


def test_wrong_names_are_told(http: httpx.Client, server: Server) -> None:
    server.join("Plain")
    for agents, status in (("Nobody", 404), ("", 422), (",", 422), (",".join(["Plain"] * 17), 422), ("../x", 422)):
        assert http.get("/api/v1/terminals/stream", params={"agents": agents}).status_code == status, agents
    assert http.post("/api/v1/agents/Plain/keyboard").status_code == 409  # the relay does not run it
    assert http.post("/api/v1/agents/Nobody/keyboard").status_code == 404
