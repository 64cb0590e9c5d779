"""CONTROL `forget`: one agent and everything that is kept of it goes, on the order of whoever owns this relay. And `remove`,
which only takes its name off the lists (`core.removal`).

First what is still owed to it or by it is settled, and senders who wait are told. Then its registration goes, and at last, in
slices, the messages, the events and the files. Streams from it to others stay as numbers: if the name comes again it goes on
counting there, because a recipient that is told a number it had before takes the message for an old one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agent_relay.core.commit import Committer
from agent_relay.core.consensus.proposals import Proposals
from agent_relay.core.context import Context
from agent_relay.core.owed_mail import OwedMail
from agent_relay.core.registry import Registry
from agent_relay.core.removal import Removal
from agent_relay.core.rights import ADMIN, Rights
from agent_relay.core.spawned.orders import Spawning
from agent_relay.core.tokens import Tokens
from agent_relay.ports.leavings import Leavings, Left
from agent_relay.ports.store import Batch, MessageStore, StoreError
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import check_agent_name, fold_name, show

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import envelope

COMMANDS = frozenset({"count_data", "forget", "remove"})
_AT_ONCE = 500  # messages in one transaction


class Erased(Struct):
    """The counts of what went. `undelivered_from` were on their way from it to others, `undelivered_to` to it; both are among the
    messages."""

    undelivered_from: int = 0
    undelivered_to: int = 0
    messages: int = 0
    events: int = 0
    files: int = 0


Tell = Callable[["Erased | RelayError"], None]


class Erasure:
    def __init__(
        self, context: Context, registry: Registry, tokens: Tokens, committer: Committer, owed: OwedMail, spawning: Spawning,
        store: MessageStore, leavings: Leavings, is_arriving: Callable[[str], bool], rights: Rights, removal: Removal,
        proposals: Proposals,
    ) -> None:  # fmt: skip
        self._context = context
        self._registry = registry
        self._tokens = tokens
        self._committer = committer
        self._owed = owed
        self._spawning = spawning
        self._store = store
        self._leavings = leavings
        self._is_arriving = is_arriving
        self._rights = rights
        self._removal = removal
        self._proposals = proposals
        self._under_way: set[str] = set()

    def receive(self, peer: Peer, frame: envelope.Control) -> None:
        """The one way in, whoever asks."""
        name = frame.payload.agent or ""
        known = self._registry.find(name)
        shown = known.name if known is not None else name

        def tell(outcome: Erased | RelayError, stage: str = "forgotten") -> None:
            if isinstance(outcome, RelayError):
                peer.say_error(outcome, frame.id)
            else:
                counts = {field: getattr(outcome, field) for field in Erased.__struct_fields__}
                peer.say("ACK", {"ack_id": frame.id, "stage": stage, "by": shown, "responseData": counts})

        try:
            if peer.agent is not None:
                raise RelayError(ErrorCode.PERMISSION_DENIED, "Agents cannot erase data.", reason="not_the_owner")
            self._rights.check(self._rights.caller_of(peer), ADMIN)
            check_agent_name(name)
            if frame.payload.command == "remove":
                self._order_removal(peer, frame, name)
            elif frame.payload.command == "count_data":
                self.count(name, lambda counted: tell(counted, "counted"))
            else:
                self.forget(name, tell)
        except RelayError as error:
            peer.say_error(error, frame.id)

    def _order_removal(self, peer: Peer, frame: envelope.Control, name: str) -> None:
        agent = self._removal.find(name)
        self._check(name, "remove")

        def tell(outcome: int | RelayError) -> None:
            if isinstance(outcome, RelayError):
                peer.say_error(outcome, frame.id)
            else:
                counts = {"dead_letters": outcome}
                peer.say("ACK", {"ack_id": frame.id, "stage": "removed", "by": agent.name, "responseData": counts})

        self._removal.remove(agent, tell, has_letters=True)

    def count(self, name: str, tell: Callable[[Erased], None]) -> None:
        """Messages still on their way; raises RelayError where it could not be forgotten now."""
        self._check(name)
        agent = self._registry.find(name)
        if agent is None:
            tell(Erased())
        else:
            self._owed.count_from(agent, lambda count: tell(Erased(count, self._owed.count_to(agent))))

    def forget(self, name: str, tell: Tell) -> None:
        """Raises RelayError where it cannot be; else `tell` is called once."""
        self._check(name)
        key = fold_name(name)
        if key in self._under_way:
            raise RelayError(ErrorCode.AGENT_BUSY, f"{show(name)} is already being forgotten.", name=name)
        self._under_way.add(key)

        def over(outcome: Erased | RelayError) -> None:
            self._under_way.discard(key)
            tell(outcome)

        self._settle(name, Erased(), over)

    def _check(self, name: str, deed: str = "forget") -> None:
        agent = self._registry.find(name)
        is_here = (agent is not None and agent.peer is not None) or self._is_arriving(name)
        if not is_here and not self._spawning.is_live(name) and not self._leavings.is_held(name):
            return
        shown = agent.name if agent else name
        sentence = f"{shown} is running. Stop it first (agent-relay stop {shown}), then {deed} it."
        raise RelayError(ErrorCode.REJECTED, sentence, reason="agent_is_running", name=name)

    # --- what is on its way ---------------------------------------------------------------------------------------------

    def _settle(self, name: str, erased: Erased, tell: Tell) -> None:
        agent = self._registry.find(name)
        if agent is None:
            self._committer.when_written(lambda: self._remove(name, erased, tell))
            return

        def abandoned(undelivered_from: int, undelivered_to: int) -> None:
            erased.undelivered_from += undelivered_from
            erased.undelivered_to += undelivered_to
            self._committer.when_written(lambda: self._remove(name, erased, tell))

        self._owed.abandon(agent, abandoned)

    def _remove(self, name: str, erased: Erased, tell: Tell) -> None:
        """Everything said so far is stored. Somebody may have written to it meanwhile, or it may have come."""
        agent = self._registry.find(name)
        try:
            self._check(name)
        except RelayError as error:
            tell(error)
            return
        if agent is not None and (agent.mailbox.reserved or agent.pending or not agent.mailbox.idle):
            self._settle(name, erased, tell)
            return
        if agent is None or agent.is_registered:  # such a name is its owner's for ever; what was said goes
            self._erase_messages(name, erased, tell)
            return
        self._committer.change(
            self._take_out(agent),
            lambda error: tell(_unerased(error)) if error is not None else self._erase_messages(name, erased, tell),
        )

    def _take_out(self, agent: Agent) -> Callable[[Batch], None]:
        numbers = [
            (other, place, stream)
            for other in self._registry.agents.values()
            for place, stream in other.streams.items()
            if place[1] == agent.key and other is not agent
        ]
        self._registry.remove(agent)
        self._tokens.forget(agent)
        for other, place, stream in numbers:
            other.streams[place] = stream

        def fill(batch: Batch) -> None:
            batch.forgotten.append(agent.name)
            batch.streams += [stream.row() for _, _, stream in numbers]

        return fill

    # --- what is kept ---------------------------------------------------------------------------------------------------

    def _erase_messages(self, name: str, erased: Erased, tell: Tell) -> None:
        def done(count: int | StoreError) -> None:
            if isinstance(count, StoreError):
                tell(_unerased(count))
                return
            erased.messages += count
            if count >= _AT_ONCE:
                self._store.erase(name, _AT_ONCE, done)
            else:
                self._erase_rest(name, erased, tell)

        self._store.erase(name, _AT_ONCE, done)

    def _erase_rest(self, name: str, erased: Erased, tell: Tell) -> None:
        def done(left: Left | StoreError) -> None:
            if isinstance(left, StoreError):
                tell(_unerased(left))
                return
            erased.events, erased.files = left.events, left.files
            self._context.log.note("erased", messages=erased.messages, events=left.events, files=left.files)
            self._committer.when_written(lambda: tell(erased))  # documents are written behind everything else

        self._spawning.forget(name)
        self._proposals.forget(name)
        self._leavings.erase(name, done)


def _unerased(error: Any) -> RelayError:
    return RelayError(
        ErrorCode.SERVICE_UNAVAILABLE, f"Not everything could be erased ({error}). Try again.", retry_after_ms=1_000
    )
