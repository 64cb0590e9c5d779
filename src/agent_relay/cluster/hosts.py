"""Presence of hosts: every daemon says a word about itself every two seconds, and keeps what it last heard of the others.

Nothing depends on it: it is what people see, and what the choice of a host for a new agent goes by. The more hosts there are, the
less often each speaks, so that a thousand do not drown each other.

Two daemons must not have the same name. Each says when it started; the later one (or, within the same millisecond, the one with
the greater mark) is the `twin`, and serves nobody until the other has gone.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct, field

from agent_relay.cluster.jetstream import Names
from agent_relay.ports.cluster import Wire, WireMessage
from agent_relay.ports.log import Log
from agent_relay.protocol.hosts import HostFacts, HostRole, is_host_name

EVERY_MS = 2_000
_EVERY_MS_PER_HOST = 20  # a thousand hosts speak every 20 seconds: 50 words a second for each to hear
_MISSED_WORDS = 5  # so many in a row, and the host is lost
FORGOTTEN_MS = 3_600_000  # how long a lost host stays in the list
_MOST_HOSTS = 4_096  # anybody with credentials can speak under any name


class HostWord(Struct, frozen=True):
    """A host's word about itself. `agents`: of every host, where the speaker has the seat."""

    host: str
    mark: str
    started_at: int
    version: str
    is_seat: bool
    position: int
    load: float
    wall_ms: int
    every_ms: int = EVERY_MS
    agents: dict[str, int] = field(default_factory=dict)
    starts: list[str] = field(default_factory=list)
    term: int = 0  # of the seat, as far as the speaker knows


class _Known(Struct):
    word: HostWord
    heard: int  # steady clock
    heard_at: int  # wall clock
    clock_ms: int


class Hosts:
    """`describe` makes our own word, for the interval it is given."""

    def __init__(self, wire: Wire, names: Names, describe: Callable[[int], HostWord], log: Log, now: int, wall_ms: int) -> None:
        self._wire = wire
        self._subject = names.hosts
        self._describe = describe
        self._log = log
        self._now = now
        self._wall_ms = wall_ms
        self._own = describe(EVERY_MS)
        self._spoke_at = wall_ms
        self._known: dict[str, _Known] = {}
        self._lost: set[str] = set()
        self._due_at = now
        self._twin: tuple[HostWord, int] | None = None  # who had our name before us, and when it was heard

    def start(self) -> None:
        self._wire.subscribe(self._subject, self._heard)

    @property
    def twin(self) -> str:
        """Why this daemon must not take part; "": it may."""
        if self._twin is None:
            return ""
        return (
            f"Another daemon of this project, started before this one, is called {self._own.host} too. Give this host "
            "a name of its own: agent-relay restart --cluster-host NAME."
        )

    def clock_says(self, now: int, wall_ms: int) -> None:
        self._now, self._wall_ms = now, wall_ms
        if self._twin is not None and now - self._twin[1] >= _MISSED_WORDS * self._twin[0].every_ms:
            self._twin = None
            self._log.note("cluster_twin_gone", host=self._own.host)
        if now >= self._due_at:
            self.speak()
            self._look_for_lost()

    def facts(self) -> list[HostFacts]:
        """All that were heard within the last hour, by name; the others are forgotten."""
        agents = next((known.word.agents for known in self._known.values() if self._is_seat(known)), {})
        if self._own.is_seat:
            agents = self._own.agents
        end = max([self._own.position, *(known.word.position for known in self._known.values())])
        own = _Known(self._own, self._now, self._spoke_at, 0)
        found = [self._show(own, agents, end, is_self=True)]
        found += [self._show(known, agents, end) for known in self._known.values()]
        return sorted(found, key=lambda host: host.host)

    def word_of(self, host: str) -> HostWord | None:
        """The last word of a host that is there."""
        if host == self._own.host:
            return self._own
        known = self._known.get(host)
        return None if known is None or self._is_lost(known) else known.word

    def speak(self) -> None:
        """Says a word now: something has changed, or others may not know us. Whoever has our name answers it."""
        every = max(EVERY_MS, _EVERY_MS_PER_HOST * len(self._known))
        self._due_at = self._now + every
        self._own = self._describe(every)
        self._spoke_at = self._wall_ms
        self._wire.publish(self._subject, msgspec.json.encode(self._own))

    # --- inside ---------------------------------------------------------------------------------------------------------

    def _heard(self, message: WireMessage) -> None:
        try:
            word = msgspec.json.decode(message.payload, type=HostWord)
        except msgspec.MsgspecError:
            return
        if not is_host_name(word.host) or word.every_ms < EVERY_MS:
            return
        if word.host == self._own.host:
            if word.mark != self._own.mark:
                self._heard_twin(word)
            return
        before = self._known.get(word.host)
        if before is None and len(self._known) >= _MOST_HOSTS:
            return
        if before is None or before.word.mark != word.mark or word.host in self._lost:
            self._log.note("cluster_host_heard", host=word.host, version=word.version)
        self._lost.discard(word.host)
        self._known[word.host] = _Known(word, self._now, self._wall_ms, word.wall_ms - self._wall_ms)

    def _heard_twin(self, word: HostWord) -> None:
        if (word.started_at, word.mark) > (self._own.started_at, self._own.mark):
            self._log.note("cluster_twin_refused", host=word.host, mark=word.mark)
            self.speak()  # so that it hears of us now, and not after two seconds
            return
        if self._twin is None:
            self._log.note("cluster_twin", host=word.host, mark=word.mark)
        self._twin = (word, self._now)

    def _look_for_lost(self) -> None:
        for host, known in list(self._known.items()):
            if self._now - known.heard >= FORGOTTEN_MS:
                del self._known[host]
                self._lost.discard(host)
            elif self._is_lost(known) and host not in self._lost:
                self._lost.add(host)
                self._log.note("cluster_host_lost", host=host)

    def _is_lost(self, known: _Known) -> bool:
        return self._now - known.heard >= _MISSED_WORDS * known.word.every_ms

    def _is_seat(self, known: _Known) -> bool:
        return known.word.is_seat and not self._is_lost(known)

    def _show(self, known: _Known, agents: dict[str, int], end: int, *, is_self: bool = False) -> HostFacts:
        word = known.word
        is_newest = word.term >= max(self._own.term, *(each.word.term for each in self._known.values()), 0)
        alive = HostRole.SEAT if word.is_seat and is_newest else HostRole.EDGE  # one that was killed still counts as heard
        role = HostRole.LOST if self._is_lost(known) else alive
        return HostFacts(
            word.host, role, word.version, agents.get(word.host, 0), word.load, word.position, end - word.position,
            known.clock_ms, known.heard_at, word.starts, is_self,
        )  # fmt: skip
