"""A daemon with ARC, and clients of it that are made with the `websockets` library."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from agent_relay.testing.daemon import DaemonProcess

DEADLINE_S = 60.0
FREE = ("--arc-registrations-per-hour=0", "--arc-rate-limit=0", "--arc-hourly-limit=0")  # for tests that are not about limits


class Member(NamedTuple):
    id: str
    token: str


class Client:
    """One connection. What is expected next must be next: a frame that should not be there fails the test that meets it."""

    def __init__(self, connection: ClientConnection, member: Member) -> None:
        self.connection = connection
        self.member = member
        self.me = member.id
        self.welcome = self.next()

    def next(self) -> dict[str, Any]:
        text = self.connection.recv(DEADLINE_S)
        assert isinstance(text, str)
        found: dict[str, Any] = json.loads(text)
        return found

    def send(self, to: Any, payload: Any = "x", **fields: Any) -> None:
        self.say({"to": to, "payload": payload} | fields)

    def say(self, frame: Any) -> None:
        self.connection.send(json.dumps(frame))

    def ask(self, kind: str, payload: Any = None, **fields: Any) -> dict[str, Any]:
        self.say({"to": ["relay"], "type": kind} | ({} if payload is None else {"payload": payload}) | fields)
        return self.next()

    def command(self, command: str, **fields: Any) -> dict[str, Any]:
        found = self.ask("command", {"command": command} | fields)
        assert found["type"] == "command_result", found
        assert found["payload"]["command"] == command
        payload: dict[str, Any] = found["payload"]
        return payload

    def expect_close(self) -> int:
        """Reads to the end; the code it was closed with."""
        with pytest.raises(ConnectionClosed) as closed:
            self.read_all()
        assert closed.value.rcvd is not None, "the connection broke without a word"
        return closed.value.rcvd.code

    def read_all(self, found: list[Any] | None = None) -> None:
        """Until it is closed, which raises ConnectionClosed."""
        while True:
            payload = self.next()["payload"]
            if found is not None:
                found.append(payload)

    def close(self) -> None:
        self.connection.close()


class Stage:
    def __init__(self, daemon: DaemonProcess) -> None:
        self.daemon = daemon
        self.count = 0
        self.http = httpx.Client()
        self.find()

    def find(self) -> None:
        """Where it listens, which another life may change."""
        self.url = self.daemon.wait_for_url()
        self.http.close()
        self.http = httpx.Client(base_url=self.url, timeout=DEADLINE_S, headers=self.daemon.api_headers)

    def close(self) -> None:
        self.http.close()

    def register(self, agent_id: str | None = None) -> Member:
        self.count += 1
        wanted = agent_id or f"agent-{self.count}"
        answer = self.http.post("/register", json={"agent_id": wanted})
        assert answer.status_code == 200, answer.text
        return Member(answer.json()["agent_id"], answer.json()["token"])

    @contextmanager
    def connect(self, member: Member | None = None, **options: Any) -> Iterator[Client]:
        member = member or self.register()
        headers = {"Authorization": f"Bearer {member.token}"}
        with connect(
            f"{self.url.replace('http', 'ws', 1)}/arc", additional_headers=headers, open_timeout=60, **options
        ) as connection:
            yield Client(connection, member)

    def try_upgrade(self, query: str = "", path: str = "/arc", **headers: str) -> tuple[int, Any]:
        """The status that a refused upgrade is answered with, and its body."""
        try:
            with connect(f"{self.url.replace('http', 'ws', 1)}{path}{query}", additional_headers=headers, open_timeout=60):
                return 101, None
        except InvalidStatus as refused:
            headers = {name.lower(): value for name, value in refused.response.headers.raw_items()}
            return refused.response.status_code, headers | json.loads(refused.response.body or b"{}")
