"""One message that the owner sends, and what becomes of it for as long as somebody waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from agent_relay.core.inside_peer import InsidePeer, Said
from agent_relay.core.relay import Relay
from agent_relay.ports.service import Answer, KeyReused, Outgoing, Sent
from agent_relay.ports.store import MessageRow
from agent_relay.protocol import envelope as e
from agent_relay.protocol.encode import read_tail
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.payloads import CancelPayload

_GRACE_MS = 1_000

Payload: TypeAlias = dict[str, Any]
ReadPayload: TypeAlias = Callable[[str, Callable[["Payload | RelayError"], None]], None]  # of the message with that id


class OwnerMessage:
    """`over` is called once, with what became of it. `key` is the client's own id for it."""

    def __init__(
        self, relay: Relay, message: Outgoing, id_: str, key: str | None, read_payload: ReadPayload,
        over: Callable[[OwnerMessage, Sent | RelayError], None],
    ) -> None:  # fmt: skip
        self._relay = relay
        self._message = message
        self._id = id_
        self._key = key
        self._read_payload = read_payload
        self._over = over
        self._payload = _payload_of(message)
        self._peer: InsidePeer | None = None  # who sent it
        self._sent: Sent | None = None  # once it is stored
        self._is_over = False
        self.deadline: int | None = None  # by the steady clock: how long anybody waits

    def post(self, peer: InsidePeer | RelayError) -> None:
        if self._is_over:
            return  # nobody waits any more, so it is not sent
        if isinstance(peer, RelayError):
            self._end(peer)
            return
        message, self._peer = self._message, peer
        peer.follow(self._id, self._hear)
        self._relay.sent_inside(peer, self._id, message.to, message.topic or "", self._payload, self._meta(), self._stored)

    def _meta(self) -> dict[str, Any]:
        message = self._message
        wanted = {"priority": message.priority, "ttl_ms": message.ttl_ms, "reply_to": message.reply_to}
        meta: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
        if self._is_awaited:
            meta["requires_ack"] = True
        if message.reply_ms is not None:
            # We give up first: whatever the daemon says then is about the message, and not about the waiting.
            meta["sync"] = {"correlationId": self._id, "timeoutMs": message.reply_ms + _GRACE_MS, "blocking": True}
        return meta

    @property
    def _is_awaited(self) -> bool:
        return self._message.wait_ms is not None or self._message.reply_ms is not None

    def give_up(self) -> None:
        """Nobody waits any longer. What is known so far is the outcome."""
        if self._is_over:
            return
        sent = self._sent
        if self._message.reply_ms is not None and sent is not None and sent.reply is None:
            self._cancel()
        if sent is None:
            self._is_over = True
            self._forget()
            return
        sent.delivered = 0 < sent.recipients == len(sent.by)
        self._end(sent)

    def _cancel(self) -> None:
        """The question: whatever is answered later is a message as any other."""
        if self._peer is not None and self._peer.active:
            wall_ms = self._relay.context.wall_ms
            self._relay.heard(self._peer, e.Cancel(v=2, id=f"{self._id} c", ts=wall_ms, payload=CancelPayload(self._id)))

    def _end(self, outcome: Sent | RelayError) -> None:
        self._is_over = True
        self._forget()
        self._over(self, outcome)

    def _forget(self) -> None:
        if self._peer is not None:
            self._peer.forget(self._id, self._hear)

    # --- what the relay says ------------------------------------------------------------------------------------------------

    def _stored(self, row: MessageRow | RelayError) -> None:
        if self._is_over:
            return
        if isinstance(row, RelayError):
            self._end(row)
            return
        self._sent = Sent(row.id, len(row.addressed), row.queued, list(row.skipped))
        if not self._is_awaited:
            self._end(self._sent)
            return
        wait_ms = self._message.reply_ms or self._message.wait_ms or 0
        self.deadline = self._relay.context.steady_ms + wait_ms
        self._look(self._sent)

    def _hear(self, said: Said) -> None:
        if isinstance(said, MessageRow):  # it was sent before
            self._stored(said if self._is_same(said) else KeyReused(self._key or ""))
        elif self._sent is None:
            if isinstance(said, RelayError):
                self._stored(said)
        elif isinstance(said, RelayError):  # one of them refused it, or let its time pass
            self._sent.failure = said.message
            self.give_up()
        else:
            self._progress(self._sent, said)

    def _is_same(self, row: MessageRow) -> bool:
        """A key that was given to another message, perhaps before a restart, does not stand for this one."""
        if self._key is None:
            return True
        message = self._message
        is_said = self._payload == read_tail(row.tail)["payload"]
        return is_said and _names(row.target) == _names(message.to) and row.topic == (message.topic or "")

    def _progress(self, sent: Sent, said: Payload) -> None:
        by = said.get("by")
        if by and by not in sent.by:
            sent.by.append(by)
        if self._message.reply_ms is None or said.get("correlationId") != self._id:
            self._look(sent)
            return
        reply_id = said.get("response_message_id")
        if reply_id is None:
            response = _plain(said.get("response"))
            body = response if isinstance(response, str) else ""
            sent.reply = Answer(by or "", body, response, _plain(said.get("responseData")))
            self._look(sent)
        else:
            self._read_payload(reply_id, lambda found: self._read_reply(sent, by or "", reply_id, found))

    def _read_reply(self, sent: Sent, by: str, reply_id: str, found: Payload | RelayError) -> None:
        if self._is_over:
            return
        if isinstance(found, RelayError):
            sent.failure = found.message
            self.give_up()
        else:
            sent.reply = Answer(by, str(found.get("body", "")), None, found.get("data"), reply_id)
            self._look(sent)

    def _look(self, sent: Sent) -> None:
        """Whether everyone has it, or, where an answer is wanted, whether that is here."""
        wants_reply = self._message.reply_ms is not None and sent.recipients
        if (sent.reply is not None) if wants_reply else (len(sent.by) >= sent.recipients):
            self.give_up()


def _payload_of(message: Outgoing) -> Payload:
    payload: Payload = {"kind": message.kind, "body": message.body}
    if message.thread is not None:
        payload["thread"] = message.thread
    if message.data is not None:
        payload["data"] = message.data
    return payload


def _plain(value: Any) -> Any:
    """Passes on what a recipient's ACK carries, unread."""
    return msgspec.json.decode(value) if isinstance(value, Raw) else value


def _names(to: str | list[str] | None) -> set[str]:
    """The folded names of the recipients, however they were written."""
    return {fold_name(name) for name in (to.split(",") if isinstance(to, str) else to or [])}
