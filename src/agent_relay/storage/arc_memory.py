"""ARC registrations and invitations in memory: for a daemon that keeps nothing."""

from __future__ import annotations

from agent_relay.ports.arc import ArcBook, ArcRow, InvitationRow
from agent_relay.ports.names import RowDone
from agent_relay.storage.posting import Post, post_answer


class MemoryArc:
    def __init__(self, post: Post) -> None:
        self._post = post
        self._registrations: dict[str, ArcRow] = {}
        self._invitations: dict[str, InvitationRow] = {}

    def open(self) -> ArcBook:
        return ArcBook(list(self._registrations.values()), list(self._invitations.values()))

    def write(self, row: ArcRow | InvitationRow, done: RowDone) -> None:
        if isinstance(row, ArcRow):
            self._registrations[row.agent_id] = row
        else:
            self._invitations[row.id] = row
        post_answer(self._post, lambda: done(None))

    def erase(self, row: ArcRow | InvitationRow, done: RowDone) -> None:
        if isinstance(row, ArcRow):
            self._registrations.pop(row.agent_id, None)
        else:
            self._invitations.pop(row.id, None)
        post_answer(self._post, lambda: done(None))

    def close(self) -> None:
        """There is nothing to close."""
