"""Mail that is owed to an agent, or by it: counted, and given up when the agent goes.

Wherever it is: on the wire, in a queue, or left in the store (`core.rest`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from agent_relay.core.endings import Endings
from agent_relay.core.journal import Journal
from agent_relay.core.rest import Rest, Take
from agent_relay.ports.store import OwedQuery
from agent_relay.protocol.errors import ErrorCode, RelayError

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.messages import Delivery


class OwedMail:
    """`owing`: the recipients that are owed anything, by key, as the ledger keeps them."""

    def __init__(self, journal: Journal, rest: Rest, endings: Endings, owing: Mapping[str, Agent]) -> None:
        self._journal = journal
        self._rest = rest
        self._endings = endings
        self._owing = owing

    # --- counted ------------------------------------------------------------------------------------------------------

    def count_to(self, recipient: Agent) -> int:
        """The number of messages that it has not acknowledged."""
        return len(self.list_to(recipient)) + recipient.mailbox.rest

    def count_from(self, sender: Agent, done: Callable[[int], None]) -> None:
        """The number of messages that it sent to others and they have not acknowledged."""
        here = len(self._list_from(sender))
        self._rest.count(OwedQuery(sender=sender.name), lambda count: done(here + count))

    def list_to(self, recipient: Agent) -> list[Delivery]:
        """Those that are in memory."""
        box = recipient.mailbox
        handed = [] if recipient.peer is None else recipient.peer.unwritten
        return [delivery for delivery in [*handed, *box.inflight.values(), *box.all_waiting()] if not delivery.replay]

    def _list_from(self, sender: Agent) -> list[Delivery]:
        boxes = [recipient for recipient in self._owing.values() if recipient is not sender]
        return [each for recipient in boxes for each in self.list_to(recipient) if each.message.sender is sender]

    # --- given up -----------------------------------------------------------------------------------------------------

    def abandon(self, agent: Agent, done: Callable[[int, int], None]) -> None:
        """On the owner's order nothing that this agent sent, or is to get, is delivered any more; whoever sent it and still is
        somebody is told. Says how many messages they were, those it sent first."""
        counts = []
        queries = (OwedQuery(sender=agent.name), self._list_from(agent)), (OwedQuery(recipient=agent.name), self.list_to(agent))
        for query, here in queries:
            self.take_out(here)
            self._abandon(here)

            def over(count: int, here: list[Delivery] = here) -> None:
                counts.append(len(here) + count)
                if len(counts) == len(queries):
                    done(*counts)

            self._rest.end(query, self._abandon, over)

    def _abandon(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            recipient = delivery.recipient
            error = RelayError(ErrorCode.REJECTED, f"The relay's owner erased the messages to {recipient.name}.")
            self._endings.give_up(delivery, "erased", "", error)

    def drop(self, recipient: Agent) -> None:
        """It has gone, and nothing is kept for it."""

        def end(deliveries: list[Delivery]) -> None:
            for delivery in deliveries:
                if not delivery.replay:
                    self._journal.ended(delivery, "dropped", "nothing is kept for it while it is offline")
                    self._endings.settle(delivery)

        end(recipient.mailbox.take_all())
        self._end_rest(recipient, end)

    def bury(self, recipient: Agent, done: Callable[[int], None] = lambda _count: None, *, is_kept: bool = True) -> None:
        """There is no such agent any more: whoever has its name next must not get its mail. `is_kept`: as dead letters."""

        def end(deliveries: list[Delivery]) -> None:
            for delivery in deliveries:
                if not delivery.replay:
                    error = RelayError(ErrorCode.AGENT_NOT_FOUND, f"{recipient.name} was removed before it got the message.")
                    give_up = self._endings.bury if is_kept else self._endings.give_up
                    give_up(delivery, "removed", "its name was removed", error)

        here = recipient.mailbox.take_all()
        end(here)
        owed = sum(not delivery.replay for delivery in here)
        self._end_rest(recipient, end, lambda count: done(owed + count))

    def _end_rest(self, recipient: Agent, end: Take, done: Callable[[int], None] = lambda _count: None) -> None:
        if recipient.mailbox.rest:
            self._rest.end(OwedQuery(recipient=recipient.name), end, done)
        else:
            done(0)

    def take_out(self, deliveries: list[Delivery]) -> None:
        """Of wherever they are, the wire or a queue."""
        ids = {delivery.id for delivery in deliveries}
        for recipient in {delivery.recipient.key: delivery.recipient for delivery in deliveries}.values():
            box = recipient.mailbox
            box.take(lambda delivery: delivery.id in ids)
            for id_ in ids & box.inflight.keys():
                del box.inflight[id_]
            for delivery in [] if recipient.peer is None else recipient.peer.unwritten:
                if delivery.id in ids:
                    delivery.replay = True  # it stays in its place: how many were read is counted
