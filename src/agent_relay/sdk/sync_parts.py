"""Results of `SyncRelayClient`: receipts, questions, messages and feeds whose methods block."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from agent_relay.events.types import AnyEvent
from agent_relay.protocol.consensus import Outcome
from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.proposals import Proposal as ProposalInfo
from agent_relay.sdk.errors import ConnectionLost, TimedOut
from agent_relay.sdk.events import EventFeed
from agent_relay.sdk.loop_thread import LoopThread
from agent_relay.sdk.messages import Incoming, Message
from agent_relay.sdk.proposals import Proposal
from agent_relay.sdk.receipts import Delivered, Receipt
from agent_relay.sdk.requests import Question
from agent_relay.sdk.streams import MessageStream


class SyncReceipt:
    """As `Receipt`; its methods block."""

    def __init__(self, receipt: Receipt, thread: LoopThread) -> None:
        self._receipt = receipt
        self._thread = thread

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message_id or self.id}, recipients={self.recipients}, queued={self.queued})"

    @property
    def id(self) -> str:
        return self._receipt.id

    @property
    def message_id(self) -> str:
        return self._receipt.message_id

    @property
    def recipients(self) -> int:
        return self._receipt.recipients

    @property
    def queued(self) -> int:
        return self._receipt.queued

    @property
    def skipped(self) -> list[str]:
        return self._receipt.skipped

    @property
    def duplicate(self) -> bool:
        return self._receipt.duplicate

    @property
    def held_ms(self) -> int:
        return self._receipt.held_ms

    def stored(self) -> SyncReceipt:
        self._thread.run(self._receipt.stored())
        return self

    def delivered(self, timeout: float | None = None) -> list[Delivered]:
        return self._thread.run(self._receipt.delivered(timeout))


class SyncQuestion(SyncReceipt):
    """As `Question`: what `ask` returns and `answer_to` takes."""

    def __init__(self, question: Question, thread: LoopThread) -> None:
        super().__init__(question, thread)
        self.question = question

    @property
    def correlation_id(self) -> str:
        return self.question.correlation_id


class SyncProposal:
    """As `Proposal`; waiting for its outcome blocks."""

    def __init__(self, proposal: Proposal, thread: LoopThread) -> None:
        self._proposal = proposal
        self._thread = thread

    def __repr__(self) -> str:
        return f"Sync{self._proposal!r}"

    @property
    def id(self) -> str:
        return self._proposal.id

    @property
    def info(self) -> ProposalInfo:
        return self._proposal.info

    def outcome(self, timeout: float | None = None) -> Outcome:
        return self._thread.run(self._proposal.outcome(timeout))


class SyncMessage(Incoming):
    """As `Message`; its methods block, and it is `with message:` that acknowledges it at the end of the block."""

    __slots__ = ("_message", "_thread")

    def __init__(self, message: Message, thread: LoopThread) -> None:
        for name in Incoming.__slots__:
            setattr(self, name, getattr(message, name))
        self._message = message
        self._thread = thread

    def __enter__(self) -> SyncMessage:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._thread.run(self._message.__aexit__(kind, error, trace))

    def ack(
        self, response: Any = None, response_data: Any = None, *, door: str | None = None, evidence: str | None = None
    ) -> None:
        self._thread.run(self._message.ack(response, response_data, door=door, evidence=evidence))

    def nack(self, code: ErrorCode = ErrorCode.REJECTED, message: str | None = None, retry_after_ms: int | None = None) -> None:
        self._thread.run(self._message.nack(code, message, retry_after_ms))

    def reply(self, body: str, *, data: dict[str, Any] | None = None, kind: str = "message", ack: bool = True) -> SyncReceipt:
        return SyncReceipt(self._thread.run(self._message.reply(body, data=data, kind=kind, ack=ack)), self._thread)


class SyncMessageLoop:
    """One `for` over a stream; messages are acknowledged by the same rules as in `MessageLoop`."""

    def __init__(self, stream: MessageStream, thread: LoopThread, timeout: float | None) -> None:
        self._stream = stream
        self._thread = thread
        self._timeout = timeout
        self._current: tuple[Message, int] | None = None  # and its `handed` when it came to us

    def __repr__(self) -> str:
        return f"SyncMessageLoop(at={self._current[0] if self._current else None!r})"

    def __iter__(self) -> SyncMessageLoop:
        return self

    def __next__(self) -> SyncMessage:
        current, self._current = self._current, None
        if current is not None:
            self._thread.call(lambda done: self._stream.acknowledge(*done), current)
        try:
            message = self._thread.run(self._stream.receive(self._timeout))
        except TimedOut:
            raise StopIteration from None
        except ConnectionLost as error:
            if error.details.get("reason") == "closed":
                raise StopIteration from None
            raise
        self._current = message, message.handed
        return SyncMessage(message, self._thread)

    def __del__(self) -> None:
        if self._current is not None:
            stream = self._stream
            self._thread.call(lambda left: stream.put_back(*left), self._current)


class SyncMessageStream:
    """As `MessageStream`; waiting for a message blocks."""

    def __init__(self, stream: MessageStream, thread: LoopThread, timeout: float | None = None) -> None:
        self._stream = stream
        self._thread = thread
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"Sync{self._stream!r}"

    def __iter__(self) -> SyncMessageLoop:
        return SyncMessageLoop(self._stream, self._thread, self._timeout)

    def receive(self, timeout: float | None = None) -> SyncMessage:
        return SyncMessage(self._thread.run(self._stream.receive(timeout)), self._thread)


class SyncEventFeed:
    """As `EventFeed`; waiting for an event blocks."""

    def __init__(self, feed: EventFeed, thread: LoopThread) -> None:
        self._feed = feed
        self._thread = thread

    def __repr__(self) -> str:
        return f"Sync{self._feed!r}"

    def __enter__(self) -> SyncEventFeed:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def cursor(self) -> int | None:
        return self._feed.cursor

    def __iter__(self) -> SyncEventFeed:
        return self

    def __next__(self) -> AnyEvent:
        event = self._thread.run(_next_or_none(self._feed))
        if event is None:
            raise StopIteration
        return event

    def close(self) -> None:
        self._thread.run(self._feed.aclose())


async def _next_or_none(feed: EventFeed) -> AnyEvent | None:
    """StopAsyncIteration cannot leave a coroutine."""
    return await anext(feed, None)
