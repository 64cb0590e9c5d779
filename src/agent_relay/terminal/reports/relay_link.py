"""The line to the daemon: the client in use, another one when the daemon has let go of it for good, and what it tells."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeAlias

from agent_relay.protocol.payloads import AgentEventPayload, BusyPayload, ControlPayload
from agent_relay.protocol.states import ClientState
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import ConnectionLost
from agent_relay.sdk.messages import Message

RETRY_S = 1.0
_log = logging.getLogger("agent_relay.terminal")

DaemonEvent: TypeAlias = ControlPayload | AgentEventPayload | BusyPayload


class RelayLink:
    """`client` is connected. `make_client` makes another one, should the daemon refuse this one for good. `events` keeps what
    the daemon tells until somebody deals with it."""

    def __init__(self, client: RelayClient, make_client: Callable[[], RelayClient]) -> None:
        self.client = client
        self.events: asyncio.Queue[DaemonEvent] = asyncio.Queue()
        self._make_client = make_client
        self._ready_callbacks: list[Callable[[], None]] = []
        self._state_callbacks: list[Callable[[], None]] = []
        self._listen_to(client)

    def call_when_ready(self, callback: Callable[[], None]) -> None:
        """Each time the daemon hears us again, before anything else is said to it."""
        self._ready_callbacks.append(callback)

    def call_when_changed(self, callback: Callable[[], None]) -> None:
        """Whenever the connection is made or lost."""
        self._state_callbacks.append(callback)

    @property
    def is_ready(self) -> bool:
        return self.client.state is ClientState.READY

    async def receive(self) -> Message:
        """The next message, over whatever client that takes."""
        while True:
            try:
                return await self.client.receive()
            except ConnectionLost as error:
                _log.warning("the daemon let go of us: %s", error.message)
                await asyncio.sleep(RETRY_S)
                await self._replace_client()

    async def _replace_client(self) -> None:
        client = self._make_client()
        self._listen_to(client)
        await client.connect(wait=True)
        self.client = client
        self._note_ready()

    def _listen_to(self, client: RelayClient) -> None:
        def note_state(state: ClientState) -> None:
            if state is ClientState.READY and client is self.client:
                self._note_ready()
            for callback in self._state_callbacks:
                callback()

        client.on_state = note_state
        client.on_control = client.on_event = client.on_busy = self.events.put_nowait

    def _note_ready(self) -> None:
        for callback in self._ready_callbacks:
            callback()
