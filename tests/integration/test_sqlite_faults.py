"""What goes wrong with files and processes, done to a real SQLite store: full disks, locks, damage, kill -9."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_relay.ports.store import Batch, MessageQuery, MessageRow, Snapshot, StoreError, StoreUnusable
from agent_relay.storage.sqlite import writer
from agent_relay.storage.sqlite.migrate import newest_version
from agent_relay.storage.sqlite.store import SqliteStore
from tests.faults import Faults
from tests.support.store_driver import StoreDriver, make_message, make_stream, place_of

ROOT = Path(__file__).parents[2]
NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "messages.sqlite"


@contextmanager
def opened(path: Path) -> Iterator[StoreDriver]:
    driver = StoreDriver(lambda post: SqliteStore(path, post))
    driver.open()
    try:
        yield driver
    finally:
        driver.store.close()


def open_once(path: Path) -> tuple[Snapshot, list[MessageRow]]:
    """What a start finds, and the messages that wait then."""
    driver = StoreDriver(lambda post: SqliteStore(path, post))
    snapshot = driver.open()
    waiting = [each.message for each in driver.owed(limit=1_000_000)]
    driver.store.close()
    return snapshot, waiting


def writer_connection(driver: StoreDriver) -> sqlite3.Connection:
    assert isinstance(driver.store, SqliteStore)
    assert driver.store._writer is not None
    connection = driver.store._writer._commits.connection
    assert connection is not None
    return connection


def try_write(driver: StoreDriver, batch: Batch) -> StoreError | None:
    outcome: StoreError | None = driver.call(driver.store.write, batch)
    return outcome


# ---- files that cannot be opened


def refusal(path: Path) -> str:
    with pytest.raises(StoreUnusable) as raised:
        StoreDriver(lambda post: SqliteStore(path, post)).open()
    assert str(path) in str(raised.value)
    return str(raised.value)


def test_a_file_of_a_newer_version_is_refused_and_kept(path: Path) -> None:
    open_once(path)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {newest_version() + 1}")
    connection.close()
    before = path.read_bytes()
    text = refusal(path)
    assert "newer version" in text
    assert "Upgrade agent-relay, or move the file away" in text
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_kept(path: Path) -> None:
    path.write_bytes(b"these are my notes, not a database\n" * 1_000)
    before = path.read_bytes()
    assert "is not a database of agent-relay" in refusal(path)
    assert path.read_bytes() == before


def test_a_short_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"short")
    assert "is not a database" in refusal(path)


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.95])
def test_a_truncated_file_is_refused(path: Path, keep: float) -> None:
    with opened(path) as driver:
        driver.put(*(make_message(place, "x" * 500) for place in range(1, 1_001)))
    os.truncate(path, int(path.stat().st_size * keep))
    text = refusal(path)
    assert "is damaged" in text
    assert "move it away" in text


def test_a_damaged_page_is_found_at_start(path: Path) -> None:
    with opened(path) as driver:
        driver.put(*(make_message(place, "x" * 500) for place in range(1, 1_001)))
    with path.open("r+b") as file:
        file.seek(40 * 8192)
        file.write(random.Random(1).randbytes(8192))
    assert "is damaged" in refusal(path)


def test_a_directory_in_its_place_is_refused(path: Path) -> None:
    path.mkdir()
    assert "is not a file" in refusal(path)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "nowhere" / "messages.sqlite")


@contextmanager
def without_privileges() -> Iterator[None]:
    """Permissions do not hold for root: for a moment, be nobody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_a_file_without_permission_is_refused(path: Path, mode: int) -> None:
    open_once(path)
    path.chmod(mode)
    for parent in path.parents[:3]:
        parent.chmod(0o755)
    try:
        with without_privileges():
            text = refusal(path)
    finally:
        path.chmod(0o600)
    assert "permission" in text


def test_a_start_while_another_program_holds_the_file_says_so(path: Path) -> None:
    open_once(path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    try:
        assert "locked by another program" in refusal(path)
    finally:
        holder.close()


# ---- writes that cannot be done now


def test_a_full_disk_fails_the_batch_and_the_next_write_works(path: Path) -> None:
    with opened(path) as driver:
        driver.put(make_message(1))
        pages = writer_connection(driver).execute("PRAGMA page_count").fetchone()[0]
        writer_connection(driver).execute(f"PRAGMA max_page_count = {pages}")
        big = Batch(messages=[make_message(2, "x" * 200_000)], streams=[make_stream("Alice", "Bob")])
        failure = try_write(driver, big)
        assert failure is not None
        assert "is full" in str(failure)
        assert driver.find() == [1]
        writer_connection(driver).execute("PRAGMA max_page_count = 1000000")
        assert try_write(driver, Batch(messages=[make_message(3)])) is None
        assert driver.find() == [3, 1]
    snapshot, waiting = open_once(path)
    assert [place_of(row) for row in waiting] == [1, 3]
    assert [row.wire_seq for row in snapshot.streams] == [0]  # made from the messages; the one of the batch had another


def test_on_a_full_disk_each_batch_hears_about_itself(path: Path) -> None:
    """What fits is written though it waited in one transaction with what does not."""
    with opened(path) as driver:
        driver.put(make_message(1))
        pages = writer_connection(driver).execute("PRAGMA page_count").fetchone()[0]
        writer_connection(driver).execute(f"PRAGMA max_page_count = {pages}")
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        outcomes: list[StoreError | None] = []
        for place, body in ((2, "small"), (3, "x" * 200_000), (4, "small"), (5, "x" * 200_000)):
            driver.store.write(Batch(messages=[make_message(place, body)]), outcomes.append)
        blocker.execute("COMMIT")
        blocker.close()
        driver.wait_until(lambda: len(outcomes) == 4)
        assert [outcome is None for outcome in outcomes] == [True, False, True, False]
        assert driver.find() == [4, 2, 1]


def test_a_search_on_a_full_disk_fails_and_works_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_IDLE_SECONDS", 600)
    with opened(path) as driver:
        driver.put(*(make_message(place, f"unique{place} " * 20) for place in range(1, 2_001)))
        writer_connection(driver).execute("PRAGMA max_page_count = 1")
        answer = driver.call(driver.store.find, MessageQuery(search="unique7"))
        assert isinstance(answer, StoreError)
        assert driver.find(with_agent="Bob", limit=1) == [2_000]
        writer_connection(driver).execute("PRAGMA max_page_count = 1000000")
        assert driver.find(search="unique1777") == [1_777]


_FILL_THE_DISK = """
import sys
from pathlib import Path
from agent_relay.ports.store import Batch
from agent_relay.storage.sqlite.store import SqliteStore
from tests.support.store_driver import StoreDriver, make_message
from tests.faults import Faults

path = Path(sys.argv[1])
faults = Faults(path.parent)
driver = StoreDriver(lambda post: SqliteStore(path, post))
driver.open()
for place in range(1, 400):
    if place == 100:
        faults.set(f"pwrite ENOSPC {path} *")
    if place == 300:
        faults.clear()
    outcome = driver.call(driver.store.write, Batch(messages=[make_message(place, "x" * 10_000)]))
    print(place, "stored" if outcome is None else "failed", flush=True)
driver.store.close()
"""


def test_a_disk_that_fills_and_is_emptied_again(path: Path) -> None:
    """There is no room for a while; once there is, everything is stored again."""
    environ = os.environ | Faults(path.parent).environ
    run = subprocess.run(
        [sys.executable, "-c", _FILL_THE_DISK, path],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
        env=environ,
        cwd=ROOT,
    )
    outcomes = [line.split() for line in run.stdout.splitlines()]
    stored = [int(place) for place, outcome in outcomes if outcome == "stored"]
    assert stored == [*range(1, 100), *range(300, 400)]
    assert [place_of(row) for row in open_once(path)[1]] == stored


def test_a_lock_of_another_program_fails_the_writes_together_and_lets_reads_go_on(path: Path) -> None:
    with opened(path) as driver:
        driver.put(make_message(1))
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        outcomes: list[StoreError | None] = []
        started = time.monotonic()
        for place in range(2, 12):
            driver.store.write(Batch(messages=[make_message(place)]), outcomes.append)
        assert driver.find() == [1]
        driver.wait_until(lambda: len(outcomes) == 10)
        assert time.monotonic() - started < 10  # two waits of two seconds at most, not ten
        assert all("locked by another program" in str(outcome) for outcome in outcomes)
        holder.execute("ROLLBACK")
        holder.close()
        assert try_write(driver, Batch(messages=[make_message(20)])) is None
        assert driver.find() == [20, 1]


def test_a_file_made_read_only_fails_the_batch_and_is_opened_anew(path: Path) -> None:
    with opened(path) as driver:
        driver.put(make_message(1))
        writer_connection(driver).execute("PRAGMA query_only = ON")
        failure = try_write(driver, Batch(messages=[make_message(2)]))
        assert failure is not None
        assert "cannot be written" in str(failure)
        assert try_write(driver, Batch(messages=[make_message(3)])) is None
        assert driver.find() == [3, 1]


def test_a_file_that_vanished_is_an_error_and_never_an_empty_store(path: Path) -> None:
    with opened(path) as driver:
        driver.put(make_message(1))
        writer_connection(driver).execute("PRAGMA query_only = ON")
        assert try_write(driver, Batch(messages=[make_message(2)])) is not None  # the connection is given up
        away = path.with_name("away")
        path.rename(away)
        failure = try_write(driver, Batch(messages=[make_message(3)]))
        assert failure is not None
        assert str(path) in str(failure)
        assert not path.exists()
        away.rename(path)
        assert try_write(driver, Batch(messages=[make_message(4)])) is None
        assert driver.find() == [4, 1]


# ---- kill -9

_WRITE_FOR_EVER = """
import itertools, os, random, sys
from pathlib import Path
from agent_relay.ports.store import Batch, MessageQuery, StreamRow
from agent_relay.storage.sqlite.store import SqliteStore
from tests.support.store_driver import StoreDriver, make_message

path, durability, first, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
chance = random.Random(seed)
driver = StoreDriver(lambda post: SqliteStore(path, post, durability))
driver.open()
pending, place = 0, first

def report(turn):
    def done(outcome):
        global pending
        pending -= 1
        os.write(1, f"{turn}\\n".encode() if outcome is None else b"error\\n")
    return done

for turn in itertools.count(first):
    messages = []
    for _ in range(chance.choice((1, 2, 7, 100))):
        messages.append(make_message(place, f"turn{turn}", client_id=str(turn), thread=chance.choice((None, "t"))))
        place += 1
    stream = StreamRow("", "Alice", "Bob", last_seq=turn, wire_seq=len(messages), heard_seq=0, done_seq=0, done_above=())
    pending += 1
    driver.store.write(Batch(messages=messages, streams=[stream]), report(turn))
    if turn % 20 == 0:
        driver.find(search=f"turn{turn - 10}")
    driver.wait_until(lambda: pending < 8)
"""


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_what_was_reported_survives_kill_9_and_no_batch_is_partial(path: Path, durability: str) -> None:
    reported: set[int] = set()
    first = 1
    chance = random.Random(durability)
    for seed in range(4):
        reported |= write_until_killed(path, durability, first, seed, lines=chance.randint(30, 150))
        snapshot, waiting = open_once(path)
        stored: dict[int, int] = {}
        for row in waiting:
            stored[int(row.client_id)] = stored.get(int(row.client_id), 0) + 1
        assert reported <= set(stored)
        newest = snapshot.streams[0]
        assert (newest.last_seq, newest.wire_seq) == (max(stored), stored[max(stored)])  # the stream row came with its batch
        sizes = {1, 2, 7, 100}
        assert set(stored.values()) <= sizes
        first = place_of(waiting[-1]) + 1
        check_index(path, sum(stored.values()), max(stored))


def write_until_killed(path: Path, durability: str, first: int, seed: int, lines: int) -> set[int]:
    command = [sys.executable, "-c", _WRITE_FOR_EVER, str(path), durability, str(first), str(seed)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    try:
        told = [child.stdout.readline() for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        told += child.stdout.readlines()  # what was reported between the last line read and its death counts too
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert all(line.strip().isdigit() for line in told), told
    return {int(line) for line in told}


def check_index(path: Path, count: int, newest_turn: int) -> None:
    with opened(path) as driver:
        assert driver.store.stats().messages == count
        assert driver.find(search=f"turn{newest_turn}")
        assert len(driver.page(with_agent="bob", limit=100_000).messages) == count
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO message_words (message_words, rank) VALUES ('integrity-check', 1)")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
