"""Many events in few bytes: what a picture of them needs, and nothing of what was said.

An entry is `[seq, ts, agent, type, note, duration, to]`. `agent`, `to`, `type` and `note` are places in lists of words that stand
beside the entries; -1 is none. The note is the one word that tells events of a type apart, such as the state of an agent.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from agent_relay.events.record import Record

NONE = -1
Entry = tuple[int, int, int, int, int, int, int]


class Outline(Struct):
    """`agents` holds whoever an entry is of or for."""

    events: list[Entry]
    agents: list[str]
    types: list[str]
    notes: list[str]
    next_cursor: str | None = None


class _Said(Struct, rename="camel", gc=False):
    """The fields of an event that go into its entry; most have none of them."""

    state: str | None = None
    item_type: str | None = None
    risk_level: str | None = None
    resolution: str | None = None
    operation: str | None = None
    reason: str | None = None
    kind: str | None = None
    duration: float | None = None
    latency_ms: float | None = None


_read_said = msgspec.json.Decoder(_Said).decode
_ALONE = ("session.ended", "agent.released")  # elsewhere a reason is a person's text


class OutlineMaker:
    """Takes records in their order."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._agents: dict[str, int] = {}
        self._types: dict[str, int] = {}
        self._notes: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, records: Iterable[Record]) -> None:
        self._entries += map(self._enter, records)

    def finish(self, next_cursor: str | None) -> Outline:
        return Outline(self._entries, list(self._agents), list(self._types), list(self._notes), next_cursor)

    def _enter(self, record: Record) -> Entry:
        note, duration = _look_inside(record)
        return (
            record.seq,
            record.ts,
            _place(self._agents, record.agent),
            _place(self._types, record.type),
            _place(self._notes, note),
            duration,
            _place(self._agents, record.to),
        )


def _place(words: dict[str, int], word: str) -> int:
    return words.setdefault(word, len(words)) if word else NONE


def _look_inside(record: Record) -> tuple[str, int]:
    try:
        said = _read_said(record.line)
    except (msgspec.DecodeError, UnicodeDecodeError):  # a field of that name is something else there
        return "", 0
    reason = said.reason if record.type in _ALONE else None
    note = said.state or said.item_type or said.risk_level or said.resolution or said.operation or reason or said.kind or ""
    return note, int(said.duration or said.latency_ms or 0)
