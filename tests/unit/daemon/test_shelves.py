from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_relay.daemon.shelves import StoredDocuments, make_shelf
from agent_relay.ports.arc import ArcRow
from agent_relay.ports.store import StoreError
from agent_relay.storage.arc_documents import DocumentArc


class Core:
    """What `Relay.keep_document` is given."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, bytes]] = []
        self.waiting: list[Callable[[], None]] = []

    def keep(self, name: str, content: bytes, then: Callable[[], None] | None) -> None:
        self.kept.append((name, content))
        if then is not None:
            self.waiting.append(then)


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_shelf_has_what_was_saved_last(is_alone: bool, tmp_path: Path) -> None:
    documents = None if is_alone else StoredDocuments({"budgets of another kind": b"x"}, Core().keep)
    shelf = make_shelf(documents, "budget", str(tmp_path / "budget.json"))
    assert shelf.load() == b""
    shelf.save(b"1")
    shelf.save(b"22")
    assert shelf.load() == b"22"
    assert (tmp_path / "budget.json").exists() == is_alone


def test_documents_are_those_of_the_start_and_what_was_put_since() -> None:
    core = Core()
    documents = StoredDocuments({"a/1": b"x", "b/1": b"y"}, core.keep)
    documents.put("a/2", b"z")
    documents.put("a/1", b"")
    documents.put("a/3", b"")
    assert documents.find("a/") == {"a/2": b"z"}
    assert core.kept == [("a/2", b"z"), ("a/1", b""), ("a/3", b"")]


def test_a_registration_is_answered_when_it_is_durable_and_at_the_latest_when_the_relay_stops() -> None:
    core = Core()
    arc = DocumentArc(StoredDocuments({"arc/registrations/bad": b"?"}, core.keep), lambda call: call())
    assert arc.open().registrations == []
    told: list[StoreError | None] = []
    arc.write(ArcRow("al-1", "hash", 5), told.append)
    arc.write(ArcRow("al-2", "hash", 5), told.append)
    assert told == []
    core.waiting[0]()
    assert told == [None]
    arc.close()
    core.waiting[1]()
    assert [str(each) for each in told[1:]] == ["The relay is stopping."]
