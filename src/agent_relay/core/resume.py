"""RESUME's streams: from where each goes on, and the messages that have to be shown again.

Numbers count per sender, so a point that names its sender is exact: everything up to it counts as acknowledged, and
everything after it follows. A point that names only the topic is exact where that topic has one sender; where it has
several it can only mean "at least from here", and acknowledges nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_relay.core.context import Context
from agent_relay.core.delivery import Ledger
from agent_relay.core.journal import Journal
from agent_relay.core.mailbox import NEVER
from agent_relay.core.messages import Delivery, Message, delivery_id
from agent_relay.core.registry import Registry
from agent_relay.ports.store import MessageRow, MessageStore, Page, StoreError
from agent_relay.protocol.encode import read_shadows
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.streams import Stream
    from agent_relay.protocol import payloads

Points = list[dict[str, Any]]


class Resumption:
    def __init__(self, context: Context, registry: Registry, store: MessageStore, journal: Journal, ledger: Ledger) -> None:
        self._context = context
        self._registry = registry
        self._store = store
        self._journal = journal
        self._ledger = ledger

    def start(
        self, agent: Agent, given: dict[str, payloads.LastSeq] | list[payloads.StreamPoint],
        done: Callable[[Points | RelayError], None],
    ) -> None:  # fmt: skip
        """Calls back with what SYNC says about the streams, once everything to be shown again is queued."""
        behind: dict[tuple[str, str], int] = {}
        for stream, last_seq, exact in self._match(agent, given):
            if exact and last_seq > stream.done_seq:
                known_seq = min(last_seq, stream.last_seq)
                self._ledger.settle_up_to(agent, stream, known_seq)
                stream.base_seq = max(stream.base_seq, known_seq)
            if last_seq < max((stream.done_seq, *stream.done_above)):
                behind[(stream.topic, fold_name(stream.sender))] = last_seq
        if not behind:
            done(_points(agent, behind))
            return

        asker = agent.peer

        def found(page: Page | StoreError) -> None:
            if agent.peer is not asker:
                return  # it has gone meanwhile, and whoever came instead has asked for nothing
            if isinstance(page, StoreError):
                done(RelayError(ErrorCode.SERVICE_UNAVAILABLE, f"The history could not be read ({page}).", retry_after_ms=1_000))
                return
            done(self._show_again(agent, behind, page))

        self._store.replay(agent.name, behind, found)

    def _match(
        self, agent: Agent, given: dict[str, payloads.LastSeq] | list[payloads.StreamPoint]
    ) -> list[tuple[Stream, int, bool]]:
        matched = []
        named = (
            [(topic, None, point.last_seq) for topic, point in given.items()]
            if isinstance(given, dict)
            else [(point.topic, point.peer, point.last_seq) for point in given]
        )
        for topic, peer, last_seq in named:
            streams = [
                stream
                for (stream_topic, sender), stream in agent.streams.items()
                if stream_topic == topic and (peer is None or sender == fold_name(peer))
            ]
            matched += [(stream, last_seq, len(streams) == 1) for stream in streams]
        return matched

    def _show_again(self, agent: Agent, behind: dict[tuple[str, str], int], page: Page) -> Points | RelayError:
        missing = {key: _count_settled_after(agent.streams[key], last_seq) for key, last_seq in behind.items()}
        shown: list[Delivery] = []
        for row in page.messages:
            key = (row.topic, fold_name(row.sender))
            for place, (name, seq) in enumerate(row.recipients):
                if fold_name(name) == agent.key and seq > behind[key] and agent.streams[key].is_done(seq):
                    missing[key] -= 1
                    if self._journal.is_dead(row.number, agent.key, stored=(row.number, agent.key) in page.dead):
                        continue  # its sender was told that it never arrived, so it must not arrive now
                    shown.append(self._revive(agent, row, agent.streams[key], seq, place))
        if any(missing.values()):
            error = RelayError(ErrorCode.STALE, "Some of the requested messages are no longer kept; send HELLO.")
            error.details = {"code": ErrorCode.RESUME_TOO_OLD.value, "alias": ErrorCode.STALE.value}
            return error
        for key, last_seq in behind.items():
            agent.streams[key].base_seq = last_seq  # so that what is missing from here on is declared once more
        waiting = agent.mailbox.take_all()
        self._ledger.admit(sorted(shown + waiting, key=lambda delivery: delivery.message.row.number))
        return _points(agent, behind)

    def _revive(self, agent: Agent, row: MessageRow, stream: Stream, seq: int, place: int) -> Delivery:
        sender = self._registry.find(row.sender) or agent
        to = row.target if row.target[:1] in {"*", "#"} else None
        message = Message(
            row, sender, [agent], shared=False, to=to, requires_ack=False,
            accepted=self._context.steady_ms, expires=NEVER, open=1,
        )  # fmt: skip
        is_copy = row.recipients[place][0] in read_shadows(row.tail)
        return Delivery(message, agent, stream, seq, delivery_id(row, place), attempts=1, replay=True, is_copy=is_copy)


def _count_settled_after(stream: Stream, last_seq: int) -> int:
    return max(0, stream.done_seq - last_seq) + sum(seq > last_seq for seq in stream.done_above)


def _points(agent: Agent, behind: dict[tuple[str, str], int]) -> Points:
    return [
        {
            "topic": topic,
            "peer": stream.sender,
            "last_seq": behind.get((topic, sender), max(stream.done_seq, stream.claimed_seq)),
            "server_last_seq": stream.last_seq,
        }
        for (topic, sender), stream in agent.streams.items()
    ]
