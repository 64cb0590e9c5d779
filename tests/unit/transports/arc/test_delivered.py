"""What counts as delivered over ARC: what a client has shown to have read. The rest comes again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agent_relay.transports.arc.connection import ArcConnection
from tests.unit.transports.arc.scene import Scene, Wire, frames, payloads, play, pong, text


def said_ids(wire: Wire) -> list[str]:
    return [json.loads(content)["id"] for kind, content in frames(wire.written) if kind == 1]


async def send_numbers(scene: Scene, connection: ArcConnection, numbers: range) -> None:
    connection.data_received(b"".join(text({"to": ["bob-1"], "payload": number}) for number in numbers))
    await scene.settle()


def test_a_ping_follows_each_burst_and_what_was_read_before_it_is_delivered() -> None:
    async def act(scene: Scene) -> None:
        ann, _ = await scene.connect()
        bob, wire = await scene.connect("bob-1")
        await send_numbers(scene, ann, range(3))
        assert [kind for kind, _ in frames(wire.written)] == [1, 1, 1, 9]
        asked = frames(wire.written)[-1][1]
        await send_numbers(scene, ann, range(3, 5))
        bob.data_received(pong(b"") + pong(b"4") + pong(asked))  # what answers no ping of ours says nothing
        bob.connection_lost(None)
        await scene.settle()
        ids = said_ids(wire)
        bob, wire = await scene.connect("bob-1", keep=True)
        assert payloads(wire.written)[1:] == [3, 4]
        assert said_ids(wire)[1:] == ids[3:]

    play(act)


def test_two_hundred_that_nobody_read_come_again_with_their_ids_and_in_order_until_they_are() -> None:
    async def act(scene: Scene) -> None:
        ann, _ = await scene.connect()
        bob, wire = await scene.connect("bob-1")
        for first in range(0, 200, 10):
            await send_numbers(scene, ann, range(first, first + 10))
        ids = said_ids(wire)
        for _ in range(2):
            bob.connection_lost(None)
            bob, wire = await scene.connect("bob-1", keep=True)
            assert payloads(wire.written)[1:] == list(range(200))
            assert said_ids(wire)[1:] == ids
        for kind, content in frames(wire.written):
            if kind == 9:
                bob.data_received(pong(content))
        bob.connection_lost(None)
        _, wire = await scene.connect("bob-1", keep=True)
        assert payloads(wire.written)[1:] == []

    play(act)


def test_a_new_connection_gets_what_the_one_before_had_not_read() -> None:
    async def act(scene: Scene) -> None:
        ann, _ = await scene.connect()
        await scene.connect("bob-1")
        await send_numbers(scene, ann, range(3))
        _, wire = await scene.connect("bob-1", keep=True)
        assert payloads(wire.written)[1:] == [0, 1, 2]
        await send_numbers(scene, ann, range(3, 4))
        assert payloads(wire.written)[1:] == [0, 1, 2, 3]

    play(act)


def test_who_catches_up_is_not_thought_slow_though_it_answers_while_it_reads() -> None:
    async def act(scene: Scene) -> None:
        scene.hub.settings = replace(scene.hub.settings, slow_bytes=65_536)
        ann, _ = await scene.connect()
        for number in range(300):
            ann.data_received(text({"to": ["bob-1"], "payload": [number, "x" * 10_000]}))
            await scene.settle()
        bob, wire = await scene.connect("bob-1", keep=True)
        told = 0
        while bob.closed_with is None and len(payloads(wire.written)) <= 300:
            wire.is_stalled, wire.held = False, 0
            for content in [content for kind, content in frames(wire.written) if kind == 9][told:]:
                bob.data_received(pong(content))  # in the same moment as the system takes the rest
                told += 1
            bob.resume_writing()
            wire.is_stalled = True
            await scene.settle()
        assert bob.closed_with is None
        assert [payload[0] for payload in payloads(wire.written)[1:]] == list(range(300))

    play(act)


def test_a_sender_is_told_delivered_when_it_was_read_and_not_before() -> None:
    async def act(scene: Scene) -> None:
        sock = scene.harness.connect("Sock")
        bob, wire = await scene.connect("bob-1")
        sock.send("bob-1", "read me", meta={"requires_ack": True})
        sock.take()
        await scene.settle()
        assert sock.delivered() == []
        bob.data_received(pong(frames(wire.written)[-1][1]))
        await scene.settle()
        assert [said["by"] for said in sock.delivered()] == ["bob-1"]

    play(act)


def test_one_that_reads_and_never_answers_is_given_so_much_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(scene: Scene) -> None:
        monkeypatch.setattr("agent_relay.transports.arc.unread._MOST", 20)
        ann, _ = await scene.connect()
        bob, wire = await scene.connect("bob-1")
        for first in range(0, 100, 5):
            await send_numbers(scene, ann, range(first, first + 5))
        assert payloads(wire.written) == list(range(20))
        found: list[int] = []
        while len(found) < 100:  # it answers at last, and gets the rest as it reads
            before, wire.written = wire.written, b""
            assert before, "nothing more came"
            found += payloads(before)
            for kind, content in frames(before):
                if kind == 9:
                    bob.data_received(pong(content))
            await scene.settle()
        assert found == list(range(100))
        assert bob.closed_with is None

    play(act)
