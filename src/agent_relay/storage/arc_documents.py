"""ARC registrations and invitations as documents, one for each: for a cluster, where whoever has the seat must know them."""

from __future__ import annotations

import logging
from typing import TypeVar

import msgspec

from agent_relay.ports.arc import ArcBook, ArcRow, InvitationRow
from agent_relay.ports.documents import Documents
from agent_relay.ports.names import RowDone
from agent_relay.ports.store import StoreError
from agent_relay.storage.posting import Post, post_answer

_REGISTRATIONS, _INVITATIONS = "arc/registrations/", "arc/invitations/"

log = logging.getLogger(__name__)

_Row = TypeVar("_Row", ArcRow, InvitationRow)


class DocumentArc:
    """Implements `ports.ArcStore`. Answers when it is durable; whoever still waits when it is closed is told so."""

    def __init__(self, documents: Documents, post: Post) -> None:
        self._documents = documents
        self._post = post
        self._waiting: dict[int, RowDone] = {}
        self._count = 0

    def open(self) -> ArcBook:
        return ArcBook(self._read(_REGISTRATIONS, ArcRow), self._read(_INVITATIONS, InvitationRow))

    def _read(self, prefix: str, kind: type[_Row]) -> list[_Row]:
        found = []
        for name, content in sorted(self._documents.find(prefix).items()):
            try:
                found.append(msgspec.json.decode(content, type=kind))
            except msgspec.MsgspecError as error:  # of a newer version: its agent cannot come in here, and the others can
                log.warning("arc_document_unreadable", extra={"relay_fields": {"name": name, "error": str(error)}})
        return found

    def write(self, row: ArcRow | InvitationRow, done: RowDone) -> None:
        self._put(row, msgspec.json.encode(row), done)

    def erase(self, row: ArcRow | InvitationRow, done: RowDone) -> None:
        self._put(row, b"", done)

    def _put(self, row: ArcRow | InvitationRow, content: bytes, done: RowDone) -> None:
        name = _REGISTRATIONS + row.agent_id if isinstance(row, ArcRow) else _INVITATIONS + row.id
        self._count += 1
        number = self._count
        self._waiting[number] = done

        def stored() -> None:
            waiting = self._waiting.pop(number, None)
            if waiting is not None:
                waiting(None)

        post_answer(self._post, lambda: self._documents.put(name, content, stored))

    def close(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for done in waiting.values():
            post_answer(self._post, lambda done=done: done(StoreError("The relay is stopping.")))  # type: ignore[misc]
