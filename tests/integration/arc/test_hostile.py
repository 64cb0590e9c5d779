"""Clients that mean harm. Whatever one of them does, the others talk on, nothing fails inside, and nothing piles up."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

from tests.integration.arc.stage import DEADLINE_S, FREE, Client, Stage

MOST_GROWTH_BYTES = 24 * 1024 * 1024  # what a dozen attacks may leave behind, with what the allocator keeps for the next time


def frame(kind: Opcode, content: bytes = b"", *, is_last: bool = True) -> bytes:
    return Frame(kind, content, fin=is_last).serialize(mask=True)


def text(message: object) -> bytes:
    return frame(Opcode.TEXT, json.dumps(message).encode())


class Canary:
    """Two agents that talk all the time. What one says the other hears, once and in order, whoever else is there."""

    def __init__(self, speaker: Client, listener: Client) -> None:
        self._speaker = speaker
        self._listener = listener
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._talk)
        self.count = 0
        self.slowest_s = 0.0
        self.error: BaseException | None = None
        self._thread.start()

    def _talk(self) -> None:
        try:
            while not self._is_over.is_set():
                began = time.monotonic()
                self._speaker.send([self._listener.me], self.count)
                assert self._listener.next()["payload"] == self.count
                self.count += 1
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                self._is_over.wait(0.01)
        except BaseException as error:  # noqa: BLE001 - told to the test, in its own thread
            self.error = error

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join(2 * DEADLINE_S)
        assert self.error is None, self.error
        assert self.count, "nothing was said"


@pytest.fixture
def canary(stage: Stage) -> Iterator[Canary]:
    with stage.connect() as speaker, stage.connect() as listener:
        found = Canary(speaker, listener)
        yield found
        found.stop()


@pytest.fixture(scope="module", autouse=True)
def unharmed(stage: Stage) -> Iterator[None]:
    """When all is over: no failure of ours is in the log, and the memory is about what it was."""
    with stage.connect() as first:
        first.ask("ping")
    before = _resident_bytes(stage)
    yield
    with stage.connect() as last:
        assert last.ask("ping")["type"] == "pong"
    log = (stage.daemon.state_dir / "daemon.log").read_text()
    for word in ("internal_error", "http_failed", "Traceback", "Exception"):
        assert word not in log
    assert _resident_bytes(stage) - before < MOST_GROWTH_BYTES


def _resident_bytes(stage: Stage) -> int:
    pages = int(Path(f"/proc/{stage.daemon.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def open_raw(stage: Stage) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(stage.url.rsplit(":", 1)[1])), DEADLINE_S)


def send_raw(client: Client, data: bytes) -> None:
    """Until all is sent, or the relay has had enough."""
    with suppress(ConnectionError, TimeoutError):
        client.connection.socket.sendall(data)


def leave_half_a_frame(stage: Stage) -> None:
    for cut in (1, 3, 7, 5_000):
        with stage.connect() as client:
            send_raw(client, frame(Opcode.TEXT, b"x" * 60_000)[:cut])
            client.connection.socket.shutdown(socket.SHUT_RDWR)


def begin_a_message_that_never_ends(stage: Stage) -> None:
    with stage.connect() as client:
        send_raw(client, frame(Opcode.TEXT, b"{", is_last=False) + frame(Opcode.CONT, is_last=False) * 50_000)
        send_raw(client, frame(Opcode.PING, b"still there?"))
        with suppress(TimeoutError):
            client.connection.recv(0.2)


def skip_for_ever(stage: Stage) -> None:
    """A message that is too large already goes on, an empty fragment at a time."""
    with stage.connect() as client:
        send_raw(client, frame(Opcode.TEXT, b"x" * 70_000, is_last=False) + frame(Opcode.CONT, is_last=False) * 50_000)
        send_raw(client, frame(Opcode.CONT))
        assert client.next()["error"] == "message_too_large"


def announce_more_than_there_is(stage: Stage) -> None:
    with stage.connect() as client:
        send_raw(client, b"\x81\xff" + (2**63 - 1).to_bytes(8) + b"mask")
        assert client.expect_close() == 1009
    with stage.connect() as client:
        send_raw(client, b"\x81\xff" + (2**64 - 1).to_bytes(8) + b"mask")
        assert client.expect_close() == 1009


def flood_with_nonsense(stage: Stage) -> None:
    with stage.connect() as client:
        send_raw(client, frame(Opcode.TEXT, b"null") * 5_000)
        assert all(client.next()["error"] == "invalid_message" for _ in range(5_000))


def flood_with_commands_and_read_nothing(stage: Stage) -> None:
    with stage.connect(max_queue=1, close_timeout=0.5) as client:
        asking = text({"to": ["relay"], "type": "command", "payload": {"command": "history", "limit": 500}, "ref": "x" * 1_000})
        client.connection.socket.settimeout(2)
        for _ in range(200):
            send_raw(client, asking * 20)


def flood_with_pings_and_read_nothing(stage: Stage) -> None:
    with stage.connect(max_queue=1, close_timeout=0.5) as client:
        client.connection.socket.settimeout(2)
        send_raw(client, frame(Opcode.PING, b"x" * 125) * 50_000)


def flood_with_closes(stage: Stage) -> None:
    for _ in range(20):
        with stage.connect(close_timeout=0.5) as client:
            send_raw(client, frame(Opcode.CLOSE, b"\x03\xe8") * 500 + text({"to": ["*"], "payload": "after the end"}) * 50)
    with stage.connect() as client:
        send_raw(client, frame(Opcode.CLOSE, b"\x00"))  # half a code
        with pytest.raises(ConnectionClosed):
            client.read_all()


def come_and_go(stage: Stage) -> None:
    """The same agent over and over, each connection taking the place of the one before, half of them without a goodbye."""
    member = stage.register()
    with ExitStack() as stack:
        for number in range(60):
            client = stack.enter_context(stage.connect(member))
            if number % 2:
                client.connection.socket.shutdown(socket.SHUT_RDWR)


def say_nothing_by_the_hundred(stage: Stage) -> None:
    """Connections that are never used, and requests that are begun and never ended."""
    with ExitStack() as stack:
        for number in range(400):
            raw = stack.enter_context(open_raw(stage))
            if number % 2:
                raw.sendall(b"GET /arc?token=tok_half HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        with stage.connect() as client:
            assert client.ask("ping")["type"] == "pong"


def say_anything_but_http(stage: Stage) -> None:
    garbage = [
        os.urandom(4_096),
        b"\x16\x03\x01\x02\x00\x01" * 50,
        b"\r\n" * 1_000,
        b"GET " + b"/" * 100_000,
        text({"to": ["*"]}),
    ]
    garbage.append(b"GET /arc HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(20_000)) + b"\r\n")
    garbage.append(
        b"GET /arc HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nBad\xff\x00Name: x\r\n\r\n"
    )
    for data in garbage:
        heard = b""
        with open_raw(stage) as raw:
            with suppress(OSError):  # it may have hung up on us already
                raw.sendall(data)
                raw.shutdown(socket.SHUT_WR)
            with suppress(ConnectionError):
                heard = raw.recv(65_536)
        assert heard.startswith(b"HTTP/1.1 4") or not heard


def nest_deeply(stage: Stage) -> None:
    with stage.connect() as client:
        for content in (b"[" * 30_000 + b"]" * 30_000, b'{"a":' * 10_000 + b"1" + b"}" * 10_000, b'{"to":' + b"[" * 60_000):
            for whole in (content, b'{"to":["*"],"payload":' + content + b"}", b'{"to":["relay"],"ref":' + content + b"}"):
                send_raw(client, frame(Opcode.TEXT, whole[:65_000]))
                assert client.next()["error"] == "invalid_message"


def name_everybody_a_thousand_times(stage: Stage) -> None:
    with stage.connect() as client:
        send_raw(client, text({"to": [client.me] * 5_000, "payload": "once"}))
        assert client.next()["payload"] == "once"
        send_raw(client, text({"to": [f"nobody-{number}" for number in range(4_000)], "payload": "x"}))
        assert client.ask("ping")["type"] == "pong"


ATTACKS: list[Callable[[Stage], None]] = [
    leave_half_a_frame,
    begin_a_message_that_never_ends,
    skip_for_ever,
    announce_more_than_there_is,
    flood_with_nonsense,
    flood_with_commands_and_read_nothing,
    flood_with_pings_and_read_nothing,
    flood_with_closes,
    come_and_go,
    say_nothing_by_the_hundred,
    say_anything_but_http,
    nest_deeply,
    name_everybody_a_thousand_times,
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_the_others_do_not_notice(stage: Stage, canary: Canary, attack: Callable[[Stage], None]) -> None:
    attack(stage)
    said = canary.count
    until = time.monotonic() + DEADLINE_S
    while canary.count <= said and canary.error is None:  # they still talk
        assert time.monotonic() < until
        time.sleep(0.01)
    assert canary.slowest_s < DEADLINE_S


def test_memory_does_not_grow_with_attacks(make_stage: Callable[..., Stage]) -> None:
    """The same again and again: after the first time there is room for it."""
    stage = make_stage(*FREE)
    grown = []
    for _ in range(4):
        begin_a_message_that_never_ends(stage)
        skip_for_ever(stage)
        flood_with_pings_and_read_nothing(stage)
        grown.append(_resident_bytes(stage))
    assert grown[-1] - grown[0] < MOST_GROWTH_BYTES / 4


def test_what_waited_comes_in_order_whatever_is_done_in_the_middle_of_it(make_stage: Callable[..., Stage]) -> None:
    """What it has not shown to have read comes to the next connection."""
    stage = make_stage(*FREE)
    attacks = [
        b"\x81\x02{}",  # not masked
        frame(Opcode.PING, b"x" * 125) * 20_000,
        frame(Opcode.TEXT, b"null") * 5_000 + frame(Opcode.TEXT, b"x" * 60_000)[:5_000],
        frame(Opcode.CLOSE, b"\x03\xe8") * 20,
    ]
    with stage.connect() as writer:
        for attack in attacks:
            member = stage.register()
            for number in range(600):
                writer.send([member.id], f"{number:03d}{'x' * 12_000}")
            assert writer.ask("ping")["type"] == "pong"
            with stage.connect(member, max_queue=1, close_timeout=0.2) as client:
                read = [int(client.next()["payload"][:3]) for _ in range(5)]
                client.connection.socket.settimeout(1)
                send_raw(client, attack)
                client.connection.socket.shutdown(socket.SHUT_RDWR)
            with stage.connect(member) as client:
                rest = [int(client.next()["payload"][:3])]
                while rest[-1] < 599:
                    rest.append(int(client.next()["payload"][:3]))
                assert read == list(range(5))
                assert rest[0] <= 5
                assert rest == list(range(rest[0], 600))  # in order, none twice, none left out
                assert client.ask("ping")["type"] == "pong"  # and nothing follows
