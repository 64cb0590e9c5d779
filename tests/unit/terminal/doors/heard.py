"""What tests of doors share: a listener that keeps what a door tells, a folder for its sockets, and messages."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

from agent_relay.protocol.requests import AgentRequest
from agent_relay.terminal.delivery.message_text import Room, ShownMessage, render
from agent_relay.terminal.doors.door import DoorMessage, DoorState, Resolution
from agent_relay.terminal.output.observations import Observation

DEADLINE_S = 60.0


class Heard:
    """What a door has told, in order."""

    def __init__(self) -> None:
        self.all: list[tuple[Any, ...]] = []
        self.given_back: set[str] = set()  # refused though the CLI had them

    def door_state(self, state: DoorState, waiting_for: str = "") -> None:
        self.all.append(("state", state, waiting_for))

    def door_read(self, message_id: str, evidence: str) -> None:
        self.all.append(("read", message_id, evidence))

    def door_rejected(self, message_id: str, reason: str) -> None:
        self.all.append(("rejected", message_id, reason))

    def door_refused(self, message_id: str, reason: str, *, was_given: bool = False) -> None:
        self.all.append(("refused", message_id, reason))
        self.given_back |= {message_id} if was_given else set()

    def door_asked(self, request: AgentRequest) -> None:
        self.all.append(("asked", request))

    def door_resolved(self, request_id: str, resolution: Resolution, by: str) -> None:
        self.all.append(("resolved", request_id, resolution, by))

    def door_noticed(self, observation: Observation) -> None:
        self.all.append(("noticed", observation))

    def door_said(self, to: str, body: str, id_: str) -> None:
        self.all.append(("said", to, body, id_))

    def door_heard(self, text: str, id_: str) -> None:
        self.all.append(("heard", text, id_))

    def door_session(self, session_id: str) -> None:
        self.all.append(("session", session_id))

    def door_lost(self, reason: str) -> None:
        self.all.append(("lost", reason))

    def of(self, kind: str) -> list[Any]:
        """What was told of one kind, without its name; a single value by itself."""
        return [entry[1] if len(entry) == 2 else entry[1:] for entry in self.all if entry[0] == kind]

    @property
    def read(self) -> list[str]:
        return [id_ for id_, _ in self.of("read")]


async def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"It did not happen: {what}."
        await asyncio.sleep(0.005)


@contextlib.contextmanager
def short_folder() -> Iterator[Path]:
    """A socket's path has to be short, and those of tests are not."""
    folder = Path(tempfile.mkdtemp(prefix="relay-d-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


class Closes(Protocol):
    async def close(self) -> None: ...


S = TypeVar("S", bound=Closes)


def play_on(make: Callable[[Path], S], scene: Callable[[S], Awaitable[None]]) -> S:
    """Makes a stage in a folder of its own, runs the scene on it, and gives back what is left of it."""

    async def run(folder: Path) -> S:
        stage = make(folder)
        try:
            async with asyncio.timeout(120):
                await scene(stage)
        finally:
            await stage.close()
        return stage

    with short_folder() as folder:
        return asyncio.run(run(folder))


def message(number: int, body: str = "hello", sender: str = "Alice") -> DoorMessage:
    id_ = f"msg_{number:04d}"
    text = render(ShownMessage(id_, sender, body), Room())
    return DoorMessage(id_, str(uuid.uuid5(uuid.NAMESPACE_URL, id_)), sender, body, text)
