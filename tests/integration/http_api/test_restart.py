"""The daemon is killed in the middle: over HTTP everything goes on where it was."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.sync import SyncRelayClient
from tests.integration.stage import until

from .scene import ASKS, TASK, Scene
from .server import ME
from .streams import Stream, run

pytestmark = pytest.mark.terminals
ALL = "/api/v1/events/sse"
KILLS = 2


@pytest.fixture
def scene(folder: Path) -> Iterator[Scene]:
    made = Scene(folder, ASKS, {"when": "ping", "busy_ms": 20, "say": [f"->relay:{ME} pong"]})
    yield made
    made.close()


@contextmanager
def talking(scene: Scene) -> Iterator[list[str]]:
    """Somebody writes to themselves without pause, also while there is no daemon; the ids of what was accepted."""
    accepted: list[str] = []
    over = threading.Event()

    def talk() -> None:
        with SyncRelayClient("Talker", socket=scene.stage.daemon.socket, reconnect_attempts=None) as talker:
            while not over.is_set():
                try:
                    accepted.append(talker.publish("nobody.listens", f"note {len(accepted)}").message_id)
                except RelayError as error:
                    if not error.code.retryable:
                        raise
                over.wait(0.01)

    thread = threading.Thread(target=talk)
    thread.start()
    try:
        yield accepted
    finally:
        over.set()
        thread.join(30)


def test_sessions_requests_and_streams_go_on(scene: Scene) -> None:
    session = scene.spawn(TASK)
    asked = scene.asked()
    path = f"/api/v1/sessions/{session}"
    pid = scene.http.get("/api/v1/agents/Bob").json()["meta"]["pid"]
    seen: list[int] = []
    told: list[str] = []

    async def follow(enough: int) -> None:
        """From the last event that was seen, as a browser does, until so many more are there, or the stream breaks."""
        stream = await Stream(scene.server).open(f"{ALL}?offset=0", **({"Last-Event-ID": str(seen[-1])} if seen else {}))
        assert stream.status == 200
        try:
            async for event in stream.events():
                seen.append(event.id)
                if event.type == "message.exchanged" and event.data["from"] == "Talker":
                    told.append(event.data["messageId"])
                if len(seen) >= enough:
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            return

    async def play() -> None:
        for _ in range(KILLS):
            reading = asyncio.create_task(follow(10**9))
            enough = len(seen) + 200
            async with asyncio.timeout(120):
                while len(seen) < enough:
                    await asyncio.sleep(0.02)
            await asyncio.to_thread(scene.restart)
            await reading
        await follow(len(seen) + 200)

    with talking(scene) as accepted:
        run(play)
    assert seen == list(range(1, len(seen) + 1))
    until(lambda: len(scene.events("agent.spawned")) == 1, "it was started once")
    assert len(told) > 100
    places = {id_: place for place, id_ in enumerate(accepted)}
    assert [id_ for id_ in told if id_ in places] == sorted({*told} & {*places}, key=places.__getitem__)  # in order, and once
    assert len([id_ for id_ in told if id_ not in places]) <= 1  # the last one, of which Talker has not yet been told

    until(lambda: scene.http.get("/api/v1/agents/Bob").json().get("connected"), "Bob is back")
    shown = scene.http.get(path).json()
    assert (shown["sessionId"], shown["agentName"], shown["status"], shown["task"]) == (session, "Bob", "running", TASK)
    assert scene.http.get("/api/v1/agents/Bob").json()["meta"]["pid"] == pid
    again = scene.asked()
    assert (again["requestId"], scene.chosen(), scene.typed_into_dialogs()) == (asked["requestId"], [], False)
    assert scene.decide(again, "approve", "After all.").status_code == 200
    assert scene.chosen() == ["Yes"]
    until(lambda: "went on" in scene.said_over_http(), "it goes on with its turn")
    assert scene.http.post(f"{path}/messages", json={"message": "ping"}).status_code == 200
    until(lambda: "pong" in scene.said_over_http(), "it takes messages as before")
    summary = scene.http.delete(path).json()["summary"]
    assert summary["duration"] > 0
    ended = until(lambda: scene.events("session.ended"), "the end is recorded")
    assert [(event["sessionId"], event["reason"]) for event in ended] == [(session, "released")]
    (resolved,) = scene.events("permission.resolved")
    assert (resolved["resolution"], resolved["resolvedBy"], resolved["reason"]) == ("approved", "human", "After all.")
