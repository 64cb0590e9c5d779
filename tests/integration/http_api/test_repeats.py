"""Requests that are said twice under one key: done once, and answered alike. Also when the daemon was killed in between."""

from __future__ import annotations

import concurrent.futures
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from agent_relay.testing.daemon import DaemonProcess

from .server import DEADLINE_S, Server, problem, until

MESSAGES = "/api/v1/messages"


def keyed(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key}


def bodies_to(http: httpx.Client, name: str) -> list[str]:
    return [message["body"] for message in http.get(MESSAGES, params={"to": name, "order": "oldest"}).json()["messages"]]


@pytest.mark.parametrize("way", ["header", "id", "both"])
def test_the_answer_to_a_repeat_is_the_first_answer(server: Server, http: httpx.Client, way: str) -> None:
    bob = server.join()
    said = {"to": bob.name, "body": "once"} | ({} if way == "header" else {"id": f"key-{way}"})
    headers = {} if way == "id" else keyed(f"key-{way}")
    first, *others = [http.post(MESSAGES, json=said, headers=headers) for _ in range(3)]
    assert first.status_code == 201
    assert [(other.status_code, other.content) for other in others] == [(201, first.content)] * 2
    assert bodies_to(http, bob.name) == ["once"]
    assert http.post(MESSAGES, json=said | {"id": f"another-{way}"}, headers={}).json()["messageId"] != first.json()["messageId"]


def test_repeats_at_the_same_moment_are_one_message(server: Server, http: httpx.Client) -> None:
    bob = server.join()

    def post(_: int) -> bytes:
        return http.post(MESSAGES, json={"to": bob.name, "body": "once"}, headers=keyed("at-once")).content

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(post, range(24)))) == 1
    assert bodies_to(http, bob.name) == ["once"]


def test_a_key_is_for_one_request(server: Server, http: httpx.Client) -> None:
    bob, eve = server.join(), server.join()
    http.post(MESSAGES, json={"to": bob.name, "body": "x"}, headers=keyed("mine"))
    for said in ({"to": bob.name, "body": "y"}, {"to": eve.name, "body": "x"}, {"to": bob.name, "body": "x", "thread": "t"}):
        refused = http.post(MESSAGES, json=said, headers=keyed("mine"))
        assert problem(refused) == (422, "INVALID_FORMAT")
        assert refused.json()["error"]["details"]["reason"] == "key_reused"
    assert (bodies_to(http, bob.name), bodies_to(http, eve.name)) == (["x"], [])


def test_a_refusal_is_not_the_last_word(server: Server, http: httpx.Client) -> None:
    said, headers = {"to": "Late", "body": "x"}, keyed("too-early")
    assert http.post(MESSAGES, json=said, headers=headers).status_code == 404
    server.join("Late")
    assert http.post(MESSAGES, json=said, headers=headers).status_code == 201


def test_a_repeat_that_waits_is_told_who_has_it(server: Server, http: httpx.Client) -> None:
    bob = server.join()
    said = {"to": bob.name, "body": "x", "await_ms": 15_000, "id": "awaited"}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(http.post, MESSAGES, json=said) for _ in range(2)]
        next(iter(bob.messages())).ack()
        assert [answer.result(DEADLINE_S).json()["by"] for answer in answers] == [[bob.name]] * 2


@pytest.mark.parametrize("key", ["", "a b", "x" * 121])
def test_a_key_that_is_none_is_named(server: Server, http: httpx.Client, key: str) -> None:
    bob = server.join()
    refused = http.post(MESSAGES, json={"to": bob.name, "body": "x"}, headers=keyed(key))
    assert (problem(refused), refused.json()["error"]["details"]["field"]) == ((422, "INVALID_FORMAT"), "Idempotency-Key")
    refused = http.post(MESSAGES, json={"to": bob.name, "body": "x", "id": key})
    assert (problem(refused), refused.json()["error"]["details"]["field"]) == ((422, "INVALID_FORMAT"), "id")


def test_what_is_typed_twice_under_one_key_is_typed_once(server: Server, http: httpx.Client) -> None:
    bob = server.wrap()
    for _ in range(3):
        answer = http.post(f"/api/v1/agents/{bob.name}/input", json={"text": "y\n"}, headers=keyed("typed"))
        assert answer.json() == {"success": True}
    until(lambda: bool(bob.told), "it was told")
    bob.client.agents()  # whatever else it was told came before this answer
    assert [control.text for control in bob.told] == ["y\n"]


# --- killed in the middle -------------------------------------------------------------------------------------------------


class Life:
    """A daemon that is killed while a POST is under way, and another one that is asked the same."""

    def __init__(self) -> None:
        self.daemon = DaemonProcess("--port=0").start()
        self.url = self.daemon.wait_for_url()
        self.bob = self.daemon.connect_sync("Bob")
        self.bob.connect()

    def begin(self, said: dict[str, Any], key: str, leave_out: int = 0) -> socket.socket:
        """The request, but for its last bytes. Nobody reads the answer."""
        body = json.dumps(said).encode()
        host = self.url.removeprefix("http://")
        head = [
            f"POST {MESSAGES} HTTP/1.1", f"Host: {host}", "Content-Type: application/json", f"Content-Length: {len(body)}",
            f"Idempotency-Key: {key}", *(f"{name}: {value}" for name, value in self.daemon.api_headers.items()),
        ]  # fmt: skip
        name, port = host.split(":")
        connection = socket.create_connection((name, int(port)), timeout=DEADLINE_S)
        whole = "\r\n".join(head).encode() + b"\r\n\r\n" + body
        connection.sendall(whole[: len(whole) - leave_out])
        return connection

    def wait_for(self, body: str) -> None:
        for message in self.bob.messages():
            message.ack()
            if message.body == body:
                return

    def restart(self) -> httpx.Client:
        self.daemon.restart()
        self.url = self.daemon.wait_for_url()
        return httpx.Client(base_url=self.url, headers=self.daemon.api_headers, timeout=DEADLINE_S)


@pytest.fixture(scope="module")
def life() -> Iterator[Life]:
    found = Life()
    yield found
    found.bob.close(1)
    found.daemon.remove()


POINTS: dict[str, tuple[int, Callable[[Life, socket.socket], object]]] = {
    "before it was said whole": (3, lambda _life, _connection: None),
    "at once": (0, lambda _life, _connection: None),
    "when it was delivered": (0, lambda life, _connection: life.wait_for("when it was delivered")),
    "when the answer was on its way": (0, lambda _life, connection: connection.recv(1)),
}


@pytest.mark.parametrize(("leave_out", "until_"), POINTS.values(), ids=POINTS.keys())
def test_a_post_that_a_kill_interrupted_can_be_said_again(
    life: Life, request: pytest.FixtureRequest, leave_out: int, until_: Callable[[Life, socket.socket], object]
) -> None:
    point = request.node.callspec.id
    said = {"to": "Bob", "body": point}
    with life.begin(said, key := f"key-{list(POINTS).index(point)}", leave_out) as connection:
        until_(life, connection)
        life.daemon.kill()
    with life.restart() as http:
        answers = [http.post(MESSAGES, json=said, headers=keyed(key)) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [201, 201]
        assert answers[0].content == answers[1].content
        assert bodies_to(http, "Bob").count(point) == 1
        refused = http.post(MESSAGES, json=said | {"body": "other words"}, headers=keyed(key))
        assert refused.json()["error"]["details"]["reason"] == "key_reused"


def test_a_key_means_the_same_in_another_life(life: Life) -> None:
    """The answers are not kept over a restart, but what they were about is."""
    with life.restart() as http:
        first = http.post(MESSAGES, json={"to": "Bob", "body": "two lives"}, headers=keyed("two-lives"))
    with life.restart() as http:
        other = http.post(MESSAGES, json={"to": "bob", "body": "other words"}, headers=keyed("two-lives"))
        assert other.json()["error"]["details"]["reason"] == "key_reused"
        again = http.post(MESSAGES, json={"to": "bob", "body": "two lives"}, headers=keyed("two-lives"))
        assert again.json()["messageId"] == first.json()["messageId"]
