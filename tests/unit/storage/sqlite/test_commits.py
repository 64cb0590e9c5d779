"""What the writer says after a commit that failed, whether or not all of it was in the file by then."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.ports.store import StoreError
from agent_relay.storage.sqlite import commits as sqlite_commits
from agent_relay.storage.sqlite import files
from agent_relay.storage.sqlite.commits import Commits, GivenUp
from agent_relay.storage.sqlite.files import connect_writer, make_file
from agent_relay.storage.sqlite.migrate import apply_migrations
from agent_relay.storage.sqlite.rows import read_meta, write_meta

IOERR_FSYNC = sqlite3.SQLITE_IOERR | (4 << 8)


class Liar(sqlite3.Connection):
    """Its next commit fails as one whose flush does; `keeps`: although it is in the file."""

    keeps: bool | None = None

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        keeps, is_last = Liar.keeps, sql == "COMMIT" or sql.startswith("INSERT")
        if keeps is None or not is_last:
            return super().execute(sql, *values)
        Liar.keeps = None
        if keeps:
            super().execute(sql, *values)
        elif self.in_transaction:
            super().execute("ROLLBACK")
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = IOERR_FSYNC
        raise error


@pytest.fixture
def commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Commits]:
    monkeypatch.setattr(sqlite_commits, "_TRIED_EVERY_S", 0.01)
    path = tmp_path / "m"
    make_file(path)
    connection = connect_writer(path, "full")
    apply_migrations(connection)
    connection.close()
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *place, **more: connect(*place, **more, factory=Liar))
    commits = Commits(path, "full", connect_writer(path, "full"))
    yield commits
    Liar.keeps = None
    commits.close()


def meta(commits: Commits) -> dict[str, int]:
    assert commits.connection is not None
    return read_meta(commits.connection)


@pytest.mark.parametrize("keeps", [True, False])
def test_the_truth_about_a_transaction_is_found(commits: Commits, keeps: bool) -> None:
    Liar.keeps = keeps
    outcome = commits.transact(lambda connection: write_meta(connection, checkpoint=7))
    assert isinstance(outcome, StoreError) is not keeps
    assert meta(commits)["checkpoint"] == (7 if keeps else 0)
    assert meta(commits)["seal"] == 1
    assert commits.trouble is None
    assert commits.transact(lambda connection: write_meta(connection, checkpoint=8)) is None
    assert meta(commits)["batch"] == commits.batch == 2  # a number that may be in the file is not used again


@pytest.mark.parametrize("keeps", [True, False])
def test_the_truth_about_one_statement_is_found(commits: Commits, keeps: bool) -> None:
    Liar.keeps = keeps
    insert = "INSERT INTO backlog VALUES ('Bob', ?, 1, 1, 1)"
    failure = commits.execute(insert, [5], lambda found: found.execute("SELECT 1 FROM backlog").fetchone() is not None)
    assert (failure is None) is keeps
    assert commits.connection is not None
    assert commits.connection.execute("SELECT number FROM backlog").fetchall() == ([(5,)] if keeps else [])


def test_what_is_there_is_written_once_more_before_anybody_hears_of_it(commits: Commits, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [OSError(5, "Input/output error")] * 3
    troubles = []

    def rewrite(path: Path) -> None:
        troubles.append(commits.trouble)
        if failures:
            raise failures.pop()
        files.rewrite_wal(path)

    monkeypatch.setattr(sqlite_commits, "rewrite_wal", rewrite)
    Liar.keeps = True
    assert commits.transact(lambda connection: write_meta(connection, checkpoint=7)) is None
    assert troubles[0] is None
    assert all("what was stored ([Errno 5] Input/output error)" in str(trouble) for trouble in troubles[1:])
    assert len(troubles) == 4
    assert commits.trouble is None


def test_a_doubt_that_outlives_the_store_is_not_decided(commits: Commits, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(sqlite_commits, "rewrite_wal", fail)
    Liar.keeps = True
    threading.Timer(0.05, commits.give_up).start()
    with pytest.raises(GivenUp):
        commits.transact(lambda connection: write_meta(connection, checkpoint=7))


def test_the_wal_is_the_same_after_it_was_rewritten(commits: Commits, tmp_path: Path) -> None:
    for number in range(300):
        commits.transact(
            lambda connection, number=number: connection.execute(
                "INSERT INTO backlog VALUES ('Bob', ?, 1, 1, 1)", (number,)
            ).close()
        )
    wal = tmp_path / "m-wal"
    before = wal.read_bytes()
    assert len(before) > 1024 * 1024
    files.rewrite_wal(tmp_path / "m")
    assert wal.read_bytes() == before
    files.rewrite_wal(tmp_path / "nothing")
