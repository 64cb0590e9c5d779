"""Questions: a message that waits for its answer, which is an acknowledgement with content or a message in reply.

A reply by message is announced twice: the daemon's `delivered` ACK names it, and it is delivered like any other. The
message is the answer; the ACK alone is only the promise of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name, is_name
from agent_relay.protocol.payloads import ReceiptPayload
from agent_relay.sdk.outcome import Outcome
from agent_relay.sdk.receipts import Receipt

if TYPE_CHECKING:
    from agent_relay.sdk.messages import Message
    from agent_relay.sdk.outbox import Outbox

_REMEMBERED_REPLIES = 1_000


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `message` is set when it came as a message of its own; it is acknowledged already."""

    by: str
    body: str  # the answer as text, whichever way it came
    response: Any = None  # what the recipient's acknowledgement said
    data: Any = None  # `responseData` of the acknowledgement, or `data` of the message
    message: Message | None = None


class Question(Receipt):
    """The receipt of a SEND with `sync.blocking`. The first answer completes it."""

    __slots__ = ("_questions", "answer", "asked", "correlation_id", "heard", "promised")

    def __init__(
        self, outbox: Outbox, questions: Questions, id_: str, frame: bytes, correlation_id: str, to: str | Sequence[str] | None
    ) -> None:
        super().__init__(outbox, id_, frame, requires_ack=True)
        self.correlation_id = correlation_id
        names = [to] if isinstance(to, str) else list(to or ())
        self.asked = {fold_name(name) for name in names} if names and all(map(is_name, names)) else None
        self.answer: Outcome[Reply] = Outcome()
        self.promised: str | None = None  # the id of the reply that is on its way
        self.heard: Outcome[None] = Outcome()  # of the answer, or of the promise of one
        self._questions = questions

    def take_stored(self, said: ReceiptPayload) -> None:
        super().take_stored(said)
        if self.recipients:
            self._questions.open(self)
        else:
            self._conclude(RelayError(ErrorCode.AGENT_OFFLINE, "The question had no recipients."))

    def take_delivered(self, said: ReceiptPayload) -> None:
        if said.response_message_id is not None:
            self.promised = said.response_message_id
            self.heard.resolve(None)
        elif said.correlationId == self.correlation_id:
            text = said.response if isinstance(said.response, str) else ""
            self._conclude(Reply(said.by or "", text, said.response, said.responseData))

    def take_reply(self, message: Message) -> bool:
        """False: it is not the answer. Whoever was not asked cannot answer, and one answer is enough."""
        if self.answer.done or (self.asked is not None and fold_name(message.from_) not in self.asked):
            return False
        self._conclude(Reply(message.from_, message.body, None, message.data, message))
        return True

    def take_refusal(self, error: RelayError) -> None:
        super().take_refusal(error)
        self._conclude(error)

    def take_failure(self, error: RelayError) -> None:
        self._conclude(error)
        super().take_failure(error)

    def _conclude(self, end: Reply | RelayError) -> None:
        if isinstance(end, Reply):
            self.answer.resolve(end)
        else:
            self.answer.fail(end)
        self.heard.resolve(None)

    @property
    def settled(self) -> bool:
        return self.answer.done

    @property
    def awaited(self) -> bool:
        return not self.answer.done

    def _check_complete(self) -> None:
        pass  # an acknowledgement is no answer


class Questions:
    """The open ones, by the id that a reply to them names."""

    def __init__(self, take_early: Callable[[str], Message | None]) -> None:
        self._by_message: dict[str, Question] = {}
        self._take_early = take_early
        self._fetched: OrderedDict[str, None] = OrderedDict()  # replies that were read before they were delivered

    def open(self, question: Question) -> None:
        self._by_message[question.message_id] = question
        # After a reconnect the reply may have come before the repeated receipt told us the id it names.
        early = self._take_early(question.message_id)
        if early is not None:
            question.take_reply(early)

    def close(self, question: Question) -> None:
        if self._by_message.get(question.message_id) is question:
            del self._by_message[question.message_id]

    def mark_fetched(self, message_id: str) -> None:
        self._fetched[message_id] = None
        if len(self._fetched) > _REMEMBERED_REPLIES:
            self._fetched.popitem(last=False)

    def take_reply(self, message: Message) -> bool:
        """True if the message is the answer to a question, and belongs to whoever asked."""
        if message.id in self._fetched:
            return True
        question = self._by_message.get(message.reply_to) if message.reply_to is not None else None
        return question is not None and question.take_reply(message)
