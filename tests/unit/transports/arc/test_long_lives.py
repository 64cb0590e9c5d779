"""A connection over the real HTTP server, by a clock that is turned by hand: it lives for as long as it talks, and no longer."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from websockets.asyncio.client import ClientConnection, connect

from agent_relay.transports.http.connections import Connections
from agent_relay.transports.http.server import HttpServer
from tests.unit.transports.arc.scene import Scene

STEP_S = 5


class TurnedLoop(asyncio.SelectorEventLoop):
    """Its time goes on by itself, and faster when it is told to."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


class Served:
    """ARC on a port of this machine. Everybody's time is the scene's."""

    def __init__(self, scene: Scene, url: str) -> None:
        self.scene = scene
        self.url = url
        self.token = ""

    async def turn(self, seconds: float) -> None:
        loop = cast("TurnedLoop", asyncio.get_running_loop())
        loop.ahead_s += seconds
        self.scene.harness.advance(int(seconds * 1000))
        for _ in range(20):
            await self.scene.settle()

    @asynccontextmanager
    async def connect(self, agent_id: str) -> AsyncIterator[ClientConnection]:
        registering = asyncio.create_task(self.scene.desk.register(agent_id, None, "127.0.0.1", is_owner=True))
        while not registering.done():
            await self.scene.settle()
        headers = {"Authorization": f"Bearer {registering.result().token}"}
        connecting = asyncio.ensure_future(connect(self.url, additional_headers=headers, ping_interval=None))
        while not connecting.done():
            await self.scene.settle()
        async with connecting.result() as connection:
            assert json.loads(await self.while_served(connection.recv()))["type"] == "welcome"
            yield connection

    async def while_served(self, waited: Awaitable[Any]) -> Any:
        """The store of a scene works when it is told to."""
        task = asyncio.ensure_future(waited)
        while not task.done():
            await self.scene.settle()
        return task.result()


def serve(act: Callable[[Served], Awaitable[None]]) -> None:
    async def main() -> None:
        scene = Scene()
        api: Any = SimpleNamespace(
            page_keys=None,
            metrics=None,
            guesses=None,
            arc=scene.desk,
            token_hash=None,
            streams=SimpleNamespace(stop=lambda: None),
        )
        listener = socket.create_server(("127.0.0.1", 0))
        server = HttpServer(
            api, listener, "127.0.0.1", frozenset(), 1_048_576, Connections(100, 100), hub=scene.hub
        )  # fmt: skip
        await server.start()
        try:
            await act(Served(scene, f"ws://127.0.0.1:{server.port}/arc"))
        finally:
            await server.stop()

    with asyncio.Runner(loop_factory=TurnedLoop) as runner:
        runner.run(main())


def test_one_that_talks_stays_for_as_long_as_it_likes() -> None:
    async def act(served: Served) -> None:
        async with served.connect("amy-1") as talker, served.connect("eve-1") as listener:
            for number in range(120 // STEP_S):
                await served.turn(STEP_S)
                await served.while_served(await talker.ping())
                await talker.send(json.dumps({"to": ["eve-1"], "payload": number}))
                assert json.loads(await served.while_served(listener.recv()))["payload"] == number

    serve(act)


def test_one_that_only_answers_pings_stays_and_one_that_does_not_is_told_why_it_goes() -> None:
    async def act(served: Served) -> None:
        async with served.connect("amy-1") as living:
            silent, wire = await served.scene.connect("bob-1")  # nothing ever comes from there
            passed = 0
            while not silent.closed_with and passed < 120:
                await served.turn(STEP_S)
                passed += STEP_S
            assert (passed, silent.closed_with, b"Silent for 45 s" in wire.written) == (45, 4008, True)
            while passed < 120:
                await served.turn(STEP_S)
                passed += STEP_S
            await living.send(json.dumps({"to": ["relay"], "type": "ping"}))
            assert json.loads(await served.while_served(living.recv()))["type"] == "pong"

    serve(act)


def test_after_a_pause_of_the_daemon_nobody_is_gone_before_it_was_heard() -> None:
    async def act(served: Served) -> None:
        async with served.connect("amy-1") as living:
            mute, _ = await served.scene.connect("bob-1")
            for _ in range(7):
                await served.turn(STEP_S)  # they have been asked, and one of them has not answered yet
            await served.turn(600)
            assert (mute.closed_with, living.close_code) == (None, None)
            await living.send(json.dumps({"to": ["relay"], "type": "ping"}))
            assert json.loads(await served.while_served(living.recv()))["type"] == "pong"
            for _ in range(6):
                await served.turn(STEP_S)
            assert mute.closed_with == 4008

    serve(act)
