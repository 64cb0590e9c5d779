"""One body of tests over every store of ARC registrations."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_relay.daemon.shelves import StoredDocuments
from agent_relay.ports.arc import ArcBook, ArcRow, ArcStore, InvitationRow
from agent_relay.ports.store import StoreError, StoreUnusable
from agent_relay.storage.arc_documents import DocumentArc
from agent_relay.storage.arc_memory import MemoryArc
from agent_relay.storage.sqlite.arc import SqliteArc

DEADLINE_S = 60.0
ROW = ArcRow("bob-1", "hash-1", 1_000, 2_000, "hash-0", 1_500)


class Driver:
    """Answers are run in the thread that has them; `write` waits for them."""

    def __init__(self, make: Callable[[Path, Callable[[Callable[[], None]], None]], ArcStore], folder: Path) -> None:
        self._make = make
        self._folder = folder
        self.store = make(folder, lambda callback: callback())

    def write(self, *rows: ArcRow | InvitationRow, erase: bool = False) -> list[StoreError | None]:
        answers: list[StoreError | None] = []
        whole = threading.Event()

        def done(error: StoreError | None) -> None:
            answers.append(error)
            if len(answers) == len(rows):
                whole.set()

        for row in rows:
            (self.store.erase if erase else self.store.write)(row, done)
        assert whole.wait(DEADLINE_S)
        return answers

    def reopen(self) -> list[ArcRow]:
        return self.reopen_book().registrations

    def reopen_book(self) -> ArcBook:
        self.store.close()
        if not isinstance(self.store, MemoryArc):
            self.store = self._make(self._folder, lambda callback: callback())
        return self.store.open()


@pytest.fixture(params=["memory", "sqlite", "documents"])
def driver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Driver]:
    def make(folder: Path, post: Callable[[Callable[[], None]], None]) -> ArcStore:
        if request.param == "documents":
            return DocumentArc(StoredDocuments(kept, keep), post)
        return MemoryArc(post) if request.param == "memory" else SqliteArc(folder / "arc.sqlite", post)

    kept: dict[str, bytes] = {}

    def keep(name: str, content: bytes, then: Callable[[], None] | None) -> None:
        kept[name] = content
        if not content:
            del kept[name]
        if then is not None:
            then()

    found = Driver(make, tmp_path)
    assert found.store.open() == ArcBook()
    yield found
    found.store.close()


def test_what_was_written_is_found(driver: Driver) -> None:
    plain = ArcRow("al-1", "hash-2", 5)
    assert driver.write(ROW, plain) == [None, None]
    assert sorted(driver.reopen(), key=lambda row: row.agent_id) == [plain, ROW]


def test_the_last_word_on_an_id_counts(driver: Driver) -> None:
    revoked = replace(ROW, revoked_at=9)
    driver.write(ROW, replace(ROW, token_hash="hash-3"), revoked)
    assert driver.reopen() == [revoked]


def test_many_at_once_are_all_answered(driver: Driver) -> None:
    rows = [ArcRow(f"agent-{number}", f"hash-{number}", number) for number in range(500)]
    assert driver.write(*rows) == [None] * 500
    assert sorted(driver.reopen(), key=lambda row: row.registered_at) == rows


def test_invitations_are_kept_beside_registrations(driver: Driver) -> None:
    first = InvitationRow("a", "hash-a", "bob-1", 1, 1_000, 2_000)
    second = InvitationRow("b", "hash-b", None, 20, 1_000, 2_000)
    driver.write(ROW, first, second, replace(second, uses_left=19))
    book = driver.reopen_book()
    assert book.registrations == [ROW]
    assert sorted(book.invitations, key=lambda row: row.id) == [first, replace(second, uses_left=19)]


def test_what_was_erased_is_gone(driver: Driver) -> None:
    invitation = InvitationRow("a", "hash-a", None, 1, 1_000, 2_000)
    driver.write(ROW, invitation, ArcRow("al-1", "hash-2", 5))
    assert driver.write(ROW, invitation, ArcRow("never-1", "", 0), erase=True) == [None] * 3
    book = driver.reopen_book()
    assert ([row.agent_id for row in book.registrations], book.invitations) == (["al-1"], [])


# --- the file --------------------------------------------------------------------------------------------------------------


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    store = SqliteArc(tmp_path / "arc.sqlite", lambda callback: callback())
    store.open()
    store.close()
    assert (tmp_path / "arc.sqlite").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("what", ["not a database", "another program's", "newer"])
def test_a_file_that_is_not_ours_is_left_alone(tmp_path: Path, what: str) -> None:
    path = tmp_path / "arc.sqlite"
    if what == "not a database":
        path.write_bytes(b"hello " * 1_000)
    else:
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE x (y)" if what == "another program's" else "PRAGMA user_version = 99")
        connection.commit()
        connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match=r"arc\.sqlite"):
        SqliteArc(path, lambda callback: callback()).open()
    assert path.read_bytes() == before


def test_a_write_that_fails_is_told(tmp_path: Path) -> None:
    path = tmp_path / "arc.sqlite"
    driver = Driver(lambda folder, post: SqliteArc(folder / "arc.sqlite", post), tmp_path)
    driver.store.open()
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE registrations")
    connection.close()
    (failure,) = driver.write(ROW)
    assert isinstance(failure, StoreError)
    driver.store.close()


def test_a_file_of_the_first_version_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "arc.sqlite"
    driver = Driver(lambda folder, post: SqliteArc(folder / "arc.sqlite", post), tmp_path)
    driver.store.open()
    driver.write(ROW)
    driver.store.close()
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE invitations")
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    assert driver.reopen() == [ROW]
    assert driver.write(InvitationRow("a", "hash-a", None, 1, 1_000, 2_000)) == [None]
    driver.store.close()
