"""ARC registrations in memory: for a daemon that keeps nothing."""

from __future__ import annotations

from agent_relay.ports.arc import ArcRow, RowDone
from agent_relay.storage.posting import Post, post_answer


class MemoryArc:
    def __init__(self, post: Post) -> None:
        self._post = post
        self._rows: dict[str, ArcRow] = {}

    def open(self) -> list[ArcRow]:
        return list(self._rows.values())

    def write(self, row: ArcRow, done: RowDone) -> None:
        self._rows[row.agent_id] = row
        post_answer(self._post, lambda: done(None))

    def close(self) -> None:
        """There is nothing to close."""
