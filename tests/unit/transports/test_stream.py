"""One connection over real sockets: one write a turn, a reader that stalls stops only itself, and closing says its last words."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from typing import Any

import pytest

from agent_relay.protocol.framing import encode_frame
from agent_relay.protocol.states import CloseReason
from agent_relay.transports import stream
from agent_relay.transports.stream import trace

from .parts import FRAME, RecordingPeer, count_writes, run, serve, until

LARGE = encode_frame(b"x" * 1_000_000)


def test_frames_arrive_whole_and_in_order_however_they_are_cut(loop_kind: str, path: str) -> None:
    async def test() -> None:
        async with serve(path) as served:
            client, peer = await served.connect()
            bodies = [bytes([65 + number]) * number * 100 for number in range(20)]
            data = b"".join(map(encode_frame, bodies))
            for start in range(0, len(data), 777):
                await asyncio.get_running_loop().sock_sendall(client, data[start : start + 777])
            await until(lambda: len(peer.frames) == len(bodies))
            assert peer.frames == bodies
            assert peer.uid == os.geteuid()

    run(loop_kind, test)


def test_everything_said_in_a_turn_is_one_write(loop_kind: str, path: str) -> None:
    async def test() -> None:
        async with serve(path) as served:
            client, peer = await served.connect()
            transport = count_writes(peer)
            served.relay.answer = lambda peer, frames: [peer.connection.send(encode_frame(frame)) for frame in frames]  # type: ignore[assignment, func-returns-value]
            client.send(FRAME * 50)
            assert await served.read(client, 50 * len(FRAME)) == FRAME * 50
            assert len(transport.writes) == 1
            served.pump.run(lambda: [peer.connection.send(FRAME) for _ in range(7)])  # type: ignore[arg-type, return-value]
            assert await served.read(client, 7 * len(FRAME)) == FRAME * 7
            assert len(transport.writes) == 2

    run(loop_kind, test)


def test_a_frame_over_the_limit_is_told_from_its_header(loop_kind: str, path: str) -> None:
    async def test() -> None:
        async with serve(path, max_frame_bytes=1_024) as served:
            client, peer = await served.connect()
            client.send(FRAME + (5_000_000).to_bytes(4, "big") + b"body")
            await until(lambda: peer.told)
            assert peer.told == [("oversized", 5_000_000)]
            assert len(peer.frames) == 1

    run(loop_kind, test)


def test_a_failure_while_hearing_is_told_to_the_relay_and_logged(
    loop_kind: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_peer: RecordingPeer, _frames: list[bytes]) -> None:
        raise RuntimeError("ours")

    async def test() -> None:
        async with serve(path) as served:
            served.relay.answer = fail
            client, peer = await served.connect()
            client.send(FRAME)
            await until(lambda: peer.told)
            assert peer.told == ["crashed"]

    run(loop_kind, test)
    assert "internal_error" in caplog.text


@pytest.mark.parametrize("how", ["close", "shutdown"])
def test_a_client_that_goes_is_told_once(loop_kind: str, path: str, how: str) -> None:
    async def test() -> None:
        async with serve(path) as served:
            client, peer = await served.connect()
            if how == "close":
                client.close()
            else:
                client.shutdown(socket.SHUT_WR)
            await until(lambda: not served.server.connections)
            assert peer.told == [CloseReason.CLIENT_GONE]

    run(loop_kind, test)


# --- readers that do not read -------------------------------------------------------------------------------------------


def test_a_reader_that_stalls_stops_only_itself(loop_kind: str, path: str) -> None:
    async def test() -> None:
        async with serve(path) as served:
            _, stalled = await served.connect()
            reader, lively = await served.connect()
            transport = count_writes(stalled)
            for _ in range(8):
                for peer in (stalled, lively):
                    served.pump.run(lambda peer=peer: peer.connection.send(LARGE))  # type: ignore[misc]
                assert await served.read(reader, len(LARGE)) == LARGE
            assert len(transport.writes) == 1  # nothing more is given to the system before it has taken that
            assert stalled.connection.unsent_bytes > 7 * len(LARGE)
            assert lively.connection.unsent_bytes == 0

    run(loop_kind, test)


def test_a_reader_that_goes_on_reading_gets_all_of_it_and_the_relay_hears_that_it_drained(loop_kind: str, path: str) -> None:
    async def test() -> None:
        async with serve(path) as served:
            client, peer = await served.connect()
            frames = [encode_frame(bytes([65 + number]) * 500_000) for number in range(8)]
            for frame in frames:
                served.pump.run(lambda frame=frame: peer.connection.send(frame))  # type: ignore[misc]
            await until(lambda: peer.connection.unsent_bytes)
            peer.connection.notify_drained = True
            assert not peer.told
            assert await served.read(client, sum(map(len, frames))) == b"".join(frames)
            await until(lambda: peer.told)
            assert peer.told == ["drained"]
            assert peer.connection.unsent_bytes == 0
            assert peer.connection.notify_drained is False

    run(loop_kind, test)


def test_whoever_asks_to_hear_it_hears_at_once_if_nothing_is_left(loop_kind: str, path: str) -> None:
    async def test() -> None:
        async with serve(path) as served:
            _, peer = await served.connect()
            peer.connection.notify_drained = True
            served.pump.run(lambda: peer.connection.send(FRAME))
            await until(lambda: peer.told)
            assert peer.told == ["drained"]

    run(loop_kind, test)


def test_a_client_that_never_reads_its_answers_is_not_read_from_without_end(
    loop_kind: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_STOP_READING_BYTES", 2_000_000)

    async def test() -> None:
        async with serve(path) as served:
            client, peer = await served.connect()
            other, _ = await served.connect()
            connection: Any = peer.connection

            def answer(asker: RecordingPeer, frames: list[bytes]) -> None:
                for _ in frames:
                    asker.connection.send(LARGE if asker is peer else FRAME)

            served.relay.answer = answer
            while not connection._reading_paused:
                heard = len(peer.frames)
                client.send(FRAME)
                await until(lambda heard=heard: len(peer.frames) > heard)  # type: ignore[misc]
                await until(lambda: not connection._queued)
            heard = len(peer.frames)
            assert 2_000_000 < connection.unsent_bytes < 4_000_000
            client.send(FRAME * 5)
            for _ in range(5):  # the loop comes round several times, and it is still not read from
                other.send(FRAME)
                assert await served.read(other, len(FRAME)) == FRAME
            assert len(peer.frames) == heard
            assert await served.read(client, heard * len(LARGE)) == LARGE * heard
            assert await served.read(client, 5 * len(LARGE)) == LARGE * 5
            assert len(peer.frames) == heard + 5

    run(loop_kind, test)


def test_stuck_is_who_has_made_no_progress_for_that_long(loop_kind: str, path: str) -> None:
    async def test() -> None:
        async with serve(path, slow_consumer_ms=30_000) as served:
            client, peer = await served.connect()
            _, idle = await served.connect()
            for _ in range(4):
                served.pump.run(lambda: peer.connection.send(LARGE))
            await until(lambda: peer.connection.unsent_bytes)
            served.server.check_slow_readers()
            served.clock.advance(29_999)
            served.server.check_slow_readers()
            assert not peer.told
            await served.read(client, 300_000)  # a little progress is progress
            served.clock.advance(1)
            served.server.check_slow_readers()
            served.clock.advance(29_999)
            served.server.check_slow_readers()
            assert not peer.told
            served.clock.advance(1)
            served.server.check_slow_readers()
            assert peer.told == [CloseReason.SLOW_CONSUMER]
            await until(lambda: len(served.server.connections) == 1)
            assert not idle.told

    run(loop_kind, test)


# --- closing ----------------------------------------------------------------------------------------------------------


def test_closing_says_its_last_words_first(loop_kind: str, path: str) -> None:
    async def test() -> None:
        async with serve(path) as served:
            client, peer = await served.connect()

            def goodbye() -> None:
                peer.connection.send(FRAME)
                peer.connection.close(CloseReason.SHUTDOWN)

            served.pump.run(goodbye)
            assert await served.read_to_end(client) == FRAME
            await until(lambda: not served.server.connections)
            assert peer.told == []  # the relay is not told about a close it asked for

    run(loop_kind, test)


def test_closing_a_slow_reader_waits_for_it_to_read_its_last_words(loop_kind: str, path: str) -> None:
    async def test() -> None:
        async with serve(path) as served:
            client, peer = await served.connect()
            served.pump.run(lambda: peer.connection.send(LARGE))
            await until(lambda: peer.connection.unsent_bytes)

            def goodbye() -> None:
                peer.connection.send(FRAME)
                peer.connection.close(CloseReason.SHUTDOWN)

            served.pump.run(goodbye)
            assert await served.read_to_end(client) == LARGE + FRAME

    run(loop_kind, test)


def test_a_reader_that_does_not_even_read_its_last_words_is_cut_off(
    loop_kind: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_CLOSE_GRACE_S", 0.05)

    async def test() -> None:
        async with serve(path) as served:
            client, peer = await served.connect()
            served.pump.run(lambda: peer.connection.send(LARGE))
            await until(lambda: peer.connection.unsent_bytes)
            served.pump.run(lambda: peer.connection.close(CloseReason.SHUTDOWN))
            await until(lambda: not served.server.connections)
            assert len(await served.read_to_end(client)) < len(LARGE)
            assert peer.told == []

    run(loop_kind, test)


@pytest.mark.parametrize("reason", [CloseReason.SLOW_CONSUMER, CloseReason.HEARTBEAT_TIMEOUT])
def test_one_that_is_known_not_to_listen_is_cut_off_at_once(loop_kind: str, path: str, reason: CloseReason) -> None:
    async def test() -> None:
        async with serve(path) as served:
            _, peer = await served.connect()
            served.pump.run(lambda: peer.connection.send(LARGE))
            await until(lambda: peer.connection.unsent_bytes)
            served.pump.run(lambda: peer.connection.close(reason))
            await until(lambda: not served.server.connections)
            assert peer.told == []

    run(loop_kind, test)


def test_after_closing_nothing_is_heard_and_closing_again_is_nothing(loop_kind: str, path: str) -> None:
    async def test() -> None:
        async with serve(path) as served:
            client, peer = await served.connect()
            peer.connection.close(CloseReason.CLIENT_BYE)
            peer.connection.close(CloseReason.SHUTDOWN)
            client.send(FRAME)
            await until(lambda: not served.server.connections)
            assert peer.frames == []
            assert peer.told == []
            peer.connection.send(FRAME)  # never raises, whatever has become of it

    run(loop_kind, test)


def test_a_connection_alone_does_not_know_its_user() -> None:
    connection: Any = stream.StreamConnection(None, 1)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError):
        connection.identify(None)
    assert connection.ended


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        (b'{"type":"SEND","id":"i1","to":"Bob","payload":{"body":"SECRET"}}', ("SEND", "i1", "Bob")),
        (b'{"type":"SEND","id":"i1","to":["A","B"],"payload":{"body":"SECRET"}}', ("SEND", "i1", ["A", "B"])),
        (b'{"type":"HELLO","id":"i1","payload":{"session":{"resume_token":"SECRET"}}}', ("HELLO", "i1", None)),
        (b'{"type":5,"id":"SECRET"}', ("?", "?", None)),
        (b"SECRET", ("?", "?", None)),
        (b"\xffSECRET", ("?", "?", None)),
        (b'{"x":' + b"[" * 5_000 + b"]" * 5_000 + b"}", ("?", "?", None)),
    ],
)
def test_the_outline_and_nothing_else(caplog: pytest.LogCaptureFixture, frame: bytes, shown: tuple[object, ...]) -> None:
    with caplog.at_level(logging.DEBUG, "agent_relay"):
        trace("heard", [frame])
    (record,) = caplog.records
    fields = record.relay_fields  # type: ignore[attr-defined]
    assert (fields["type"], fields["id"], fields["to"]) == shown
    assert fields["bytes"] == len(frame)
    assert "SECRET" not in repr(fields) + record.getMessage()
