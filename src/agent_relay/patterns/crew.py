"""The agents of one run: each is started, given its task as a question, and released, whatever happens.

The task is a message that waits for its answer, so the wrapper tells the agent how to give one, and the first message the agent
sends back is the answer to this task and to no other. Releasing is not broken off by a cancellation or a time-out.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from types import TracebackType
from typing import TypedDict

from agent_relay.patterns.ends import SessionEnds, call_off, to_the_end
from agent_relay.patterns.tasks import AgentFailed, Answer, OnProgress, Progress, Step, Task
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.client import RelayClient

TIMEOUT_S = 300.0
RELEASE_TIMEOUT_S = 60.0  # the daemon kills a program that does not end after a third of it
_LAST_WORDS_S = 1.0  # what an agent said before it ended may come a moment after the news of its end
_GONE = {ErrorCode.AGENT_NOT_FOUND, ErrorCode.INVALID_TARGET}  # there is nobody to release
_PAUSE_MS = 1_000  # before a start that was refused for the number of agents is tried again

_HOW = (
    "{task}\n\nSend one message to {asker}, when you have finished and not before. "
    "It counts as your result, so it must contain the whole result."
)

_log = logging.getLogger("agent_relay.patterns")


class SpawnOptions(TypedDict, total=False):
    """Options of a start, as in `RelayClient.spawn`."""

    cwd: str | None
    backend: str
    environment: Mapping[str, str] | None
    permission_mode: str | None


def _is_gone(error: BaseException | None) -> bool:
    """The question was given up with the name of the agent, which leaves nothing when it ends."""
    return isinstance(error, RelayError) and error.code is ErrorCode.AGENT_NOT_FOUND


class Crew:
    """`answers` and `failures` have what there is so far, in the order it came."""

    def __init__(self, relay: RelayClient, total: int, on_progress: OnProgress | None, options: SpawnOptions) -> None:
        self.answers: list[Answer] = []
        self.failures: list[AgentFailed] = []
        self.total = total
        self.started = 0
        self._relay = relay
        self._on_progress = on_progress
        self._options = options
        self._ends = SessionEnds(relay)
        self._mark = secrets.token_hex(2)  # tells the agents of this run from those of another
        self._count = 0
        self._ours: set[str] = set()  # asked for, and not released yet

    async def __aenter__(self) -> Crew:
        await self._ends.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._ends.__aexit__(kind, error, trace)

    async def ask(self, task: Task, timeout_s: float, retries: int) -> Answer:
        """The answer of an agent of its own; each attempt has another one. Raises AgentFailed after the last."""
        begun_s = asyncio.get_running_loop().time()
        attempt = 0
        while True:
            attempt += 1
            self._count += 1
            name = f"{task.name}-{self._count}-{self._mark}"
            try:
                return await self._attempt(task, name, attempt, timeout_s, begun_s)
            except RelayError as error:
                is_last = attempt > retries or not error.code.retryable
                if is_last:
                    self.failures.append(AgentFailed(task.name, name, attempt, error))
                self._say("failed", task, name, attempt, error.message)
                if is_last:
                    raise self.failures[-1] from error

    async def _attempt(self, task: Task, name: str, attempt: int, timeout_s: float, begun_s: float) -> Answer:
        try:
            async with asyncio.timeout(timeout_s):
                session_id = await self._spawn(name, task.cli, timeout_s)
                self._say("started", task, name, attempt)
                text = await self._answer(name, session_id, _HOW.format(task=task.task, asker=self._relay.name), timeout_s)
            duration_s = asyncio.get_running_loop().time() - begun_s
            answer = Answer(task.name, name, text, attempt, duration_s)
            self.answers.append(answer)
            self._say("answered", task, name, attempt)
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
                spawned = await self._relay.spawn(name, cli, ephemeral=True, **self._options)
            except RelayError as error:
                pause_s = (error.retry_after_ms or _PAUSE_MS) / 1000
                if error.code is not ErrorCode.RATE_LIMITED or loop.time() + pause_s > deadline:
                    self._ours.discard(name)  # it was refused: whoever has that name is none of ours
                    raise
                await asyncio.sleep(pause_s)
            else:
                self.started += 1
                return spawned.session_id

    async def _answer(self, name: str, session_id: str, text: str, timeout_s: float) -> str:
        asking = asyncio.create_task(self._relay.request(name, text, timeout_s))
        ending = asyncio.create_task(self._ends.reason(session_id))
        try:
            await asyncio.wait([asking, ending], return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                await asyncio.wait([asking], timeout=_LAST_WORDS_S)
            if asking.done() and not _is_gone(asking.exception()):
                return asking.result().body
            await asyncio.wait([ending], timeout=_LAST_WORDS_S)
            how = ending.result() if ending.done() else "released"
            raise RelayError(ErrorCode.AGENT_OFFLINE, f"{name} ended without replying ({how}).")
        finally:
            await call_off([asking, ending])

    async def _release(self, task: Task, name: str, attempt: int) -> None:
        self._ours.discard(name)
        try:
            async with asyncio.timeout(RELEASE_TIMEOUT_S):
                await self._relay.release(name)
        except (RelayError, TimeoutError) as error:
            if not isinstance(error, RelayError) or error.code not in _GONE:
                _log.warning("%s was not released and may still run: %s", name, str(error) or "it took too long")
                return
        self._say("released", task, name, attempt)

    def _say(self, kind: Step, task: Task, name: str, attempt: int, error: str | None = None) -> None:
        if self._on_progress is not None:
            done = len(self.answers) + len(self.failures)
            self._on_progress(Progress(kind, task.name, name, attempt, done, self.total, error))
