"""The client inside the process: a relay that fails, and one that closes it."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from agent_relay.protocol.encode import encode_envelope
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.states import CloseReason
from agent_relay.transports.inner import InnerClient


class Core:
    """A relay that answers as it is told to."""

    def __init__(self) -> None:
        self.connection: Any = None
        self.heard: list[dict[str, Any]] = []
        self.fails = False
        self.greeted = 0

    def begin_turn(self) -> None: ...

    @property
    def relay(self) -> Core:
        return self

    def accepted(self, connection: Any, uid: int) -> object:
        self.connection = connection
        return object()

    def received(self, peer: object, frames: list[bytes]) -> None:
        for frame in map(msgspec.json.decode, frames):
            self.heard.append(frame)
            if frame["type"] == "HELLO":
                self.greeted += 1
                server = {"max_frame_bytes": 1, "heartbeat_ms": 1}
                self.say("WELCOME", {"session_id": "s", "resume_token": "t", "server": server, "reply_to": frame["id"]})
            elif self.fails:
                raise RuntimeError("broken")
            elif frame["type"] == "LIST_AGENTS":
                self.say("AGENTS", {"agents": [{"name": "Bob"}], "reply_to": frame["id"]})

    def say(self, kind: str, payload: dict[str, Any], **fields: Any) -> None:
        self.connection.send(encode_envelope(kind, "x", 1, payload, **fields))

    def crashed(self, peer: object) -> None:
        self.connection.close(CloseReason.INTERNAL_ERROR)

    def disconnected(self, peer: object, reason: CloseReason) -> None: ...


def make() -> tuple[Core, InnerClient]:
    core = Core()
    return core, InnerClient(core, 0, "http", observer=True, wall_ms=lambda: 1)  # type: ignore[arg-type]


def test_it_greets_once_and_asks_what_it_likes() -> None:
    async def play() -> None:
        core, client = make()
        answers: list[Any] = await asyncio.gather(*(client.ask("LIST_AGENTS", {}) for _ in range(5)))
        assert [answer.payload.agents[0]["name"] for answer in answers] == ["Bob"] * 5
        assert core.greeted == 1
        assert len({frame["id"] for frame in core.heard}) == 6

    asyncio.run(play())


def test_a_relay_that_fails_is_said_to_and_asked_anew() -> None:
    async def play() -> None:
        core, client = make()
        await client.open()
        core.fails = True
        with pytest.raises(RelayError) as failed:
            await client.ask("LIST_AGENTS", {})
        assert failed.value.code is ErrorCode.INTERNAL_ERROR
        core.fails = False
        await client.ask("LIST_AGENTS", {})
        assert core.greeted == 2

    asyncio.run(play())


def test_who_waits_when_it_is_closed_is_told() -> None:
    async def play() -> None:
        core, client = make()
        waiting = asyncio.create_task(client.ask("CONTROL", {"command": "pause"}))
        while not any(frame["type"] == "CONTROL" for frame in core.heard):
            await asyncio.sleep(0)
        core.connection.close(CloseReason.SHUTDOWN)
        with pytest.raises(RelayError, match="stopping"):
            await waiting

    asyncio.run(play())


def test_pings_and_deliveries_are_answered_in_a_turn_of_their_own() -> None:
    async def play() -> None:
        core, client = make()
        await client.open()
        delivery = {"seq": 7, "session_id": "s", "message_id": "m"}
        core.say("PING", {"nonce": 3})
        core.connection.send(encode_envelope("DELIVER", "d_1", 1, {"body": "x"}, delivery=delivery, from_="Bob"))
        assert [frame["type"] for frame in core.heard] == ["HELLO"]
        await asyncio.sleep(0)
        assert [(frame["type"], frame["payload"]) for frame in core.heard[1:]] == [
            ("PONG", {"nonce": 3}),
            ("ACK", {"ack_id": "d_1", "seq": 7, "door": "http"}),
        ]

    asyncio.run(play())
