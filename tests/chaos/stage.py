"""One run: a daemon, its agents, their history, and the way to rest at the end."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from agent_relay.testing.daemon import DaemonProcess
from tests.chaos.agent import CHANNEL, TOPIC, Agent, Sent
from tests.chaos.database import Database
from tests.chaos.habits import CALM, Habits, sluggish
from tests.chaos.history import History
from tests.chaos.machine import Machine
from tests.chaos.web import ArcReader, Poster
from tests.chaos.wire import Frame, make_frame
from tests.faults import Faults

KNOWN_S = 60.0
SETTLE_S = 60.0
_POLL_S = 0.02
_MEMBERS = (1, 3, 5, 7)  # of the channel; by the agents' places
_SUBSCRIBERS = (1, 2, 4, 5)
_SLUGGISH = (2, 3)
_CROWD = 100  # in such a one everybody is slow enough
_ASK_AFTER_S = 2.0
_ASKED_AT_ONCE = 200
_EVENTS_AT_ONCE = 1_000


class NotReady(Exception):
    """The agents could not even connect: nothing was tested."""


class Stage:
    def __init__(
        self, seed: object, names: Sequence[str], habits: Habits, flags: Sequence[str], directory: Path | None = None
    ) -> None:
        self.random = random.Random(f"{seed}-stage")
        self.history = History()
        self.daemon = DaemonProcess(*flags, directory=directory)
        self.habits = habits
        everybody = list(names)
        self.agents = [Agent(name, self.daemon.socket, self.history, seed, everybody, CALM) for name in names]
        self.seed = seed
        self.others: list[Poster | ArcReader] = []
        self.disk: Faults | None = None
        self.machine: Machine | None = None
        self.database: Database | None = None
        self.tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Stage:
        await asyncio.to_thread(self._start)
        for place, agent in enumerate(self.agents):
            if place in _MEMBERS:
                agent.wish("CHANNEL_JOIN", {"channel": CHANNEL})
            if place in _SUBSCRIBERS:
                agent.wish("SUBSCRIBE", {"topic": TOPIC})
            self.tasks.append(asyncio.create_task(agent.run()))
        if not await self.wait(lambda: all(agent.connected and not agent.wishes for agent in self.agents), KNOWN_S):
            raise NotReady(f"Not everybody could connect. The daemon printed: {self.daemon.output[-2_000:]}")
        return self

    def add(self, client: Poster | ArcReader) -> None:
        self.others.append(client)
        self.tasks.append(asyncio.create_task(client.run()))

    def begin_load(self) -> None:
        for place, agent in enumerate(self.agents):
            agent.habits = sluggish(self.habits) if place in _SLUGGISH and len(self.agents) < _CROWD else self.habits
            agent.drop_connection()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await asyncio.to_thread(self._remove)

    def _start(self) -> None:
        self.daemon.start()

    def _remove(self) -> None:
        self.daemon.remove()

    async def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            for task in self.tasks:
                if task.done():
                    task.result()  # a client never ends by itself: it has a fault
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    async def let_it_run(self, least_s: float, most_s: float) -> None:
        await self.wait(lambda: False, self.random.uniform(least_s, most_s))

    async def start_daemon(self) -> None:
        await asyncio.to_thread(self.daemon.start)

    async def kill_daemon(self) -> None:
        await asyncio.to_thread(self.daemon.kill)

    async def read_history(self) -> None:
        """Whoever is connected asks for old messages, which a reader of the store finds."""
        for agent in self.agents:
            if agent.connected:
                with contextlib.suppress(OSError, TimeoutError):
                    await agent.ask(make_frame("HISTORY", {"limit": 1}))
                    return

    def forget_the_past(self, why: str) -> None:
        """Files were destroyed."""
        self.history.destroyed(why)
        for agent in self.agents:
            agent.drop_all()

    # --- to rest ----------------------------------------------------------------------------------------------------------

    async def settle(self, seconds: float = SETTLE_S) -> None:
        """Nobody sends, leaves or refuses any more; what is not known yet is asked for, until everything is known."""
        for agent in self.agents:
            agent.habits = CALM
            agent.drop_connection()  # it comes back with a wide window
        for client in self.others:
            client.calm_down()
        deadline, patience_s = time.monotonic() + seconds, _ASK_AFTER_S
        problem = ""
        while time.monotonic() < deadline:
            if await self.wait(self._is_over, patience_s):
                problem = await self.read_events()
                if not problem:
                    self.history.settled()
                    return
            patience_s *= 1.5  # the answers are a load, too
            for agent in self.agents:
                if agent.connected:
                    for sent in self._open_of(agent)[:_ASKED_AT_ONCE]:
                        if sent.recipients is not None:
                            agent.ask_again(sent)
        rest = problem or self._describe_rest()
        self.history.unsettled(f"not everything came to rest within {seconds:.0f} s: {rest}")

    def _open_of(self, agent: Agent) -> list[Sent]:
        return [sent for ref, sent in agent.sent.items() if ref not in agent.given_up and not sent.is_over]

    def _is_over(self) -> bool:
        return all(agent.connected and not agent.unanswered and not self._open_of(agent) for agent in self.agents) and all(
            client.is_over() for client in self.others
        )

    def _describe_rest(self) -> str:
        lines = []
        for agent in self.agents:
            open_refs = [sent.frame["id"] for sent in self._open_of(agent)]
            if not agent.connected:
                lines.append(f"{agent.name} is not connected")
            if agent.unanswered or open_refs:
                lines.append(f"{agent.name}: {len(agent.unanswered)} unanswered, {len(open_refs)} open, {open_refs[:5]}")
        return "; ".join(lines + [client.describe_rest() for client in self.others if not client.is_over()])

    async def read_events(self) -> str:
        """All of them, or none and why they could not be read; each agent is asked in turn, for a while."""
        cursor, found, failures = "", list[Frame](), list[str]()
        deadline, pages = time.monotonic() + SETTLE_S, 0
        while len(failures) < len(self.agents) and time.monotonic() < deadline:
            payload = {"view": "events", "limit": _EVENTS_AT_ONCE} | ({"cursor": cursor} if cursor else {})
            try:
                answer = await self.agents[len(failures)].ask(make_frame("HISTORY", payload))
            except (OSError, TimeoutError) as error:
                failures.append(type(error).__name__)
                continue
            if answer["type"] != "HISTORY_RESULT":
                return f"the recorded events could not be read: {answer}"
            pages += 1
            found += answer["payload"].get("events") or []
            cursor = answer["payload"].get("next_cursor") or ""
            if not cursor:
                for event in found:
                    self.history.event(event["_seq"], event["type"], event.get("messageId", ""))
                return ""
        failures.append(f"{pages} pages with {len(found)} events in {SETTLE_S:.0f} s at most, the last cursor {cursor or 'none'}")
        return f"the recorded events could not be read: {', '.join(failures)}"
