"""The runner of an agent's commands, in the order they were given: messages to others, votes, files of its outbox, agents to be
started or ended; and what the agent hears of that."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from msgspec.structs import replace

from agent_relay.protocol.channels import AT_LEISURE
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.headers import HeaderMessage
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.payloads import BusyPayload
from agent_relay.protocol.short_ids import short_id
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import ConnectionLost
from agent_relay.sdk.locate import working_directory
from agent_relay.sdk.messages import Message
from agent_relay.sdk.receipts import Receipt
from agent_relay.sdk.requests import Question
from agent_relay.sdk.results import RESULT_KIND, find_task, give_result
from agent_relay.sdk.sending import SendOptions
from agent_relay.terminal.agent.ballots import KINDS as BALLOT_KINDS
from agent_relay.terminal.agent.ballots import Ballots
from agent_relay.terminal.agent.launch import Home
from agent_relay.terminal.doors.door import Decision
from agent_relay.terminal.files.run_file import RunFile
from agent_relay.terminal.output.commands import (
    FileCommand,
    JoinCommand,
    LeaveCommand,
    ReleaseCommand,
    ResultCommand,
    SendCommand,
    SpawnCommand,
    VoteCommand,
    words_of,
)
from agent_relay.terminal.output.outbox import Leave, Outbox, SentFile
from agent_relay.terminal.output.watcher import SCREEN, CommandSeen
from agent_relay.terminal.reports.relay_link import RelayLink
from agent_relay.terminal.requests.open_requests import Confirmations

_MOST_QUESTIONS = 500  # beyond that the oldest are forgotten; their askers have long given up
PATIENCE_S = 60.0  # for a recipient's queue to have room
DELIVERY_S = 600.0  # whoever waits longer for a delivery asks again
_AGAIN_S = 0.5
R = TypeVar("R")
_log = logging.getLogger("agent_relay.terminal")


class CommandRunner:
    """`tell` gives the agent a notice; `questions` are those it was given; `answered` hears of those it answered."""

    def __init__(
        self, home: Home, link: RelayLink, run: RunFile, tell: Callable[[str], None], questions: OpenQuestions,
        answered: Callable[[str], None], confirmations: Confirmations,
    ) -> None:  # fmt: skip
        self._confirmations = confirmations
        self._link = link
        self._run_file = run
        self._tell = tell
        self._note_answered = answered
        self._said: asyncio.Queue[CommandSeen] = asyncio.Queue()
        self._process = secrets.token_hex(8)
        self._waits: set[asyncio.Task[None]] = set()
        self._questions = questions
        self._ballots = Ballots(self._insist)
        self.outbox = Outbox(home.outbox, self._send_file)

    def say(self, seen: CommandSeen) -> None:
        if seen.source == SCREEN or not self._run_file.was_said(seen.place):
            self._said.put_nowait(seen)

    async def run(self) -> None:
        while True:
            seen = await self._said.get()
            try:
                await self._carry_out(seen)
                self._run_file.note_said(seen.place if seen.source != SCREEN else "", words_of(seen.command))
            except Exception:  # noqa: BLE001 - it is logged with its traceback, and the agent hears of it
                _log.exception("a command of the agent was not carried out")
                self._tell("Your last request to the relay failed unexpectedly and was probably not carried out.")
            finally:
                self._said.task_done()

    async def drain(self, timeout_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._said.join()
                await self.outbox.sweep()

    async def _carry_out(self, seen: CommandSeen) -> None:
        match seen.command:
            case SendCommand() as command:
                await self._send(command, self._id_of(seen), is_shown=_is_only_shown(seen))
            case FileCommand(name):
                if not await self.outbox.take(name):
                    self._tell(f"There is no file {name} in your outbox, so nothing was sent.")
            case SpawnCommand() | ReleaseCommand() if _is_only_shown(seen):
                self._confirm(seen)
            case SpawnCommand() as command:
                await self._spawn(command)
            case ReleaseCommand() as command:
                await self._release(command)
            case ResultCommand(task, body):
                await self._give_result(task, body, is_shown=_is_only_shown(seen))
            case JoinCommand(channel):
                await self._join(channel)
            case LeaveCommand(channel):
                await self._leave(channel)
            case VoteCommand() as command:
                refusal = await self._ballots.vote(command, is_shown=_is_only_shown(seen))
                if refusal:
                    self._tell(refusal)

    def _confirm(self, seen: CommandSeen) -> None:
        """A screen also shows what the agent did not say: a person decides whether it is done."""
        command = seen.command
        assert isinstance(command, SpawnCommand | ReleaseCommand)
        is_start = isinstance(command, SpawnCommand)
        deed = f"start {command.name} ({command.cli})" if isinstance(command, SpawnCommand) else f"end {command.name}"

        def decided(decision: Decision) -> None:
            if decision.is_allowed:
                self._said.put_nowait(replace(seen, is_signed=True))
            else:
                why = f": {decision.reason}" if decision.reason else "."
                self._tell(f"{command.name} was not {'started' if is_start else 'released'}. A person refused it{why}")

        text = f"A line on the agent's screen asks to {deed}. It may come from the agent, or from something it only displays."
        how = f"If you mean it, begin the line with `->relay-{self._run_file.nonce}:` next time."
        if self._confirmations.ask("relay spawn" if is_start else "relay release", _spell(command), text, decided):
            self._tell(f"A line on your screen asks to {deed}. A person has to approve it first. {how}")
        else:
            self._tell(
                f"A line on your screen asks to {deed}, which was not done: too many such lines are waiting for a person. {how}"
            )

    def _id_of(self, seen: CommandSeen) -> str:
        """A place of the session file is the same for every wrapper of this run, one of the screen only for this one."""
        return self._run_file.send_id(seen.place if seen.source != SCREEN else f"{self._process}:{seen.place}")

    async def _send(self, command: SendCommand, id_: str, *, is_shown: bool) -> None:
        to = command.to[0] if len(command.to) == 1 else list(command.to) or None
        is_answer = len(command.to) == 1 and command.kind == "message"
        asked = self._questions.of(command.to[0]) if is_answer else None
        reply_to = None if asked is None else asked.id
        try:
            receipt = await self._insist(
                lambda relay: relay.send(
                    to, command.body, id=id_, kind=command.kind, thread=command.thread, data=command.data, reply_to=reply_to,
                    retry_for=PATIENCE_S, heard="screen" if is_shown else None, topic=command.topic,
                )
            )  # fmt: skip
        except RelayError as error:
            _log.info("a message to %s was refused: %s", command.target, error.code.value)
            self._tell(f"Your message to {command.target} was not sent. {explain(error)}")
            return
        _log.info("sent %s to %s", receipt.message_id, command.target)
        if reply_to is not None:
            self._has_answered(reply_to)
        if receipt.skipped:
            self._tell(f"Your message did not reach {', '.join(receipt.skipped)}: their queues are full.")

    async def _give_result(self, task_id: str, body: str, *, is_shown: bool) -> None:
        try:
            await self._insist(lambda relay: self._result(relay, task_id, body, None, heard="screen" if is_shown else None))
        except RelayError as error:
            self._tell(f"Your result for task {task_id} was not sent. {explain(error)}")

    async def _result(self, relay: RelayClient, task_id: str, body: str, error: str | None, heard: str | None = None) -> Receipt:
        task = await find_task(relay, task_id)
        receipt = await give_result(relay, task, body, error, heard)
        self._has_answered(task.message_id)
        return receipt

    async def _spawn(self, command: SpawnCommand) -> None:
        """It is waited for: what the agent says next may be for the new one."""
        try:
            await self._insist(
                lambda relay: relay.spawn(command.name, command.cli, command.task or None, cwd=working_directory())
            )  # fmt: skip
        except RelayError as error:
            _log.info("%s was not started: %s", command.name, error.code.value)
            self._tell(f"{command.name} was not started. {explain(error)}")
        else:
            self._tell(f"{command.name} was started and can be written to.")

    async def _release(self, command: ReleaseCommand) -> None:
        try:
            await self._insist(lambda relay: relay.release(command.name, command.reason or None))
        except RelayError as error:
            _log.info("%s was not released: %s", command.name, error.code.value)
            self._tell(f"{command.name} was not released. {explain(error)}")
        else:
            self._tell(f"{command.name} was released.")

    def _has_answered(self, message_id: str) -> None:
        self._questions.close(message_id)
        self._note_answered(message_id)

    async def _join(self, channel: str) -> None:
        try:
            await self._insist(lambda relay: relay.join(channel))
        except RelayError as error:
            self._tell(f"You did not join {channel}. {explain(error)}")
        else:
            self._tell(f"You joined {channel}: messages to it now come to you too.")

    async def _leave(self, channel: str) -> None:
        try:
            await self._insist(lambda relay: relay.leave(channel))
        except RelayError as error:
            self._tell(f"You did not leave {channel}. {explain(error)}")
        else:
            self._tell(f"You left {channel}.")

    async def _send_file(self, message: HeaderMessage, id_: str, leave: Leave) -> SentFile:
        if not hmac.compare_digest((message.session or "").encode("utf-8", "replace"), self._run_file.token.encode()):
            raise RelayError(
                ErrorCode.PERMISSION_DENIED, "It was written by somebody else, or in another run of this agent: a file needs the "
                "header SESSION with the value of AGENT_RELAY_TOKEN. `agent-relay send` adds it by itself.",
                header="SESSION",
            )  # fmt: skip
        if message.kind in {"spawn", "release"}:
            return await self._start_or_end(message)
        if message.kind in {"join", "leave"}:
            return await self._change_membership(message)
        if message.kind in BALLOT_KINDS:
            return await self._ballots.take(message, id_)
        if message.kind == RESULT_KIND and not message.to:
            return await self._send_result(message)
        asked = self._question_answered_by(message)
        target = asked.from_ if asked is not None and message.kind == "ack" else message.target
        options: SendOptions = {
            "id": message.id or id_, "kind": message.kind, "thread": message.thread, "priority": message.priority,
            "ttl_ms": message.ttl_ms, "reply_to": message.reply_to or (asked.id if asked is not None else None),
            "topic": message.topic,
        }  # fmt: skip
        try:
            if message.await_ms is not None:
                return await self._ask(message, message.await_ms / 1000, options, leave)
            receipt = await self._insist(lambda relay: relay.send(target, message.body, retry_for=PATIENCE_S, **options))
        except RelayError as error:
            raise RelayError(error.code, explain(error)) from None
        if asked is not None:
            self._has_answered(asked.id)
        if message.require_ack:
            self._wait_for(_leave_delivery(receipt, leave))
        return SentFile(receipt.message_id, receipt.recipients, receipt.queued)

    def _question_answered_by(self, message: HeaderMessage) -> Message | None:
        """Raises RelayError for an answer to a question that nobody knows."""
        asked = self._questions.find(message.correlation, message.reply_to)
        if message.kind == "ack" and message.correlation is None and message.reply_to is None:
            raise RelayError(
                ErrorCode.MISSING_HEADER, "CORRELATION or REPLY-TO is missing: name the question that the `ack` answers.",
                header="CORRELATION",
            )  # fmt: skip
        if asked is None and message.correlation is not None:
            raise RelayError(
                ErrorCode.INVALID_HEADER, "No question with that CORRELATION is waiting: it was answered, or asked before this "
                "agent was restarted. Use REPLY-TO with the question's message id instead.",
                header="CORRELATION",
            )  # fmt: skip
        return asked

    async def _change_membership(self, message: HeaderMessage) -> SentFile:
        channel = ",".join(message.to)
        try:
            if message.kind == "join":
                at_leisure = None if message.type is None else message.type == AT_LEISURE
                await self._insist(lambda relay: relay.join(channel, at_leisure=at_leisure))
            else:
                await self._insist(lambda relay: relay.leave(channel))
        except RelayError as error:
            raise RelayError(error.code, explain(error)) from None
        return SentFile("", 0, 0)

    async def _send_result(self, message: HeaderMessage) -> SentFile:
        task_id, is_error = message.thread or "", message.type == "error"
        try:
            receipt = await self._insist(
                lambda relay: self._result(relay, task_id, message.body, message.body if is_error else None)
            )  # fmt: skip
        except RelayError as error:
            raise RelayError(error.code, explain(error)) from None
        return SentFile(receipt.message_id, receipt.recipients, receipt.queued)

    async def _start_or_end(self, message: HeaderMessage) -> SentFile:
        name, cli, words = message.name or "", message.cli or "", message.body.strip() or None
        try:
            if message.kind == "release":
                await self._insist(lambda relay: relay.release(name, words))
                return SentFile("", 0, 0)
            folder = os.path.join(working_directory(), message.cwd or "")
            spawned = await self._insist(lambda relay: relay.spawn(name, cli, words, cwd=folder))
        except RelayError as error:
            raise RelayError(error.code, explain(error)) from None
        return SentFile("", 0, 0, session_id=spawned.session_id)

    async def _ask(self, message: HeaderMessage, timeout_s: float, options: SendOptions, leave: Leave) -> SentFile:
        question = await self._insist(lambda relay: relay.ask(message.target, message.body, timeout_s, **options))
        self._wait_for(self._hear_answer(question, ", ".join(message.to), timeout_s, leave))
        return SentFile(question.message_id, question.recipients, question.queued, message.await_ms)

    def _wait_for(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._waits.add(task)
        task.add_done_callback(self._waits.discard)

    async def _hear_answer(self, question: Question, whom: str, timeout_s: float, leave: Leave) -> None:
        """The answer to a question is told when it comes; that none came, when the time is over. A command of the agent that
        waits for it gets it, and then the agent has it."""
        about = f"your question [{short_id(question.message_id)}]"
        try:
            reply = await self._link.client.answer_to(question, timeout_s)
        except RelayError as error:
            if not leave({"error": explain(error)}):
                self._tell(f"{whom} did not answer {about}. {explain(error)}")
        else:
            if not leave({"by": reply.by, "body": reply.body, "response": reply.response, "data": reply.data}):
                self._tell(f"{reply.by} answered {about}: {reply.body}")

    async def _insist(self, send: Callable[[RelayClient], Awaitable[R]]) -> R:
        """A daemon that is not there is waited for: the same id makes it the same message."""
        while True:
            try:
                return await send(self._link.client)
            except ConnectionLost:
                await asyncio.sleep(_AGAIN_S)


async def _leave_delivery(receipt: Receipt, leave: Leave) -> None:
    try:
        leave({"by": [each.by for each in await receipt.delivered(DELIVERY_S)]})
    except RelayError as error:
        leave({"error": explain(error)})


def _is_only_shown(seen: CommandSeen) -> bool:
    """Read off the screen, where what a tool prints may look like the agent's own words."""
    return seen.source == SCREEN and not seen.is_signed


def _spell(command: SpawnCommand | ReleaseCommand) -> str:
    if isinstance(command, ReleaseCommand):
        return f"release {command.name}"
    return f"spawn {command.name} {command.cli}" + (f" {command.task}" if command.task else "")


def explain(error: RelayError) -> str:
    near = error.details.get("did_you_mean")
    hint = f" Did you mean {' or '.join(str(name) for name in near)}?" if isinstance(near, list) and near else ""
    return f"{error.message}{hint}"


def describe_busy(busy: BusyPayload) -> str:
    """The relay's warning to an agent that writes faster than another reads."""
    waits = f"{busy.queue_depth} of at most {busy.queue_capacity} messages wait for it"
    then = "Yours are still accepted, but wait too" if busy.accepting else "Yours are refused until it has read some"
    return f"{busy.to} is busy: {waits}. {then}: send it only what matters until you hear that it has room again."


class OpenQuestions:
    """Questions that the agent was given and has not answered: which one an answer of its own belongs to."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, Message] = OrderedDict()  # the oldest first

    def add(self, message: Message) -> None:
        self._by_id.setdefault(message.id, message)
        if len(self._by_id) > _MOST_QUESTIONS:
            self._by_id.popitem(last=False)

    def of(self, asker: str) -> Message | None:
        """The oldest that this agent asked."""
        return next((each for each in self._by_id.values() if fold_name(each.from_) == fold_name(asker)), None)

    def find(self, correlation: str | None, message_id: str | None) -> Message | None:
        """By what an answer says of it."""
        if correlation is not None:
            return next((each for each in self._by_id.values() if each.correlation_id == correlation), None)
        return self._by_id.get(message_id or "")

    def close(self, message_id: str) -> None:
        self._by_id.pop(message_id, None)
