"""One agent under the relay: a program in a terminal on one side, a client of the daemon on the other.

Its life: the start is planned, the parts are built, the program is started or taken up, and then each part is a task of its own
until the program ends or somebody stops it. A daemon that goes away is waited for; the agent goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from msgspec.structs import replace

from agent_relay.sdk.client import RelayClient
from agent_relay.terminal.agent.parts import AgentParts
from agent_relay.terminal.agent.plain_start import FailedStart, find_failed_start, last_lines
from agent_relay.terminal.agent.setup import AgentSetup, StartPlan, plan_start
from agent_relay.terminal.backends.terminal import ExitStatus, TerminalEnded, TerminalError
from agent_relay.terminal.backends.tmux import TmuxTerminal
from agent_relay.terminal.delivery.queue import DeliveryQueue
from agent_relay.terminal.files.project_files import ProjectFiles
from agent_relay.terminal.files.run_file import digest
from agent_relay.terminal.output.commands import words_of
from agent_relay.terminal.output.watcher import CommandSeen
from agent_relay.terminal.recordings.screen_log import ScreenLog
from agent_relay.terminal.reports.relay_link import RelayLink
from agent_relay.terminal.reports.reporter import Reporter

STOP_GRACE_S = 5.0
LAST_WORDS_S = 5.0  # for what the agent said last to be sent
_RETRY_S = 1.0
_FAR_S = 60.0

_log = logging.getLogger("agent_relay.terminal")


class Wrapper:
    """`relay` is connected. `make_client` makes another one, should the daemon refuse this one for good. `queue`: what another
    wrapper of this agent has left over."""

    def __init__(
        self, setup: AgentSetup, relay: RelayClient, make_client: Callable[[], RelayClient], queue: DeliveryQueue | None = None
    ) -> None:  # fmt: skip
        self._setup = setup
        self._link = RelayLink(relay, make_client)
        self._reporter = Reporter(self._link, ProjectFiles(setup.cwd, setup.root, (setup.home.state_dir,)))
        self._queue = queue if queue is not None else DeliveryQueue()
        self._log = ScreenLog(setup.home.team)
        self._parts: AgentParts | None = None  # there are none before it is known how the program starts
        self._stopping = asyncio.Event()
        self._over = asyncio.Event()
        self.failed_start: FailedStart | None = None  # known once the program has ended

    @property
    def relay(self) -> RelayClient:
        return self._link.client

    # --- from outside ------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        self._stopping.set()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def type_in(self, text: str) -> None:
        """As the person would type it, once the program is ready."""
        self._queue.type_in(text)

    def kill(self) -> None:
        """From any thread, where the loop is of no use any more."""
        if self._parts is not None:
            self._parts.terminal.kill()

    def hand_back(self) -> DeliveryQueue:
        """Gives back what is left to be delivered, once the program has ended."""
        if self._parts is not None:
            self._parts.handed.hand_back()
        self._queue.drop_introductions()
        return self._queue

    # --- the whole ---------------------------------------------------------------------------------------------------

    async def run(self, is_ready: Callable[[], None] | None = None) -> ExitStatus:
        """Until the program ends, or `stop` is called; raises TerminalError when it cannot be started."""
        self._reporter.process(None)
        plan = await plan_start(self._setup)
        parts = self._parts = AgentParts(
            self._setup, plan, self._link, self._reporter, self._queue, self._log, self._stopping
        )  # fmt: skip
        started_at = _now()
        await (self._take_up(plan, parts) if plan.is_taken_up else self._start(plan, parts))
        doors = parts.make_doors()
        if self._setup.has_introduction and not plan.introduces:
            self._queue.introduce()
        self._reporter.process(parts.terminal.pid)
        if is_ready is not None:
            is_ready()
        self._reporter.joined()
        jobs: list[Callable[[], Awaitable[None]]] = [
            parts.controls.run, partial(parts.doors.run, doors), parts.reader.run, partial(parts.observer.follow, self._over),
            partial(self._receive, parts), parts.deliverer.run, parts.runner.run, parts.reader.live.run, parts.status.run,
            partial(parts.runner.outbox.watch, self._over),
        ]  # fmt: skip
        tasks = [asyncio.create_task(self._keep(job)) for job in jobs]
        try:
            status = await self._until_the_end(parts)
            _log.info("the program ended with status %d", status.code)
            failed = await self._judge(plan, parts, status, _now() - started_at)
            parts.watcher.has_finished = not self._stopping.is_set() and not status.was_killed
            await self._last_words(parts)
            if failed is not None:
                self.failed_start = replace(failed, last_lines=last_lines(parts.reader.rows))
                _log.warning("%s", self.failed_start.text)
        finally:
            self._over.set()
            controls, *others = tasks
            await _cancel(*others)
            self._log.close()
            parts.reader.live.close()
            with contextlib.suppress(TerminalEnded):
                await parts.terminal.stop(STOP_GRACE_S)
            await parts.doors.close()
            await _cancel(controls)  # until now it may hear that the agent should stop
            parts.controls.finish()
        return status

    async def _start(self, plan: StartPlan, parts: AgentParts) -> None:
        self._log.begin()
        if self._setup.announcement:
            parts.watcher.expect_echo(self._setup.announcement)
        program = plan.program
        await parts.terminal.start(program.argv, cwd=program.cwd, environment=program.environment)

    async def _take_up(self, plan: StartPlan, parts: AgentParts) -> None:
        """Takes up a program that runs. What was said while nobody listened is in the session file; without one it is not to be
        told from what was sent."""
        assert isinstance(parts.terminal, TmuxTerminal)
        await parts.terminal.reattach()
        events = await parts.reader.adopt()
        _log.info("took up the program that was still running")
        said = [event.command for event in events if isinstance(event, CommandSeen)]
        if self._setup.profile.transcript is None and said and digest(words_of(said[-1])) != plan.run.last_said:
            self._queue.notify("The relay was away for a while. Messages you wrote meanwhile were not sent; send them again.")

    async def _until_the_end(self, parts: AgentParts) -> ExitStatus:
        ending = asyncio.create_task(parts.terminal.wait())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([ending, stopping], return_when=asyncio.FIRST_COMPLETED)
            return await parts.terminal.stop(STOP_GRACE_S) if not ending.done() else ending.result()
        finally:
            ending.cancel()
            stopping.cancel()

    async def _judge(self, plan: StartPlan, parts: AgentParts, status: ExitStatus, after_s: float) -> FailedStart | None:
        if plan.is_taken_up:
            return None
        typed_ms_ago: int | None = None
        with contextlib.suppress(TerminalError):
            typed_ms_ago = (await parts.terminal.person()).typed_ms_ago
        return find_failed_start(
            self._setup.argv, status, after_s, parts.watcher.state, is_changed=self._setup.is_changed, has_doors=plan.has_doors,
            was_touched=parts.controls.was_touched or self._stopping.is_set() or typed_ms_ago is not None,
        )  # fmt: skip

    async def _last_words(self, parts: AgentParts) -> None:
        """Hears what was said right before the end, and waited for a pause or for the session file."""
        with contextlib.suppress(Exception):
            parts.observer.hear_last_words()
            await parts.reader.read(late_s=_FAR_S)
        await parts.runner.drain(LAST_WORDS_S)

    async def _receive(self, parts: AgentParts) -> None:
        while True:
            parts.deliverer.put(await self._link.receive())

    async def _keep(self, job: Callable[[], Awaitable[None]]) -> None:
        """One part that fails is begun again, and does not take the others along."""
        while not self._over.is_set():
            try:
                await job()
                return
            except TerminalEnded:
                return
            except Exception:  # noqa: BLE001 - it is logged with its traceback, and the agent goes on
                name = getattr(job.func if isinstance(job, partial) else job, "__qualname__", job)
                _log.exception("%s failed, and is begun again", name)
                await asyncio.sleep(_RETRY_S)


async def _cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _now() -> float:
    return asyncio.get_running_loop().time()
