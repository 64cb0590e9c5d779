"""Terminals of other hosts: the seat asks, their hosts answer, and nobody else is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_relay.cluster.asks import ANSWER_BYTES, Handler, Told
from agent_relay.daemon.cluster.screens import ClusterScreens, show_screens
from agent_relay.ports.watchers import Shown
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.storage.live_screens import LiveScreenFiles
from agent_relay.storage.screens import ScreenFiles

PLACES = {"Alice": "a", "Bob": "b", "Carol": "c"}
HEADER = '{"version": 2, "width": 80, "height": 24, "title": "t1"}\n'


class Line:
    """What is asked on `a` is answered on `b`; `c` does not answer."""

    def __init__(self) -> None:
        self.handler: Handler | None = None
        self.asker = "a"
        self.largest = 0

    def answer(self, kind: str, handler: Handler) -> None:
        assert kind == "screen"
        self.handler = handler

    def ask(self, host: str, kind: str, body: bytes, told: Told, patience_ms: int) -> None:
        assert (kind, patience_ms) == ("screen", 2_000)
        if host != "b":
            told(RelayError(ErrorCode.SERVICE_UNAVAILABLE, "Silent."))
            return
        assert self.handler is not None
        self.handler(self.asker, body, lambda said: self._carry(said, told))

    def _carry(self, said: bytes | RelayError, told: Told) -> None:
        assert isinstance(said, bytes)
        self.largest = max(self.largest, len(said))
        told(said)


def write(folder: Path, agent: str, rows: list[str], live: str = "") -> None:
    home = folder / "team" / agent
    home.mkdir(parents=True)
    (home / "screen.json").write_bytes(msgspec.json.encode({"rows": rows}))
    if live:
        (home / "live.cast").write_text(HEADER + live)


def look(tmp_path: Path, what: Callable[[ClusterScreens], Any], *, asker: str = "a") -> tuple[Any, Line]:
    async def do() -> tuple[Any, Line]:
        line: Any = Line()
        line.asker = asker
        here, there = tmp_path / "a", tmp_path / "b"
        show_screens(line, ScreenFiles(str(there)), LiveScreenFiles(str(there), ANSWER_BYTES), lambda host: host == "a")
        screens = ClusterScreens(
            "a", ScreenFiles(str(here)), LiveScreenFiles(str(here)), PLACES.__getitem__, line, asyncio.get_running_loop()
        )
        return await asyncio.to_thread(what, screens), line

    return asyncio.run(do())


def test_each_agent_is_seen_where_it_is(tmp_path: Path) -> None:
    write(tmp_path / "a", "Alice", ["here"])
    write(tmp_path / "b", "Bob", ["there"], '[0.1, "o", "drawn"]\n')
    assert look(tmp_path, lambda screens: screens.screen("Alice"))[0] == Shown(["here"])
    assert look(tmp_path, lambda screens: screens.screen("Bob"))[0] == Shown(["there"])
    assert look(tmp_path, lambda screens: screens.screen("Carol"))[0] is None
    news = look(tmp_path, lambda screens: screens.read("Bob", None))[0]
    assert (news.text, news.size) == ("drawn", (80, 24))
    assert look(tmp_path, lambda screens: screens.read("Bob", news.place))[0] is None


def test_an_answer_is_never_larger_than_a_message(tmp_path: Path) -> None:
    write(tmp_path / "b", "Bob", ["x" * 1_000] * 3_000, '[0.1, "o", "' + "y" * 1_000 + '"]\n' * 3_000)
    shown, line = look(tmp_path, lambda screens: screens.output("Bob", 5_000))
    assert 500 < len(shown.lines) < 600
    assert line.largest <= ANSWER_BYTES


def test_nobody_but_the_seat_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_relay.daemon.cluster.screens._WAIT_S", 0.2)
    write(tmp_path / "b", "Bob", ["there"])
    assert look(tmp_path, lambda screens: screens.screen("Bob"), asker="c")[0] is None


def test_no_name_leads_out_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_relay.daemon.cluster.screens._WAIT_S", 0.2)
    monkeypatch.setitem(PLACES, "../Bob", "b")
    write(tmp_path / "b", "Bob", ["there"])
    assert look(tmp_path, lambda screens: screens.screen("../Bob"))[0] is None
