"""Agents over there, as agents of the project.

Each has a client of the project's relay under a name of its own: its own id where nobody in the project has that name, else with
`.remote` behind it. Who was ever written with stands there again after a restart, since messages may wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from agent_relay.bridge.journal import Journal
from agent_relay.bridge.notices import Notices
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.messages import Message

MOST_PEERS = 500  # each is a connection to the daemon
_NAME_WAIT_S = 15.0  # a bridge that was killed a moment ago may still hold its names
_NAME_RETRY_S = 0.2
_WINDOW = 8  # messages to one agent over there on their way at once; the rest waits at the daemon


@dataclass(frozen=True, slots=True)
class Peer:
    remote: str
    client: RelayClient

    @property
    def name(self) -> str:
        return self.client.name


Handler = Callable[[Peer, Message], Awaitable[None]]


class TooManyPeers(Exception):  # noqa: N818 - named by the condition
    pass


class Peers:
    def __init__(
        self, socket: str, url: str, journal: Journal, notices: Notices, own_names: Iterable[str], handler: Handler
    ) -> None:
        self._socket = socket
        self._url = url
        self._journal = journal
        self._notices = notices
        self._own_names = {fold_name(name) for name in own_names}
        self._handler = handler
        self._peers: dict[str, Peer] = {}
        self._loops: dict[str, asyncio.Task[None]] = {}
        self._opening = asyncio.Lock()
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # the first error that ends a loop

    async def open(self, remote: str, local: str | None = None) -> Peer:
        """The one that stands for that agent; made where there is none yet."""
        async with self._opening:
            if remote in self._peers:
                return self._peers[remote]
            if len(self._peers) >= MOST_PEERS:
                raise TooManyPeers
            name = local or self._journal.peers().get(remote) or await self._choose_name(remote)
            peer = Peer(remote, await self._connect(remote, name))
            self._journal.note_peer(remote, name)
            self._peers[remote] = peer
            self._loops[remote] = asyncio.create_task(self._serve(peer))
            self._notices.tell("peer", f"{remote} is {peer.name} here.", remote=remote, local=peer.name)
            return peer

    async def close(self) -> None:
        for task in self._loops.values():
            task.cancel()
        if self._loops:
            await asyncio.wait(self._loops.values())
        for peer in self._peers.values():
            await peer.client.close(1.0)

    async def _serve(self, peer: Peer) -> None:
        try:
            async for message in peer.client.messages():
                await self._handler(peer, message)  # acknowledged when it returns
        except Exception as error:  # noqa: BLE001 - it ends the bridge, which says it
            if not self.failed.done():
                self.failed.set_exception(error)

    async def _choose_name(self, remote: str) -> str:
        async with RelayClient(socket=self._socket, observer=True) as relay:
            taken = {fold_name(agent.name) for agent in (await relay.agents()).agents} | self._own_names
        candidates = [remote, f"{remote[:57]}.remote", *(f"{remote[:54]}.remote-{number}" for number in range(2, 10))]
        for name in candidates:
            if fold_name(name) not in taken:
                return name
        raise RelayError(
            ErrorCode.INVALID_TARGET, f"All names for {remote} are taken here; choose one with --peer {remote}=NAME."
        )

    async def _connect(self, remote: str, name: str) -> RelayClient:
        deadline = asyncio.get_running_loop().time() + _NAME_WAIT_S
        while True:
            client = RelayClient(
                name, socket=self._socket, cli="arc", meta={"arc_relay": self._url, "arc_agent": remote}, max_inflight=_WINDOW,
                reconnect_attempts=None, default_channels=False,  # only what is written to it leaves the project
            )  # fmt: skip
            try:
                await client.connect()
                return client
            except RelayError as error:
                if error.details.get("reason") != "name_in_use" or asyncio.get_running_loop().time() >= deadline:
                    raise
            await asyncio.sleep(_NAME_RETRY_S)
