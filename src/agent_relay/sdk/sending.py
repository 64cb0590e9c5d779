"""Sending a message: its options, the wait for the daemon's answer, retries, and questions with their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from agent_relay.protocol.encode import encode_envelope
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import did_you_mean
from agent_relay.protocol.payloads import HistoryPayload, HistoryResultPayload, SyncRequest
from agent_relay.protocol.retry import REDELIVERY
from agent_relay.sdk.backoff import Backoff
from agent_relay.sdk.errors import ConnectionLost, TimedOut
from agent_relay.sdk.ids import wall_ms
from agent_relay.sdk.outbox import Outbox, SendFrame, SendMeta, SendPayload, encode_send
from agent_relay.sdk.pace import Pace
from agent_relay.sdk.queries import Queries, expect
from agent_relay.sdk.receipts import Receipt
from agent_relay.sdk.requests import Question, Questions, Reply
from agent_relay.sdk.session import Session

Target = str | Sequence[str] | None

_ANSWER_GRACE_S = 1.0  # the daemon ends the wait; only where it cannot be heard do we, this much later
_REPLY_GRACE_S = 1.0  # how long a promised reply may take to be delivered before it is looked up


class PublishOptions(TypedDict, total=False):
    kind: str  # `message` unless said otherwise; `action`, `state`, `thinking`, or another lowercase word
    thread: str | None
    data: dict[str, Any] | None
    priority: int | None  # 0 (first) to 9 (last); 5 unless said otherwise
    ttl_ms: int | None  # how long it may wait for its recipients before it becomes a dead letter
    reply_to: str | None  # the message id this one answers
    requires_ack: bool  # True unless said otherwise: `receipt.delivered()` works
    id: str | None  # the same id again is the same message, and is not sent twice


class SendOptions(PublishOptions, total=False):
    topic: str | None
    heard: str | None  # `screen`: read off the sender's screen, where tool output may look like its words


def check_options(method: str, options: Mapping[str, object], known: frozenset[str]) -> None:
    """Python itself checks no keyword that `**options` takes. Raises TypeError, as it would."""
    for name in options:
        if name not in known:
            near = did_you_mean(name, sorted(known))
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{method}() got an unexpected keyword argument {name!r}.{hint}")


SEND_OPTIONS = frozenset(SendOptions.__annotations__)
PUBLISH_OPTIONS = frozenset(PublishOptions.__annotations__)


class Sender:
    def __init__(
        self, session: Session, outbox: Outbox, queries: Queries, questions: Questions, backoff: Backoff, pace: Pace
    ) -> None:
        self._session = session
        self._outbox = outbox
        self._queries = queries
        self._questions = questions
        self._backoff = backoff
        self._pace = pace

    async def submit(self, to: Target, body: str, **options: Unpack[SendOptions]) -> Receipt:
        id_, frame = self._draft(to, body, options, None)
        receipt = Receipt(self._outbox, id_, frame, requires_ack=options.get("requires_ack", True))
        await self._submit(to, receipt)
        return receipt

    async def _submit(self, to: Target, receipt: Receipt) -> None:
        if self._pace.busy:
            receipt.held_ms = await self._pace.ease(to)
        await self._outbox.submit(receipt)

    async def send(self, to: Target, body: str, retry_for: float, **options: Unpack[SendOptions]) -> Receipt:
        options["id"] = options.get("id") or self._session.ids.next("s_")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + retry_for
        attempt = 0
        while True:
            try:
                return await self._send_once(to, body, options)
            except ConnectionLost:
                raise
            except RelayError as error:
                attempt += 1
                delay_ms = error.retry_after_ms or REDELIVERY.delay_ms(attempt, self._backoff.random())
                if not error.code.retryable or loop.time() + delay_ms / 1000 > deadline:
                    raise
                await self._backoff.sleep(delay_ms / 1000)

    async def _send_once(self, to: Target, body: str, options: SendOptions) -> Receipt:
        receipt = await self.submit(to, body, **options)
        try:
            return await receipt.stored()
        except asyncio.CancelledError:
            self._outbox.withdraw(receipt)
            raise

    async def request(self, to: Target, body: str, timeout: float, **options: Unpack[SendOptions]) -> Reply:  # noqa: ASYNC109
        question = self._make_question(to, body, timeout, options)
        return await self._until_answered(question, timeout, self._submit(to, question))

    async def ask(self, to: Target, body: str, timeout: float, **options: Unpack[SendOptions]) -> Question:  # noqa: ASYNC109
        question = self._make_question(to, body, timeout, options)
        await self._submit(to, question)
        await question.stored()
        return question

    async def answer_to(self, question: Question, timeout: float) -> Reply:  # noqa: ASYNC109
        return await self._until_answered(question, timeout)

    def _make_question(self, to: Target, body: str, timeout: float, options: SendOptions) -> Question:
        if not timeout > 0:
            raise RelayError(ErrorCode.INVALID_FORMAT, "A request needs a timeout greater than 0 seconds.", field="timeout")
        options["requires_ack"] = False  # the answer is what is waited for, and it has its own way back
        correlation_id = self._session.ids.next("c_")
        sync = SyncRequest(correlationId=correlation_id, timeoutMs=max(1, round(timeout * 1000)), blocking=True)
        id_, frame = self._draft(to, body, options, sync)
        return Question(self._outbox, self._questions, id_, frame, correlation_id, to)

    async def _until_answered(
        self, question: Question, timeout: float, before: Awaitable[None] | None = None  # noqa: ASYNC109
    ) -> Reply:  # fmt: skip
        try:
            async with asyncio.timeout(timeout + _ANSWER_GRACE_S):
                if before is not None:
                    await before
                return await self._wait_for_answer(question)
        except TimeoutError as error:
            if isinstance(error, RelayError):
                raise
            raise TimedOut(f"No reply within {timeout:g} seconds.") from None
        finally:
            self._questions.close(question)
            if not question.answer.done:
                self._call_off(question)

    async def _wait_for_answer(self, question: Question) -> Reply:
        await question.heard.wait()
        if not question.answer.done and question.promised is not None:
            try:
                async with asyncio.timeout(_REPLY_GRACE_S):
                    await question.answer.wait()
            except TimeoutError:
                # It cannot reach us while we have as many unacknowledged messages as we may; but it can be read.
                return await self._fetch_reply(question, question.promised)
        return await question.answer.wait()

    async def _fetch_reply(self, question: Question, reply_id: str) -> Reply:
        found = expect(HistoryResultPayload, await self._queries.ask("HISTORY", HistoryPayload(view="message", id=reply_id)))
        if question.answer.done or not found.messages:
            return await question.answer.wait()
        self._questions.mark_fetched(reply_id)
        message = found.messages[0]
        payload = message.get("payload") or {}
        reply = Reply(str(message.get("from", "")), str(payload.get("body", "")), None, payload.get("data"))
        question.answer.resolve(reply)
        return reply

    def _call_off(self, question: Question) -> None:
        if not self._outbox.withdraw(question):
            payload = {"correlationId": question.correlation_id}
            self._session.write(encode_envelope("CANCEL", self._session.ids.next("x_"), wall_ms(), payload))

    def _draft(self, to: Target, body: str, options: SendOptions, sync: SyncRequest | None) -> tuple[str, bytes]:
        id_ = options.get("id") or self._session.ids.next("s_")
        meta = SendMeta(
            options.get("requires_ack", True),
            options.get("ttl_ms"),
            options.get("priority"),
            options.get("reply_to"),
            sync,
            options.get("heard"),
        )
        payload = SendPayload(body, options.get("kind", "message"), options.get("thread"), options.get("data"))
        recipients = to if to is None or isinstance(to, str) else list(to)
        return id_, encode_send(SendFrame(2, id_, wall_ms(), payload, recipients, options.get("topic"), meta))
