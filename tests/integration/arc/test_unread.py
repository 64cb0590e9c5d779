"""Messages that a client did not read are not delivered: they come again, with their ids and in order, until it did."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.integration.arc.stage import DEADLINE_S, FREE, Client, Member, Stage

MANY = 200


@contextmanager
def deaf(stage: Stage, member: Member) -> Iterator[socket.socket]:
    """A client that reads nothing after the upgrade: what it is sent stays in the system's buffers, which take all of it."""
    address = stage.url.removeprefix("http://")
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as connection:
        connection.sendall(
            f"GET /arc HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            f"Authorization: Bearer {member.token}\r\n\r\n".encode()
        )
        assert connection.recv(12) == b"HTTP/1.1 101"
        yield connection


def wait_for(connection: socket.socket, text: str) -> None:
    """Until the system holds that for a client which does not read it."""
    deadline = time.monotonic() + DEADLINE_S
    while text.encode() not in connection.recv(1 << 20, socket.MSG_PEEK):
        assert time.monotonic() < deadline, "it was not sent"


def read(client: Client, count: int) -> tuple[list[Any], list[str]]:
    found = [client.next() for _ in range(count)]
    return [one["payload"] for one in found], [one["id"] for one in found]


def test_what_was_written_to_a_connection_that_died_comes_again(stage: Stage) -> None:
    bob = stage.register()
    with stage.connect() as alice:
        with deaf(stage, bob) as connection:
            for number in range(MANY):
                alice.send([bob.id], number)
            wait_for(connection, f'"payload":{MANY - 1},')
        with stage.connect(bob) as back:
            payloads, ids = read(back, MANY)
            assert payloads == list(range(MANY))
            back.connection.ping().wait(DEADLINE_S)  # everything before is answered, so it is read
        with stage.connect(bob) as again:
            assert again.ask("ping")["type"] == "pong"  # nothing comes a third time
        history = [one["id"] for one in alice.command("history", limit=MANY)["messages"]]
        assert ids == history


def test_a_kill_of_the_relay_loses_none_of_them_either(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE)
    bob, ann = stage.register("bob-1"), stage.register("ann-1")
    with deaf(stage, bob) as connection, stage.connect(ann, close_timeout=0.2) as alice:
        for number in range(MANY):
            alice.send([bob.id], number)
        wait_for(connection, f'"payload":{MANY - 1},')
        stage.daemon.kill()
    stage.daemon.start()
    stage.find()
    with stage.connect(bob) as back:
        assert read(back, MANY)[0] == list(range(MANY))


def test_whoever_waits_for_delivery_is_told_when_it_was_read(stage: Stage) -> None:
    bob = stage.register()
    with deaf(stage, bob):
        told = stage.http.post("/api/v1/messages", json={"to": bob.id, "body": "x", "await_ms": 300}).json()
        assert (told["delivered"], told["by"]) == (False, [])
    with stage.connect(bob) as client:
        assert client.next()["payload"]["body"] == "x"
        told = stage.http.post("/api/v1/messages", json={"to": bob.id, "body": "y", "await_ms": 20_000}).json()
        assert (told["delivered"], told["by"]) == (True, [bob.id])


def test_receipts(stage: Stage) -> None:
    bob = stage.register()
    with stage.connect() as alice:
        alice.send([bob.id, "never-there"], "x", receipt=True, ref=7)
        receipt = alice.next()
        assert (receipt["type"], receipt["from"], receipt["to"], receipt["ref"]) == ("receipt", "relay", [alice.me], 7)
        assert receipt["payload"]["stored"] == [bob.id]
        assert receipt["payload"]["unknown"] == ["never-there"]
        alice.send([bob.id, "never-there"], "y")
        assert alice.ask("ping")["type"] == "pong"  # the silence of who did not ask
        assert "receipt" in alice.welcome["capabilities"]
    with stage.connect(bob) as client:
        first = client.next()
        assert (first["id"], first["to"]) == (receipt["payload"]["id"], [bob.id, "never-there"])
