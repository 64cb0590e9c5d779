"""One connection over a transport whose every step is seen, before a real core: the order of what is said at the end."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from agent_relay.transports.arc.connection import ArcConnection
from agent_relay.transports.arc.upgrade import open_connection
from tests.unit.transports.arc.scene import Scene, Wire, play

MASK = b"\0\0\0\0"
TOO_LARGE = b"\x81\xff" + (2 << 20).to_bytes(8) + MASK


def text(message: Any) -> bytes:
    content = json.dumps(message).encode()
    return b"\x81\xfe" + len(content).to_bytes(2) + MASK + content


def close_codes(written: bytes) -> list[int]:
    """Of the close frames at the end of what was written; they have no content but a few words."""
    at = written.rfind(b"\x88")
    return [int.from_bytes(written[at + 2 : at + 4])] if at >= 0 else []


def test_the_last_words_are_written_before_the_end_whatever_else_comes_in_the_same_turn() -> None:
    async def act(scene: Scene) -> None:
        connection, wire = await scene.connect()
        connection.data_received(TOO_LARGE)
        connection.data_received(b"x" * 100_000)
        await scene.settle()
        assert close_codes(wire.written) == [1009]
        assert wire.steps == ["eof"]  # the peer may still send: a close would reset the connection, and what it has not read
        connection.data_received(b"x" * 100_000)
        assert wire.steps == ["eof"]

    play(act)


def test_a_goodbye_that_crosses_ours_does_not_take_it_away() -> None:
    async def act(scene: Scene) -> None:
        connection, wire = await scene.connect()
        scene.hub.disconnect("ann-1", "The token was revoked.")
        connection.data_received(b"\x88\x82" + MASK + b"\x03\xe8")
        await scene.settle()
        assert close_codes(wire.written) == [4001]
        assert wire.steps == ["close"]

    play(act)


def test_one_that_says_goodbye_and_does_not_read_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(scene: Scene) -> None:
        monkeypatch.setattr(f"{ArcConnection.__module__}._CLOSE_GRACE_S", 0.01)
        connection, wire = await scene.connect()
        wire.is_stalled = True
        connection.data_received(text({"to": ["relay"], "type": "ping"}) + b"\x88\x82" + MASK + b"\x03\xe8")
        assert wire.steps == ["close"]  # which waits for what is not read
        async with asyncio.timeout(30):
            while wire.steps[-1] != "abort":
                await asyncio.sleep(0.01)

    play(act)


def test_answers_do_not_pile_up_for_one_that_asks_and_asks() -> None:
    async def act(scene: Scene) -> None:
        connection, wire = await scene.connect()
        connection.data_received(text({"to": ["relay"], "type": "subscribe", "payload": {"agents": ["x" * 60]}}))
        await scene.settle()
        wire.is_stalled = True
        connection.data_received(text({"to": ["relay"], "type": "ping", "ref": "x" * 60_000}) * 1_000)
        assert connection.closed_with == 4008
        await scene.settle()
        assert len(wire.written) < 1_000_000

    play(act)


def test_one_that_was_revoked_while_its_upgrade_was_answered_does_not_come_in() -> None:
    async def act(scene: Scene) -> None:
        record = scene.registrar.records["ann-1"]
        wire = Wire()
        revoking = asyncio.create_task(scene.registrar.revoke(record))
        await scene.settle()
        await revoking
        open_connection(scene.hub, record, cast("Any", wire), "127.0.0.1", b"key")
        assert wire.written.startswith(b"HTTP/1.1 401 ")
        assert not scene.hub.connections

    play(act)
