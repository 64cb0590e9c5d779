"""The daemon's owner as an agent: there from the first message that was sent in that name, through the service or by a command.

Whatever is written to the owner can be read in the history and in the stream of events, so everything is acknowledged. The owner
gives way to a command of the owner's that comes under the same name, and comes back when that is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from agent_relay.core.inside_peer import InsidePeer, Said
from agent_relay.core.relay import Relay
from agent_relay.ports.service import SERVICE_NAME, Turns
from agent_relay.protocol import envelope as e
from agent_relay.protocol import payloads as p
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import is_own, spare_names
from agent_relay.protocol.states import CloseReason

_WINDOW = 64
_OWN_CLIS = frozenset({SERVICE_NAME, "agent-relay"})  # what the owner sent with
_NAME_WAIT_MS = 1_000  # a command under our name is usually over by then
_NAME_RETRY_MS = 100
_COME_BACK_MS = 500

Opened: TypeAlias = Callable[[InsidePeer | RelayError], None]


class Owner:
    """`next_id` makes ids that no client can give."""

    def __init__(
        self, relay: Relay, turns: Turns, uid: int, name: str, token: str | None, next_id: Callable[[], str]
    ) -> None:  # fmt: skip
        self.name = name or SERVICE_NAME
        self._relay = relay
        self._turns = turns
        self._uid = uid
        self._token = token  # what the name is the owner's by
        self._next_id = next_id
        self._peers: dict[str, InsidePeer] = {}  # by name
        self._opening: dict[str, list[Opened]] = {}
        self._choosing: list[Opened] = []  # who waits for a name
        self._names: Iterator[str] = iter(())  # that are left to try for them,
        self._deadline = 0  # how long the one that is tried may be somebody else's,
        self._retry: tuple[int, str] | None = None  # and when it is tried again
        self._coming_back: dict[str, int] = {}  # names that were taken, and when each is tried again
        self._is_over = False

    def start(self, done: Callable[[], None]) -> None:
        """Takes up the names again that the owner has sent under before: something may have been written to them meanwhile."""
        names = [name for name in dict.fromkeys((*spare_names(self.name), SERVICE_NAME)) if self._was_ours(name)]

        def opened(_found: InsidePeer | RelayError | None = None) -> None:
            if names:
                self.open(names.pop(0), opened)
            else:
                done()

        opened()

    def _was_ours(self, name: str) -> bool:
        agent = self._relay.registry.find(name)
        return agent is not None and not agent.hidden and (agent.cli in _OWN_CLIS or is_own(name))

    def close(self) -> None:
        self._is_over = True
        self._coming_back.clear()
        for peer in list(self._peers.values()):
            self._relay.disconnected(peer, CloseReason.CLIENT_BYE)
            peer.close(CloseReason.CLIENT_BYE)

    # --- a name -------------------------------------------------------------------------------------------------------------

    def choose(self, chosen: Opened) -> None:
        """Connected under the owner's name, or under one that stands in for it while somebody else has it."""
        self._choosing.append(chosen)
        if len(self._choosing) == 1:
            self._deadline = self._relay.context.steady_ms + _NAME_WAIT_MS
            self._names = iter(spare_names(self.name))
            self._try(next(self._names))

    def _try(self, name: str) -> None:
        self.open(name, partial(self._tried, name))

    def _tried(self, name: str, found: InsidePeer | RelayError) -> None:
        if isinstance(found, RelayError) and _is_in_use(found):
            now = self._relay.context.steady_ms
            if now < self._deadline:
                self._retry = now + _NAME_RETRY_MS, name
                return
            following = next(self._names, None)
            if following is not None:
                self._try(following)
                return
            last = spare_names(self.name)[-1]
            found = RelayError(ErrorCode.SERVICE_UNAVAILABLE, f"Every name from {self.name} to {last} is taken.")
        choosing, self._choosing = self._choosing, []
        for chosen in choosing:
            chosen(found)

    def clock_says(self, now: int) -> None:
        if self._retry is not None and now >= self._retry[0]:
            name, self._retry = self._retry[1], None
            self._try(name)
        for name in [name for name, due in self._coming_back.items() if now >= due]:
            del self._coming_back[name]
            self.open(name, partial(self._came_back, name))

    def _came_back(self, name: str, found: InsidePeer | RelayError) -> None:
        """When the command that took our name is over: what is written to the owner meanwhile waits until then."""
        if isinstance(found, RelayError) and _is_in_use(found):
            self._come_back(name)  # else the daemon is stopping, or the name is not ours any more

    def _come_back(self, name: str) -> None:
        if not self._is_over:
            self._coming_back[name] = self._relay.context.steady_ms + _COME_BACK_MS

    # --- a connection -------------------------------------------------------------------------------------------------------

    def open(self, name: str, opened: Opened) -> None:
        peer = self._peers.get(name)
        if name in self._opening:
            self._opening[name].append(opened)
        elif peer is not None and peer.active:
            opened(peer)
        else:
            self._opening[name] = [opened]
            self._greet(name)

    def _greet(self, name: str) -> None:
        def acknowledge_later() -> None:
            self._turns.run_later(partial(self._acknowledge, peer))  # the relay is in the middle of its turn

        def ended(reason: CloseReason) -> None:
            if reason is CloseReason.SUPERSEDED:
                self._come_back(name)

        def hear(said: Said) -> None:
            if isinstance(said, RelayError):
                self._opened(name, said)
            else:  # it is welcome, and here when the relay has said so to the end
                self._turns.run_later(lambda: self._opened(name, peer) if peer.active else self._greet(name))

        peer = self._peers[name] = InsidePeer(self._relay.context, self._uid, acknowledge_later, ended)
        id_ = self._next_id()
        peer.expect(id_, hear)
        capabilities = {"ack": True, "max_inflight": _WINDOW}
        hello = p.HelloPayload(
            agent=name, cli=SERVICE_NAME, version=2, capabilities=capabilities, session=p.HelloSession(owner_token=self._token),
            meta={"transient": True},
        )  # fmt: skip
        self._relay.admit(peer)
        self._relay.heard(peer, e.Hello(v=2, id=id_, ts=self._relay.context.wall_ms, payload=hello))

    def _opened(self, name: str, found: InsidePeer | RelayError) -> None:
        for opened in self._opening.pop(name, []):
            opened(found)

    def _acknowledge(self, peer: InsidePeer) -> None:
        if not peer.active or peer.agent is None:
            return
        for id_, delivery in list(peer.agent.mailbox.inflight.items()):
            ack = p.AckPayload(id_, delivery.seq, door=SERVICE_NAME)
            self._relay.heard(peer, e.Ack(v=2, id=self._next_id(), ts=self._relay.context.wall_ms, payload=ack))


def _is_in_use(error: RelayError) -> bool:
    return error.details.get("reason") == "name_in_use"
