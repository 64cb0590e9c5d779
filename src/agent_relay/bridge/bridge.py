"""The bridge as a whole: opens everything, runs both directions, and closes in an order that loses nothing.

A message goes over in one step on either side: taken there, then noted here, then acknowledged here. Wherever it is cut off, the
beginning is done again after the restart, and what went over already is known by its id.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from agent_relay.arc.addresses import parse_address
from agent_relay.arc.client import ArcClient
from agent_relay.arc.link import ArcState, Patience
from agent_relay.bridge.directions import Incoming, Outgoing
from agent_relay.bridge.journal import Journal
from agent_relay.bridge.notices import Counts, Notice, Notices
from agent_relay.bridge.peers import Peer, Peers
from agent_relay.bridge.plan import Plan
from agent_relay.protocol.names import fold_name
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.messages import Message


def journal_path(state_dir: str, url: str) -> str:
    relay = hashlib.sha256(parse_address(url).http_url.encode()).hexdigest()[:12]
    return os.path.join(state_dir, f"bridge-{relay}.sqlite")


class Bridge:
    """`tokens` by the ids over there; `listener` is told what happens."""

    def __init__(
        self, plan: Plan, tokens: Mapping[str, str], *, socket: str, state_dir: str, listener: Callable[[Notice], None],
        patience: Patience | None = None, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:  # fmt: skip
        self._plan = plan
        self._tokens = tokens
        self._socket = socket
        self._notices = Notices(listener)
        self._patience = patience
        self._sleep = sleep
        self._journal_path = journal_path(state_dir, plan.url)
        self._clients: dict[str, ArcClient] = {}  # by the folded name of the agent they speak for
        self._outgoing: Outgoing | None = None

    @property
    def counts(self) -> Counts:
        return self._notices.counts

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; raises what keeps it from going on. Nothing is left half done either way."""
        async with RelayClient(socket=self._socket, observer=True):
            pass  # a daemon that is not running is said before anything else is done
        journal = Journal(self._journal_path)
        peers = Peers(self._socket, self._plan.url, journal, self._notices, self._plan.joined, self._pass_on)
        self._outgoing = Outgoing(self._clients, journal, self._notices, self._sleep)
        tasks: list[asyncio.Task[Any]] = [asyncio.create_task(stop.wait())]
        try:
            await _either(self._join_all(journal), tasks[0])
            if not stop.is_set():
                await _either(self._open_peers(peers, journal), tasks[0])
            tasks += [asyncio.create_task(work) for work in self._incoming(peers, journal)]
            running: set[asyncio.Future[Any]] = {*tasks, peers.failed}
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for ended in running:
                if ended.done():
                    ended.result()  # raises what it was lost by
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            peers.failed.cancel()
            await peers.close()
            for client in self._clients.values():
                await client.close()
            journal.close()

    async def _join_all(self, journal: Journal) -> None:
        for local, remote in self._plan.joined.items():
            client = ArcClient(
                self._plan.url, self._tokens[remote], agent_id=remote, since=journal.since(remote), patience=self._patience
            )  # fmt: skip
            client.watch_state(self._watcher(local, remote))
            self._clients[fold_name(local)] = client
            await client.connect(wait=True)
            if client.welcome is not None:
                journal.begin_at(remote, client.welcome.id)
        if not all(client.offers("persistence") for client in self._clients.values()):
            self._notices.tell(
                "warning", "The relay keeps no history: messages it delivers while the bridge is being killed can be lost."
            )

    async def _open_peers(self, peers: Peers, journal: Journal) -> None:
        for remote, local in {**dict.fromkeys(journal.peers()), **self._plan.peers}.items():
            await peers.open(remote, local)

    def _incoming(self, peers: Peers, journal: Journal) -> list[Coroutine[Any, Any, None]]:
        own_ids = frozenset(self._plan.joined.values())
        return [
            Incoming(
                local, self._clients[fold_name(local)], peers, journal, self._notices, own_ids, self._sleep,
                broadcasts=self._plan.broadcasts,
            ).run(remote)
            for local, remote in self._plan.joined.items()
        ]  # fmt: skip

    async def _pass_on(self, peer: Peer, message: Message) -> None:
        assert self._outgoing is not None
        await self._outgoing.pass_on(peer, message)

    def _watcher(self, local: str, remote: str) -> Callable[[ArcState], None]:
        last = "never"

        def watch(state: ArcState) -> None:
            nonlocal last
            if state is ArcState.CONNECTED:
                last = "joined" if last in {"never", "missing"} else "back"
                self._notices.tell(last, f"{local} is {remote} at the remote relay.", local=local, remote=remote)
            elif state is ArcState.WAITING and last not in {"missing", "lost"}:  # once, not for every attempt
                last = "missing" if last == "never" else "lost"
                self._notices.tell("lost", f"{remote}: the relay is unreachable; trying again.", local=local, remote=remote)

        return watch


async def _either(work: Awaitable[None], stopped: asyncio.Task[Any]) -> None:
    """Does the work, or gives it up when it is to stop."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.wait({task})
