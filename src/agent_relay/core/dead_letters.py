"""Dead letters on the owner's order: sent again, or dismissed. A dismissed one stays in the history.

`lookups.history` lists them; the journal knows which of them have changed a moment ago.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_relay.core.lookups.message_ids import find_dead_letter, unreadable
from agent_relay.core.registry import Registry
from agent_relay.core.sending import Sending
from agent_relay.ports.store import MessageRow, MessageStore, Page, StoreError
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.journal import Journal
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import envelope


RETRY_LETTER, DISMISS_LETTER = "retry_dead_letter", "dismiss_dead_letter"
COMMANDS = (RETRY_LETTER, DISMISS_LETTER)


class DeadLetters:
    def __init__(self, registry: Registry, store: MessageStore, journal: Journal, sending: Sending) -> None:
        self._registry = registry
        self._store = store
        self._journal = journal
        self._sending = sending
        self._reviving: set[tuple[int, str]] = set()  # so that each goes once

    def receive(self, peer: Peer, frame: envelope.Control) -> None:
        message_id = frame.payload.id or ""

        def found(page: Page | RelayError) -> None:
            if isinstance(page, RelayError) and page.code is not ErrorCode.ROUTE_NOT_FOUND:
                peer.say_error(page, frame.id)
                return
            lost = [] if isinstance(page, RelayError) else self._lost_keys(page)
            if isinstance(page, RelayError) or not lost:
                peer.say_error(RelayError(ErrorCode.ROUTE_NOT_FOUND, f"There is no dead letter {message_id}."), frame.id)
            elif frame.payload.command == DISMISS_LETTER:
                self._dismiss(peer, frame.id, page.messages[0], lost)
            else:
                self._recall_and_revive(peer, frame.id, page.messages[0], lost)

        try:
            find_dead_letter(self._store, message_id, found)
        except RelayError as error:
            peer.say_error(error, frame.id)

    def _lost_keys(self, page: Page) -> list[str]:
        """Recipients that the message could not be delivered to, and is not on its way to again."""
        (row,) = page.messages
        keys = [fold_name(name) for name, _ in row.recipients]
        return [
            key
            for key in keys
            if self._journal.is_dead(row.number, key, stored=(row.number, key) in page.dead)
            and (row.number, key) not in self._reviving
        ]

    def _dismiss(self, peer: Peer, request_id: str, row: MessageRow, lost: list[str]) -> None:
        for key in lost:
            self._journal.revived(row.number, key)
        dismissed = {"ack_id": request_id, "stage": "dismissed", "message_id": row.id}
        self._journal.then(lambda: peer.say("ACK", dismissed))

    def _recall_and_revive(self, peer: Peer, request_id: str, row: MessageRow, lost: list[str]) -> None:
        sender = self._registry.find(row.sender)
        if sender is None:
            error = RelayError(ErrorCode.AGENT_NOT_FOUND, f"Its sender {row.sender} is no longer known.", name=row.sender)
            peer.say_error(error, request_id)
            return

        def recalled(error: StoreError | None) -> None:
            if error is None:
                self._revive(peer, request_id, row, sender, lost)
            else:
                peer.say_error(unreadable(error), request_id)

        self._sending.repetitions.recall(sender, recalled)

    def _revive(self, peer: Peer, request_id: str, row: MessageRow, sender: Agent, lost: list[str]) -> None:
        for key in lost:
            recipient = self._registry.agents.get(key)

            def answered(stored: MessageRow | StoreError, key: str = key, recipient: Agent | None = recipient) -> None:
                self._reviving.discard((row.number, key))
                if isinstance(stored, StoreError):
                    peer.say_error(unreadable(stored), request_id)
                    return
                self._journal.revived(row.number, key)
                peer.say(
                    "ACK",
                    {
                        "ack_id": request_id,
                        "stage": "requeued",
                        "message_id": stored.id,
                        "by": recipient.name if recipient else key,
                    },
                )

            try:
                if recipient is None or recipient.hidden:
                    raise RelayError(ErrorCode.AGENT_NOT_FOUND, f"{key} is no longer known.", name=key)
                self._sending.send_again(peer, row, sender, recipient, answered)
                self._reviving.add((row.number, key))
            except RelayError as error:
                peer.say_error(error, request_id)
