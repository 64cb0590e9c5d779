"""Files and events that are kept of agents besides messages, in the daemon: swept when it is old, erased when the core orders it.

Files are worked on in a thread, one job at a time, so that the loop never waits for the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from agent_relay.daemon.logs import logger
from agent_relay.events.bus import EventBus
from agent_relay.ports.clock import Clock
from agent_relay.ports.events import EventStore
from agent_relay.ports.leavings import Left, LeftDone
from agent_relay.ports.store import StoreError
from agent_relay.storage.agent_files import AgentFiles

_SWEPT_EVERY_MS = 600_000


class DaemonLeavings:
    """Implements `ports.Leavings`. `post` brings what a thread has to say into a turn of the loop."""

    def __init__(
        self, files: AgentFiles, events: EventStore, bus: EventBus, clock: Clock, retention_ms: int,
        post: Callable[[Callable[[], None]], None],
    ) -> None:  # fmt: skip
        self.files = files
        self._events = events
        self._bus = bus
        self._clock = clock
        self._retention_ms = retention_ms
        self._post = post
        self._swept_at: int | None = None
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="relay-leavings")

    def is_held(self, agent: str) -> bool:
        return self.files.is_held(agent)

    def erase(self, agent: str, done: LeftDone) -> None:
        def events_erased(events: int | StoreError) -> None:
            if isinstance(events, StoreError):
                done(events)
                return
            self._bus.let_go()
            self._threads.submit(self._erase_files, agent, events, done)

        self._events.erase(agent, events_erased)

    def _erase_files(self, agent: str, events: int, done: LeftDone) -> None:
        outcome: Left | StoreError
        try:
            outcome = Left(events, self.files.erase(agent))
        except OSError as error:
            outcome = StoreError(f"{error.strerror} ({error.filename})")
        self._post(lambda: done(outcome))

    def sweep_if_due(self) -> None:
        now = self._clock.steady_ms()
        if self._swept_at is None or now - self._swept_at >= _SWEPT_EVERY_MS:
            self._swept_at = now
            self._threads.submit(self._sweep)

    def _sweep(self) -> None:
        now = self._clock.wall_ms()
        try:
            self.files.sweep(now - self._retention_ms, now)
        except Exception:  # noqa: BLE001 - the next time may be better; nothing else depends on it
            logger.exception("not_swept")

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)


def read_agent_files(state_dir: str, agent: str) -> Iterator[tuple[str, str]]:
    """For a command that reads them without asking the daemon."""
    return AgentFiles(state_dir).read(agent)
