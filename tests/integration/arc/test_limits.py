"""How much is taken of one agent, and what becomes of clients that are too fast, too large, too slow or gone."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.integration.arc.stage import DEADLINE_S, FREE, Client, Stage


def test_over_the_limit_a_message_is_refused_and_ten_in_a_row_end_it(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage("--arc-rate-limit=5")
    bob = stage.register()
    with stage.connect() as alice, stage.connect(bob) as other:
        assert alice.welcome["limits"]["rate_limit"] == "5/min"
        for number in range(5):
            alice.send([bob.id], number)
            alice.ask("ping")  # commands do not count
        for number in range(9):
            alice.send([bob.id], "over", ref=number)
            refused = alice.next()
            assert (refused["error"], refused["ref"]) == ("rate_limit", number)
        alice.send([bob.id], "over")
        assert alice.next()["error"] == "rate_limit"
        assert alice.expect_close() == 4029
        assert [other.next()["payload"] for _ in range(5)] == list(range(5))
        assert other.ask("ping")["type"] == "pong"


def test_the_limit_is_an_agents_and_not_a_connections(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage("--arc-rate-limit=2")
    alice = stage.register()
    for _ in range(2):
        with stage.connect(alice) as client:
            client.send([alice.id], "x")
            assert client.next()["payload"] == "x"
    with stage.connect(alice) as client:
        client.send([alice.id], "x")
        assert client.next()["error"] == "rate_limit"


def test_the_hourly_limit_counts_beside_the_burst(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage("--arc-rate-limit=100", "--arc-hourly-limit=3")
    with stage.connect() as alice:
        for _ in range(3):
            alice.send([alice.me], "x")
            assert alice.next()["payload"] == "x"
        alice.send([alice.me], "x")
        assert alice.next()["error"] == "rate_limit"


def test_trusted_agents_have_no_limit(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage("--arc-rate-limit=1", "--arc-trusted=vip-1")
    with stage.connect(stage.register("vip-1")) as vip:
        for number in range(50):
            vip.send([vip.me], number)
        assert [vip.next()["payload"] for _ in range(50)] == list(range(50))


def test_the_limits_can_be_looked_up(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage("--arc-rate-limit=7", "--arc-hourly-limit=70", "--arc-max-bytes=1000", "--token-ttl=1h", "--arc-ephemeral")
    found = stage.http.get("/api/v1/arc/limits").json()
    assert found["rate_limit"] == "7/min"
    assert (found["hourly_limit"], found["max_message_size"], found["token_ttl_ms"]) == (70, 1000, 3_600_000)
    assert (found["registrations_per_hour"], found["failed_auths_per_minute"]) == (30, 10)
    assert (found["ping_ms"], found["silence_ms"], found["stores_offline"]) == (25_000, 45_000, False)


# --- sizes -----------------------------------------------------------------------------------------------------------------


def of_size(to: str, size: int) -> str:
    empty = json.dumps({"to": [to], "payload": ""})
    return json.dumps({"to": [to], "payload": "x" * (size - len(empty))})


@pytest.mark.parametrize("pieces", [1, 3])
def test_the_largest_message_and_one_byte_more(stage: Stage, pieces: int) -> None:
    with stage.connect() as alice, stage.connect() as bob:
        for size, is_taken in ((65_536, True), (65_537, False), (1_048_576, False)):
            text = of_size(bob.me, size)
            step = -(-len(text) // pieces)
            alice.connection.send([text[at : at + step] for at in range(0, len(text), step)])
            if is_taken:
                assert len(bob.next()["payload"]) > 65_000
            else:
                refused = alice.next()
                assert refused["error"] == "message_too_large"
                assert str(size) in refused["message"]
        alice.send([bob.me], "still here")
        assert bob.next()["payload"] == "still here"


def test_beyond_a_mebibyte_nothing_is_read(stage: Stage) -> None:
    with stage.connect() as alice:
        head = bytes([0x81, 0x80 | 127]) + (1_048_577).to_bytes(8) + b"mask"
        alice.connection.socket.sendall(head)  # not a byte of the message itself
        assert alice.expect_close() == 1009


def test_fragments_are_counted_together(stage: Stage) -> None:
    with stage.connect() as alice:

        def pieces() -> Iterator[str]:
            for _ in range(1_100):
                yield "x" * 1_000

        with suppress(ConnectionClosed):
            alice.connection.send(pieces())
        assert alice.expect_close() == 1009


# --- frames that are none ----------------------------------------------------------------------------------------------------

BROKEN = {
    "not masked": (b"\x81\x02{}", 1002),
    "a bit of an extension": (b"\xc1\x82maskxx", 1002),
    "no such kind": (b"\x83\x80mask", 1002),
    "a long ping": (b"\x89\xfe\x00\x7emask" + b"x" * 126, 1002),
    "a ping in fragments": (b"\x09\x80mask", 1002),
    "a continuation of nothing": (b"\x80\x80mask", 1002),
    "two messages at once": (b"\x01\x81mask" + b"x" + b"\x81\x81mask" + b"x", 1002),
    "text that is not UTF-8": (b"\x81\x81\x00\x00\x00\x00\xff", 1007),
}


@pytest.mark.parametrize(("data", "code"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_stream_is_closed_with_its_code(stage: Stage, data: bytes, code: int) -> None:
    with stage.connect() as client:
        client.connection.socket.sendall(data)
        assert client.expect_close() == code


def test_a_flood_of_pings_is_answered_with_what_is_needed(stage: Stage) -> None:
    with stage.connect() as alice:
        alice.connection.socket.sendall(
            b"".join(bytes([0x89, 0x84]) + bytes(4) + number.to_bytes(4) for number in range(100_000))
        )
        assert alice.connection.ping().wait(DEADLINE_S)
        assert alice.ask("ping")["type"] == "pong"


# --- slow, silent, gone --------------------------------------------------------------------------------------------------------


@contextmanager
def stop_reading(stage: Stage) -> Iterator[Client]:
    """A client with small buffers that reads nothing beyond the welcome."""
    member = stage.register()
    port = int(stage.url.rsplit(":", 1)[1])
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    raw.connect(("127.0.0.1", port))
    url = f"ws://127.0.0.1:{port}/arc?token={member.token}"
    with connect(url, sock=raw, max_queue=1, ping_interval=None) as connection:
        yield Client(connection, member)


def test_a_reader_that_is_too_far_behind_is_closed_and_loses_nothing(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE, "--arc-slow-bytes=65536")
    found: list[Any] = []
    with stop_reading(stage) as slow, stage.connect() as alice, stage.connect() as bob:
        for number in range(200):
            alice.send([slow.me, bob.me], [number, "x" * 60_000])
            assert bob.next()["payload"][0] == number  # nobody else notices
        with pytest.raises(ConnectionClosed) as closed:
            slow.read_all(found)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4008
    seen = [number for number, _ in found]
    assert seen == list(range(len(seen)))
    assert len(seen) < 200
    with stage.connect(slow.member) as back:
        first = back.next()["payload"][0]
        assert 0 < first <= len(seen)  # the last that it got may come again
        rest = [back.next() for _ in range(199 - first)]
        assert [one["payload"][0] for one in rest] == list(range(first + 1, 200))
        assert all(one["stored"] for one in rest)


def test_a_silent_peer_is_gone_and_a_living_one_stays(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE, "--arc-ping-ms=2000")
    member = stage.register()
    port = int(stage.url.rsplit(":", 1)[1])
    with stage.connect() as living, socket.create_connection(("127.0.0.1", port)) as silent:
        silent.sendall(
            f"GET /arc HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            f"Authorization: Bearer {member.token}\r\n\r\n".encode()
        )
        silent.settimeout(DEADLINE_S)
        heard = b""
        while b"Silent" not in heard:  # in the words of its close
            piece = silent.recv(65_536)
            assert piece, "the connection broke without a word"
            heard += piece
        assert heard.startswith(b"HTTP/1.1 101 ")
        assert heard.rfind(b"\x88", 0, heard.find(b"Silent")) == heard.find(b"\x0f\xa8Silent") - 2  # a close of 4008
        assert b"\x89" in heard  # it was pinged, and did not answer
        assert living.ask("ping")["type"] == "pong"


def test_the_relay_says_when_it_stops(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE)
    with stage.connect() as client:
        began = time.monotonic()
        assert stage.daemon.terminate() == 0
        assert client.expect_close() == 1001
        assert time.monotonic() - began < DEADLINE_S


@pytest.mark.slow
def test_a_reader_that_reads_nothing_for_ten_seconds_is_closed(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE, "--arc-slow-bytes=1000000000")
    with stop_reading(stage) as slow, stage.connect() as alice:
        for _ in range(400):
            alice.send([slow.me], "x" * 60_000)
        began = time.monotonic()
        while _is_connected(stage, slow.me):
            assert time.monotonic() - began < 60
            assert alice.ask("ping")["type"] == "pong"
        assert time.monotonic() - began > 5
        assert slow.expect_close() == 4008


def _is_connected(stage: Stage, agent_id: str) -> bool:
    listed = stage.http.get("/api/v1/arc/agents").json()["agents"]
    return any(one["agent_id"] == agent_id and one["connected"] for one in listed)


def test_a_large_backlog_is_no_reason_to_call_a_reader_slow(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE)
    bob = stage.register()
    with stage.connect() as alice:
        for number in range(200):
            alice.send([bob.id], [number, "x" * 60_000])
        alice.command("history", limit=1)
        with stage.connect(bob) as back:
            assert [back.next()["payload"][0] for _ in range(200)] == list(range(200))
            alice.send([bob.id], "live")
            live = back.next()
            assert (live["payload"], "stored" in live) == ("live", False)
