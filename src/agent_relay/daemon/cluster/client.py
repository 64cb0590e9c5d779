"""NATS for a person's commands: connected for a moment, with the daemon's settings and without its place in the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent_relay.cluster.jetstream import API, NO_STREAM, Answer, Names, read_answer
from agent_relay.cluster.nats_wire import NatsWire
from agent_relay.daemon.cluster.identity import read_credentials
from agent_relay.daemon.config import ClusterConfig
from agent_relay.ports.cluster import WireMessage

_CONNECT_S = 10.0
_ANSWER_S = 15.0  # JetStream answers nothing while it chooses a leader
_AGAIN_S = 0.25


class ClusterUnreachable(Exception):  # noqa: N818 - named by the condition
    """NATS does not answer; the text says why and what to do."""


class _Quiet:
    def note(self, what: str, **fields: object) -> None: ...


class ClusterClient:
    """Implements `WireListener`."""

    def __init__(self, config: ClusterConfig, servers: list[str]) -> None:
        self.names = Names(config.project)
        self.wire = NatsWire(servers, read_credentials(config), "agent-relay-command", _Quiet())
        self.max_payload_bytes = 0
        self._is_connected = asyncio.Event()

    def connected(self, server: str, max_payload_bytes: int) -> None:
        del server
        self.max_payload_bytes = max_payload_bytes
        self._is_connected.set()

    def disconnected(self) -> None:
        self._is_connected.clear()

    async def connect(self, patience_s: float = _CONNECT_S) -> None:
        """Raises ClusterUnreachable."""
        await self.wire.start(self)
        try:
            async with asyncio.timeout(patience_s):
                await self._is_connected.wait()
        except TimeoutError:
            raise ClusterUnreachable(self.wire.trouble) from None

    async def ask_api(self, subject: str, payload: bytes = b"", patience_s: float = _ANSWER_S) -> Answer:
        """Asked again until somebody answers. Raises ClusterUnreachable."""
        deadline = asyncio.get_running_loop().time() + patience_s
        while asyncio.get_running_loop().time() < deadline:
            answer = read_answer(await self.ask(f"{API}.{subject}", payload))
            if answer is not None:
                return answer
            await asyncio.sleep(_AGAIN_S)
        raise ClusterUnreachable(
            "JetStream does not answer: no majority of the NATS servers is up, or it is not switched on in their configuration."
        )

    async def ask(self, subject: str, payload: bytes = b"") -> WireMessage | None:
        answer: asyncio.Future[WireMessage | None] = asyncio.get_running_loop().create_future()

        def answered(message: WireMessage | None) -> None:
            if not answer.done():
                answer.set_result(message)

        self.wire.ask(subject, payload, answered)
        return await answer

    async def find_log(self) -> Answer | None:
        """The stream as it is; None where there is none. Raises ClusterUnreachable."""
        answer = await self.ask_api(f"STREAM.INFO.{self.names.stream}")
        if answer.error is None:
            return answer
        if answer.error.err_code == NO_STREAM:
            return None
        raise ClusterUnreachable(f"The log {self.names.stream} cannot be read: {answer.error.description}.")


@asynccontextmanager
async def connect_cluster(
    config: ClusterConfig, server: str | None = None, patience_s: float = _CONNECT_S
) -> AsyncIterator[ClusterClient]:
    """Of all the servers, or of that one. Raises ClusterUnreachable."""
    client = ClusterClient(config, list(config.servers) if server is None else [server])
    try:
        await client.connect(patience_s)
        yield client
    finally:
        await client.wire.stop()
