"""Questions that wait for their answer: a SEND with `sync.blocking`, until an answer, a CANCEL or its time-out.

An answer is an ACK that carries the correlation id, or a message that names the question in `reply_to`. It resolves the
question exactly once; whatever comes later is an ordinary acknowledgement or an ordinary message.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_relay.core.agents import tell
from agent_relay.core.context import Context
from agent_relay.core.journal import Journal
from agent_relay.protocol.encode import read_tail
from agent_relay.protocol.errors import ErrorCode, RelayError, error_payload

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.ports.store import MessageRow
    from agent_relay.protocol import payloads


_ANSWERS_KEPT = 1_000  # a question is repeated within seconds of a reconnect, or not at all


@dataclass(slots=True, eq=False)
class AwaitedAnswer:
    sender: Agent
    client_id: str
    correlation_id: str
    message_id: str
    recipients: dict[str, int]  # key → sequence number
    started: int
    deadline: int


class Correlations:
    def __init__(self, context: Context, journal: Journal) -> None:
        self._context = context
        self._journal = journal
        self._by_id: dict[tuple[str, str], AwaitedAnswer] = {}  # (asker's key, correlation id)
        self._by_message: dict[str, AwaitedAnswer] = {}
        self._deadlines: list[tuple[int, int, AwaitedAnswer]] = []
        self._answers: dict[tuple[str, str], dict[str, Any]] = {}  # of the last questions, for who asks the same again
        self._count = 0

    def ask(self, sender: Agent, row: MessageRow, sync: payloads.SyncRequest) -> None:
        now = self._context.steady_ms
        assert sync.correlationId is not None
        key = (sender.key, sync.correlationId)
        if key in self._by_id:
            return  # the same question, sent again after a reconnect
        answer = self._answers.get(key)
        if answer is not None and answer["message_id"] == row.id:
            self._tell(sender, answer)  # it was answered, and the answer got lost on the way
            return
        question = AwaitedAnswer(
            sender, row.client_id, sync.correlationId, row.id, {name.lower(): seq for name, seq in row.addressed},
            now, now + sync.timeoutMs,
        )  # fmt: skip
        self._by_id[key] = question
        self._by_message[row.id] = question
        self._count += 1
        heapq.heappush(self._deadlines, (question.deadline, self._count, question))

    def check_unused(self, sender: Agent, client_id: str, correlation_id: str) -> None:
        """Raises if another question of this sender waits under the same id: nobody could tell their answers apart."""
        question = self._by_id.get((sender.key, correlation_id))
        if question is not None and question.client_id != client_id:
            field = "payload_meta.sync.correlationId"
            raise RelayError(ErrorCode.INVALID_FORMAT, f"`{field}` is in use by a question that is still open.", field=field)

    def answer_by_ack(self, recipient: Agent, sender: Agent | None, ack: payloads.AckPayload) -> bool:
        """True if this ACK was the answer. `sender` is None when the delivery itself was settled before."""
        if ack.correlationId is None or not self._by_id:
            return False
        question = self._find(ack.correlationId, recipient, sender)
        if question is None:
            return False
        more: dict[str, Any] = {}
        if len(ack.response):
            more["response"] = ack.response
        if len(ack.responseData):
            more["responseData"] = ack.responseData
        self._resolve(question, recipient, more | seen_in(ack))
        return True

    def answer_by_message(self, replier: Agent, reply_to: str, reply: MessageRow) -> bool:
        """True if this message was the answer."""
        question = self._by_message.get(reply_to)
        if question is None or replier.key not in question.recipients:
            return False
        more: dict[str, Any] = {"response_message_id": reply.id}
        data = read_tail(reply.tail)["payload"].get("data")
        if data is not None:
            more["responseData"] = data
        self._resolve(question, replier, more)
        return True

    def cancel(self, sender: Agent, correlation_id: str) -> bool:
        question = self._by_id.get((sender.key, correlation_id))
        if question is not None:
            self._forget(question)
        return question is not None

    def clock_says(self, now: int) -> None:
        while self._deadlines and self._deadlines[0][0] <= now:
            _, _, question = heapq.heappop(self._deadlines)
            if self._by_id.get((question.sender.key, question.correlation_id)) is question:
                self._forget(question)
                self._time_out(question, now)

    def _find(self, correlation_id: str, recipient: Agent, sender: Agent | None) -> AwaitedAnswer | None:
        if sender is not None:
            question = self._by_id.get((sender.key, correlation_id))
            return question if question is not None and recipient.key in question.recipients else None
        return next(
            (q for q in self._by_id.values() if q.correlation_id == correlation_id and recipient.key in q.recipients), None
        )

    def _resolve(self, question: AwaitedAnswer, by: Agent, more: dict[str, Any]) -> None:
        self._forget(question)
        payload = {
            "ack_id": question.client_id,
            "stage": "delivered",
            "message_id": question.message_id,
            "by": by.name,
            "seq": question.recipients[by.key],
            "correlationId": question.correlation_id,
        }
        answer = payload | more
        self._answers[(question.sender.key, question.correlation_id)] = answer
        if len(self._answers) > _ANSWERS_KEPT:
            del self._answers[next(iter(self._answers))]
        self._tell(question.sender, answer)

    def _tell(self, sender: Agent, answer: dict[str, Any]) -> None:
        """Once it is durable that the question was read: after a crash it would be asked again, and might end otherwise."""
        self._journal.then(lambda: tell(self._context, sender, "ACK", answer))

    def _time_out(self, question: AwaitedAnswer, now: int) -> None:
        waited = now - question.started
        error = RelayError(ErrorCode.DELIVERY_TIMEOUT, f"No reply within {waited} ms.")
        payload = error_payload(error, question.sender.traits.version) | {
            "nack_id": question.client_id,
            "message_id": question.message_id,
            "correlationId": question.correlation_id,
            "waited_ms": waited,
        }
        tell(self._context, question.sender, "NACK", payload)

    def _forget(self, question: AwaitedAnswer) -> None:
        self._by_id.pop((question.sender.key, question.correlation_id), None)
        self._by_message.pop(question.message_id, None)


def seen_in(ack: payloads.AckPayload) -> dict[str, str]:
    """The way the message went into the recipient's program, where its ACK says so. Evidence without a door is of nothing."""
    if ack.door is None:
        return {}
    return {"door": ack.door} if ack.evidence is None else {"door": ack.door, "evidence": ack.evidence}
