"""One connection over a transport whose every step is seen, before a real core: the order of what is said at the end."""

from __future__ import annotations

import asyncio
import queue
from dataclasses import replace
from typing import Any, cast

import pytest

from agent_relay.transports.arc.connection import ArcConnection
from agent_relay.transports.arc.hooks import HookRunner
from agent_relay.transports.arc.limits import MessageRate
from agent_relay.transports.arc.upgrade import open_connection
from tests.unit.transports.arc.scene import MASK, Scene, Wire, payloads, play, text

TOO_LARGE = b"\x81\xff" + (2 << 20).to_bytes(8) + MASK


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
        async with asyncio.timeout(120):
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
        wire.is_stalled, wire.held = False, 0
        connection.resume_writing()  # it reads again, and gets what it was given already, and why it ends
        await scene.settle()
        assert len(wire.written) < 1_000_000
        assert close_codes(wire.written) == [4008]

    play(act)


def test_one_that_comes_while_the_relay_stops_is_told_to_come_again() -> None:
    async def act(scene: Scene) -> None:
        wire = Wire()
        await scene.hub.stop()
        open_connection(scene.hub, scene.registrar.records["ann-1"], cast("Any", wire), "127.0.0.1", b"key")
        assert wire.written.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nretry-after: 1\r\n" in wire.written
        assert not scene.hub.connections

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


MESSAGES = b"".join(text({"to": ["bob-1"], "payload": number}) for number in range(3))
PING = b"\x89\x80" + MASK
ENDS = {
    "over the limit": (text({"to": ["bob-1"], "payload": "over"}) * 10, 4029),
    "not UTF-8": (b"\x81\x81" + MASK + b"\xff", 1007),
    "answers that nobody reads": (text({"to": ["relay"], "type": "nonsense", "ref": "x" * 60_000}) * 150, 4008),
    "a frame that breaks the rules": (b"\xf1\x80" + MASK, 1002),
    "a goodbye": (b"\x88\x82" + MASK + b"\x03\xe8", 1000),
}


@pytest.mark.parametrize(("last", "code"), ENDS.values(), ids=ENDS.keys())
def test_what_was_said_before_the_end_is_passed_on_though_it_came_in_one_piece(last: bytes, code: int) -> None:
    async def act(scene: Scene) -> None:
        connection, wire = await scene.connect()
        _, other = await scene.connect("bob-1")
        scene.registrar.records["ann-1"].rate = MessageRate(3, 0, scene.harness.steady_ms)
        connection.data_received(PING + MESSAGES + last + MESSAGES)
        await scene.settle()
        assert close_codes(wire.written) == [code]
        assert payloads(other.written) == [0, 1, 2]
        assert wire.written.rfind(b"\x8a\x00") < wire.written.rfind(b"\x88")  # not even a pong comes after a close

    play(act)


def test_what_is_plain_and_what_is_not_arrives_in_the_order_it_was_said_in() -> None:
    async def act(scene: Scene) -> None:
        connection, wire = await scene.connect()
        _, other = await scene.connect("bob-1")

        def say(payload: Any, **more: Any) -> bytes:
            return text({"to": ["bob-1"], "payload": payload} | more)

        ask, nonsense = text({"to": ["relay"], "type": "ping"}), text({"to": [], "payload": "nobody"})
        chunk = say("0") + say(1) + say("2") + ask + say("3") + PING + say("4", type="t") + nonsense + say("5")
        for cut in (len(chunk), 30):
            other.written = wire.written = b""
            for at in range(0, len(chunk), cut):
                connection.data_received(chunk[at : at + cut])
            await scene.settle()
            assert payloads(other.written) == ["0", 1, "2", "3", "4", "5"]
            assert wire.written.count(b"\x8a\x00") == 1
            answers = payloads(wire.written.replace(b"\x8a\x00", b""))
            assert [answer.get("code") for answer in answers] == [None, "invalid_message"]

    play(act)


def test_hooks_hear_plain_messages_too() -> None:
    async def act(scene: Scene) -> None:
        hook = Register()
        scene.hub.hooks.append(HookRunner(hook))
        connection, _ = await scene.connect()
        connection.data_received(text({"to": ["bob-1"], "payload": "plain"}))
        heard = [hook.heard.get(timeout=30) for _ in range(2)]
        assert heard == [("joined", "ann-1"), ("routed", "plain")]

    play(act)


def test_a_plain_message_that_others_do_not_take_is_refused() -> None:
    async def act(scene: Scene) -> None:
        scene.hub.settings = replace(scene.hub.settings, max_frame_bytes=1_024)
        connection, wire = await scene.connect()
        _, other = await scene.connect("bob-1")
        sizes = [1_024 - len('{"body":""}'), 1_025 - len('{"body":""}')]
        connection.data_received(b"".join(text({"to": ["bob-1"], "payload": "x" * size}) for size in sizes))
        await scene.settle()
        assert [len(payload) for payload in payloads(other.written)] == sizes[:1]
        assert [answer["code"] for answer in payloads(wire.written)] == ["message_too_large"]

    play(act)


def test_changes_of_subscriptions_are_taken_a_few_at_a_time() -> None:
    async def act(scene: Scene) -> None:
        connection, wire = await scene.connect()
        change = text({"to": ["relay"], "type": "subscribe", "payload": {"agents": ["zoe-1"]}})
        connection.data_received(change * 1_000)
        await scene.settle()
        found = payloads(wire.written)
        assert sum(one.get("count") == 1 for one in found) == 32
        assert sum(one.get("code") == "rate_limit" for one in found) == 968
        wire.written = b""
        connection.data_received(change)  # they are answered: there is room again
        await scene.settle()
        assert payloads(wire.written) == [{"agents": ["zoe-1"], "count": 1}]

    play(act)


def test_there_are_so_many_subscriptions_and_no_more() -> None:
    async def act(scene: Scene) -> None:
        connection, wire = await scene.connect()

        def change(kind: str, *agents: str) -> None:
            wire.written = b""
            connection.data_received(text({"to": ["relay"], "type": kind, "payload": {"agents": agents}}))

        change("subscribe", *(f"agent-{number}" for number in range(1_000)))
        await scene.settle()
        assert payloads(wire.written)[0]["count"] == 1_000
        change("subscribe", "agent-1000")
        await scene.settle()
        assert payloads(wire.written)[0]["code"] == "rate_limit"
        change("unsubscribe", "agent-0")
        await scene.settle()
        change("subscribe", "agent-1000")
        await scene.settle()
        assert payloads(wire.written)[0]["count"] == 1_000

    play(act)


def test_who_watches_presence_is_forgotten_with_its_connection() -> None:
    async def act(scene: Scene) -> None:
        connection, wire = await scene.connect()
        connection.data_received(text({"to": ["relay"], "type": "command", "payload": {"command": "presence_subscribe"}}))
        bob, _ = await scene.connect("bob-1")
        bob.connection_lost(None)
        await scene.settle()
        assert payloads(wire.written)[1:] == [{"event": "join", "agent": "bob-1"}, {"event": "leave", "agent": "bob-1"}]
        connection.connection_lost(None)
        assert not scene.hub._watchers

    play(act)


def test_a_silent_peer_is_gone_once_it_was_asked() -> None:
    async def act(scene: Scene) -> None:
        connection, wire = await scene.connect()
        began = connection.heard_ms

        async def look(at_ms: int) -> list[int]:
            scene.hub._look_after(connection, began + at_ms)
            await scene.settle()
            return close_codes(wire.written)

        assert await look(25_000) == []  # pinged
        assert await look(44_999) == []
        assert await look(45_000) == [4008]

    play(act)


def test_a_relay_that_stood_still_asks_before_it_gives_anybody_up() -> None:
    async def act(scene: Scene) -> None:
        connection, wire = await scene.connect()
        began = connection.heard_ms
        scene.hub._look_after(connection, began + 600_000)  # the machine slept: nobody was pinged meanwhile
        await scene.settle()
        assert (wire.steps, wire.written) == ([], b"\x89\x010")
        scene.hub._look_after(connection, began + 619_999)
        await scene.settle()
        assert close_codes(wire.written) == []
        scene.hub._look_after(connection, began + 620_000)
        await scene.settle()
        assert close_codes(wire.written) == [4008]

    play(act)


def test_nobody_is_told_of_its_own_going() -> None:
    async def act(scene: Scene) -> None:
        connection, wire = await scene.connect()
        connection.data_received(text({"to": ["relay"], "type": "command", "payload": {"command": "presence_subscribe"}}))
        await scene.settle()
        wire.written = b""
        connection.data_received(b"\x88\x82" + MASK + b"\x03\xe8")
        assert payloads(wire.written) == [1000]

    play(act)


class Register:
    """A hook that writes down who is there, and what is said."""

    name = "register"

    def __init__(self) -> None:
        self.heard: queue.Queue[tuple[str, str]] = queue.Queue()

    def joined(self, agent_id: str) -> None:
        self.heard.put(("joined", agent_id))

    def left(self, agent_id: str) -> None:
        self.heard.put(("left", agent_id))

    def routed(self, message: dict[str, Any]) -> None:
        self.heard.put(("routed", message["payload"]))


def test_hooks_hear_who_comes_and_who_goes() -> None:
    async def act(scene: Scene) -> None:
        hook = Register()
        scene.hub.hooks.append(HookRunner(hook))
        connection, _ = await scene.connect()
        await scene.connect()  # takes its place
        assert connection.closed_with == 4000
        await scene.hub.stop()
        heard = [hook.heard.get(timeout=30) for _ in range(4)]
        assert sorted(heard) == [("joined", "ann-1"), ("joined", "ann-1"), ("left", "ann-1"), ("left", "ann-1")]

    play(act)
