"""The agents of one run: each is started, given its task as a question, and released, whatever happens.

The task is a message that waits for its answer, in a thread of its own that is the task's id. So the wrapper tells the agent how
to give its result, by that id; a plain answer to the asker counts as well. A result that is not what was asked for is asked for
once more, with the mistake named. Releasing is not broken off by a cancellation or a time-out, and the daemon releases the agents
of a run whose program was killed (`SPAWN.run`).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, TypedDict

import msgspec

from agent_relay.events.costs import Breakdown
from agent_relay.events.prices import Prices
from agent_relay.patterns.ends import call_off, to_the_end
from agent_relay.patterns.health import Health
from agent_relay.patterns.results import BadResult, Reader, Schema, make_reader
from agent_relay.patterns.sessions import Sessions
from agent_relay.patterns.tasks import AgentFailed, Answer, Memory, OnProgress, Progress, Step, Task
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.requests import Reply
from agent_relay.sdk.results import TASK_KIND

TIMEOUT_S = 300.0
RELEASE_TIMEOUT_S = 60.0  # the daemon kills a program that does not end after a third of it
_LAST_WORDS_S = 1.0  # what an agent said before it ended may come a moment after the news of its end
_GONE = {ErrorCode.AGENT_NOT_FOUND, ErrorCode.INVALID_TARGET}  # there is nobody to release
_PAUSE_MS = 1_000  # before a start that was refused for the number of agents is tried again
NOTHING_USED = Breakdown(0, 0, 0, 0, 0, 0, 0.0)

_HOW = (
    "{task}\n\nThis is task {id}. Give its result once, when you have finished and not before; it must contain the whole result."
)
_AS_JSON = " The result must be JSON that matches this JSON Schema:\n{schema}"
_AGAIN = "Your result of task {id} was not accepted. {mistake} Give the whole result of task {id} once more."

_log = logging.getLogger("agent_relay.patterns")


class RunOptions(TypedDict, total=False):
    """Options of a run: `cwd`, `backend`, `transport`, `environment` and `permission_mode` of its agents, as in
    `RelayClient.spawn`; the `memory` of an earlier run; `prices` for the costs, where they are not the built-in ones."""

    cwd: str | None
    backend: str
    transport: str
    environment: Mapping[str, str] | None
    permission_mode: str | None
    memory: Memory
    prices: Prices


def _is_gone(error: BaseException | None) -> bool:
    """The question was given up with the name of the agent, which leaves nothing when it ends."""
    return isinstance(error, RelayError) and error.code is ErrorCode.AGENT_NOT_FOUND


class Crew:
    """`answers` and `failures` have what there is so far, in the order it came; `usage` is known when the block has ended."""

    def __init__(
        self, relay: RelayClient, total: int, on_progress: OnProgress | None, options: RunOptions, pattern: str = "crew"
    ) -> None:  # fmt: skip
        self.answers: list[Answer] = []
        self.failures: list[AgentFailed] = []
        self.usage = NOTHING_USED
        self.total = total
        self.started = 0
        self._relay = relay
        self._pattern = pattern
        self._on_progress = on_progress
        spawning = dict(options)
        self._memory: Memory | None = options.get("memory")
        self._sessions = Sessions(relay, options.get("prices"))
        for name in ("memory", "prices"):
            spawning.pop(name, None)
        self._spawning: dict[str, Any] = spawning
        self._mark = secrets.token_hex(2)  # tells the agents of this run from those of another
        self.run_id = f"run-{self._mark}"
        self._count = 0
        self._asked: Counter[str] = Counter()
        self._ours: set[str] = set()  # asked for, and not released yet
        self._session_ids: set[str] = set()
        self._begun_s = 0.0

    async def __aenter__(self) -> Crew:
        self._begun_s = asyncio.get_running_loop().time()
        await self._sessions.__aenter__()
        self._relay.report("pattern.started", runId=self.run_id, pattern=self._pattern, total=self.total)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.usage = await to_the_end(self._sessions.count_usage(self._session_ids))
        finally:
            self._report_end(kind)
            await self._sessions.__aexit__(kind, error, trace)

    def _report_end(self, kind: type[BaseException] | None) -> None:
        is_cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        outcome = "completed" if kind is None else "cancelled" if is_cancelled else "failed"
        duration_ms = round((asyncio.get_running_loop().time() - self._begun_s) * 1000)
        self._relay.report(
            "pattern.ended", runId=self.run_id, outcome=outcome, done=self._done, duration=duration_ms,
            totalTokens=self.usage.total_tokens, estimatedCostUsd=self.usage.estimated_cost_usd,
        )  # fmt: skip

    @property
    def _done(self) -> int:
        return len(self.answers) + len(self.failures)

    async def ask(
        self, task: Task, timeout_s: float, retries: int, schema: Schema | None = None, reader: Reader | None = None,
        health: Health | None = None,
    ) -> Answer:  # fmt: skip
        """The answer of an agent of its own; each attempt has another one. Raises AgentFailed after the last."""
        read = make_reader(schema) if schema is not None else reader
        key = self._key_of(task, schema)
        known = self._recall(task, key, read)
        if known is not None:
            return known
        begun_s = asyncio.get_running_loop().time()
        attempt = 0
        while True:
            attempt += 1
            self._count += 1
            name = f"{task.name}-{self._count}-{self._mark}"
            try:
                text = _describe(task, schema)
                return await self._attempt(task, name, attempt, timeout_s, begun_s, text, key, read, health)
            except RelayError as error:
                is_last = attempt > retries or not (error.code.retryable or isinstance(error, BadResult))
                if is_last:
                    self.failures.append(AgentFailed(task.name, name, attempt, error))
                self.say("failed", task, name, attempt, error.message)
                if is_last:
                    raise self.failures[-1] from error

    def _key_of(self, task: Task, schema: Schema | None) -> str:
        """The same for the same task in another run, and another for its second occurrence in this one."""
        text = "\0".join((task.name, task.cli, str(task.task), repr(schema)))
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
        self._asked[digest] += 1
        return f"{digest}-{self._asked[digest]}"

    def _recall(self, task: Task, key: str, read: Reader | None) -> Answer | None:
        known = None if self._memory is None else self._memory.recall(key)
        if known is None:
            return None
        answer = replace(known, value=known.text if read is None else read(known.text))
        self.answers.append(answer)
        self.say("recalled", task, answer.agent, answer.attempts)
        return answer

    async def _attempt(
        self, task: Task, name: str, attempt: int, timeout_s: float, begun_s: float, text: str, key: str,
        read: Reader | None, health: Health | None,
    ) -> Answer:  # fmt: skip
        task_id = f"task-{self._mark}-{self._count}"
        try:
            async with asyncio.timeout(timeout_s):
                session_id = await self._spawn(name, task.cli, timeout_s)
                self.say("started", task, name, attempt)
                member = _Member(name, session_id, task_id)
                said, value = await self._result(member, task, attempt, text.replace("\0", task_id), timeout_s, read, health)
            duration_s = asyncio.get_running_loop().time() - begun_s
            answer = Answer(task.name, name, said, attempt, duration_s, value, task_id)
            if self._memory is not None:
                self._memory.keep(key, answer)  # before it is told, and before its agent has ended: we may be killed meanwhile
            self.answers.append(answer)
            self.say("answered", task, name, attempt)
        except TimeoutError:
            raise RelayError(ErrorCode.DELIVERY_TIMEOUT, f"{name} did not reply within {timeout_s:g} seconds.") from None
        finally:
            if name in self._ours:
                await to_the_end(self._release(task, name, attempt))
        return answer

    async def _spawn(self, name: str, cli: str, timeout_s: float) -> str:
        """Starts it. Where too many run, or were started in the last minute, it waits, as long as there is time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        self._ours.add(name)
        while True:
            try:
                spawned = await self._relay.spawn(name, cli, ephemeral=True, run=self.run_id, **self._spawning)
            except RelayError as error:
                pause_s = (error.retry_after_ms or _PAUSE_MS) / 1000
                if error.code is not ErrorCode.RATE_LIMITED or loop.time() + pause_s > deadline:
                    self._ours.discard(name)  # it was refused: whoever has that name is none of ours
                    raise
                await asyncio.sleep(pause_s)
            else:
                self.started += 1
                self._session_ids.add(spawned.session_id)
                return spawned.session_id

    async def _result(
        self, member: _Member, task: Task, attempt: int, text: str, timeout_s: float, read: Reader | None, health: Health | None
    ) -> tuple[str, Any]:  # fmt: skip
        """The result as text, and as what it was read as. A mistake is named to the agent, once."""
        is_last = False
        while True:
            reply = await self._answer(member, text, timeout_s, health)
            said = reply.data if isinstance(reply.data, dict) else {}
            if said.get("task") == member.task_id and isinstance(said.get("error"), str):
                raise RelayError(ErrorCode.REJECTED, f"{member.name} has no result: {said['error']}", reason="task_failed")
            try:
                return reply.body, reply.body if read is None else read(reply.body)
            except ValueError as mistake:
                if is_last:
                    raise BadResult(
                        ErrorCode.INVALID_FORMAT, f"{member.name} gave a wrong result twice. {mistake}", reason="bad_result"
                    ) from None
                is_last = True
                self.say("asked_again", task, member.name, attempt, str(mistake))
                text = _AGAIN.format(id=member.task_id, mistake=mistake)

    async def _answer(self, member: _Member, text: str, timeout_s: float, health: Health | None) -> Reply:
        name = member.name
        data = {"task": member.task_id}
        asking = asyncio.create_task(
            self._relay.request(name, text, timeout_s, thread=member.task_id, kind=TASK_KIND, data=data)
        )  # fmt: skip
        ending = asyncio.create_task(self._sessions.reason(member.session_id))
        ailing = [] if health is None else [asyncio.create_task(health.fail(name, member.task_id))]
        try:
            await asyncio.wait([asking, ending, *ailing], return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                await asyncio.wait([asking], timeout=_LAST_WORDS_S)
            if asking.done() and not _is_gone(asking.exception()):
                return asking.result()
            for task in ailing:
                if task.done():
                    task.result()
            await asyncio.wait([ending], timeout=_LAST_WORDS_S)
            how = ending.result() if ending.done() else "released"
            raise RelayError(ErrorCode.AGENT_OFFLINE, f"{name} ended without replying ({how}).")
        finally:
            await call_off([asking, ending, *ailing])

    async def _release(self, task: Task, name: str, attempt: int) -> None:
        self._ours.discard(name)
        try:
            async with asyncio.timeout(RELEASE_TIMEOUT_S):
                await self._relay.release(name)
        except (RelayError, TimeoutError) as error:
            if not isinstance(error, RelayError) or error.code not in _GONE:
                _log.warning("%s was not released and may still run: %s", name, str(error) or "it took too long")
                return
        self._relay.discard(name)  # what it said beside its result, and nobody has read
        self.say("released", task, name, attempt)

    def say(self, step: Step, task: Task, name: str, attempt: int, error: str | None = None) -> None:
        progress = Progress(step, task.name, name, attempt, self._done, self.total, error)
        self._relay.report(
            "pattern.progress", runId=self.run_id, step=step, task=task.name, agent=name, attempt=attempt, done=progress.done,
            total=self.total, error=error,
        )  # fmt: skip
        if self._on_progress is not None:
            self._on_progress(progress)


class _Member(msgspec.Struct, frozen=True):
    name: str
    session_id: str
    task_id: str


def _describe(task: Task, schema: Schema | None) -> str:
    """The agent's instructions, with a NUL where the id of the task belongs: each attempt has its own."""
    how = _HOW.format(task=str(task.task).replace("\0", ""), id="\0")
    return how if schema is None else how + _AS_JSON.format(schema=msgspec.json.encode(schema).decode())
