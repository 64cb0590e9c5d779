"""Histories moved between stores: whole, continued after a kill, and refused where they do not belong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_relay.daemon.store_copy import copy_store
from agent_relay.ports.store import Batch, DeadLetterRow, MemberRow, SpentToken, StoreError, StoreUnusable, SubscriptionRow
from agent_relay.storage.copies import CopyEnd, OpenEnd
from agent_relay.storage.postgres.copy import PostgresCopyEnd
from agent_relay.storage.postgres.store import PostgresStore
from agent_relay.storage.postgres.url import DatabaseUrl, read_url
from agent_relay.storage.sqlite.copy import SqliteCopyEnd
from agent_relay.storage.sqlite.store import SqliteStore
from tests.support.postgres_server import fresh_schema, server
from tests.support.postgres_stores import fresh_url
from tests.support.store_driver import (
    StoreDriver,
    make_agent,
    make_message,
    make_stream,
    make_trail,
    make_waiting,
    number_at,
    time_at,
)

ROOT = Path(__file__).parents[2]
_COUNT = 2_345


def fill(path: Path) -> None:
    """A history with something in every table, messages that were pruned, and odd texts."""
    driver = StoreDriver(lambda post: SqliteStore(path, post, durability="normal"))
    driver.open()
    rows = [
        make_message(place, f"word{place} \0 ✓", thread="t\0" if place % 7 == 0 else None, topic="code" if place % 5 == 0 else "")
        for place in range(1, _COUNT + 1)
    ]
    waiting = [make_waiting(row) for row in rows[-300:]]
    trail = [make_trail(place, place, time_at(place), "sent", detail="socket\0") for place in range(1, 1_800)]
    driver.write(
        Batch(
            messages=rows, backlog_added=waiting, checkpoint=rows[-1].number, trail=trail,
            agents=[make_agent("Alice"), make_agent("Bob", cli=None, meta=b'{"a":"\\u0000"}')],
            spent_tokens=[SpentToken("spent", "Bob", time_at(2_000))],
            subscriptions=[SubscriptionRow("Bob", "code.>")], members=[MemberRow("#dev", ""), MemberRow("#dev", "Bob")],
            streams=[make_stream("Alice", "Bob", done_above=(5, 7, -9)), make_stream("Bob", "Alice", topic="code")],
            dead_letters=[DeadLetterRow(number_at(2_000), "Bob", 5, "REJECTED")],
            documents={"budget": b"{}", "odd \0 \1 name": bytes(range(256))},
        )
    )  # fmt: skip
    driver.prune(time_at(101))
    driver.store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(tmp_path / "messages.sqlite")
    return tmp_path / "messages.sqlite"


def copy(source: CopyEnd, target: CopyEnd) -> None:
    totals = copy_store(source, target, lambda table, done, total: None, lambda: None)
    assert {name: (here, there) for name, (here, there) in totals.items() if here != there} == {}
    assert totals["messages"][0].rows == _COUNT - 100
    assert all(here.rows > 0 for here, _ in totals.values())


def end_of(url: DatabaseUrl) -> PostgresCopyEnd:
    return PostgresCopyEnd(url, "a project")


def test_there_and_back_again(path: Path, tmp_path: Path) -> None:
    url, back = fresh_url(), tmp_path / "elsewhere" / "back.sqlite"
    copy(SqliteCopyEnd(str(path)), end_of(url))
    copy(end_of(url), SqliteCopyEnd(str(back)))
    first = StoreDriver(lambda post: SqliteStore(path, post))
    last = StoreDriver(lambda post: SqliteStore(back, post))
    one, other = first.open(), last.open()
    assert replace(one, streams=sorted(one.streams, key=repr)) == replace(other, streams=sorted(other.streams, key=repr))
    assert last.store.stats().messages == _COUNT - 100
    assert last.store.stats().lost == ""
    assert last.find(search="word2345") == [2_345]
    first.store.close()
    last.store.close()
    assert sorted(file.name for file in back.parent.iterdir() if "copying" in file.name) == []


_COPY = """
import sys
from agent_relay.daemon.store_copy import copy_store
from agent_relay.storage.postgres.copy import PostgresCopyEnd
from agent_relay.storage.postgres.url import read_url
from agent_relay.storage.sqlite.copy import SqliteCopyEnd
ends = [PostgresCopyEnd(read_url(word, "unused"), "x") if "://" in word else SqliteCopyEnd(word) for word in sys.argv[1:3]]
def show(table, done, total):
    print(table, done, flush=True)
    sys.stdin.readline()
copy_store(*ends, show, lambda: None)
"""


@pytest.mark.parametrize("direction", ["to postgres", "to sqlite"])
@pytest.mark.parametrize("steps", [1, 3, 7])
def test_a_copy_that_was_killed_is_continued(path: Path, tmp_path: Path, direction: str, steps: int) -> None:
    given = server().url(fresh_schema())
    url, back = read_url(given, "unused"), tmp_path / "back.sqlite"
    words = [str(path), given]
    if direction == "to sqlite":
        copy(SqliteCopyEnd(str(path)), end_of(url))
        words = [given, str(back)]
    killed = subprocess.Popen(
        [sys.executable, "-c", _COPY, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )  # fmt: skip
    assert killed.stdin is not None
    assert killed.stdout is not None
    for _ in range(steps):
        assert killed.stdout.readline()
        killed.stdin.write(b"\n")
        killed.stdin.flush()
    killed.kill()
    killed.communicate()
    if direction == "to sqlite":
        assert not back.exists()
        copy(end_of(url), SqliteCopyEnd(str(back)))
    else:
        with pytest.raises(StoreUnusable, match="was not finished"):
            PostgresStore(url, lambda callback: None).open()
        copy(SqliteCopyEnd(str(path)), end_of(url))
        store = PostgresStore(url, lambda callback: None)
        assert store.open().last_number == number_at(_COUNT)
        store.close()


def test_a_target_that_holds_something_else_is_refused(path: Path, tmp_path: Path) -> None:
    url = fresh_url()
    driver = StoreDriver(lambda post: PostgresStore(url, post))
    driver.open()
    driver.put(make_message(1))
    driver.store.close()
    with pytest.raises(StoreUnusable, match="holds messages already"):
        copy(SqliteCopyEnd(str(path)), end_of(url))
    with pytest.raises(StoreUnusable, match="exists already"):
        copy(end_of(url), SqliteCopyEnd(str(path)))
    with pytest.raises(StoreUnusable, match="nothing to copy"):
        copy(SqliteCopyEnd(str(tmp_path / "none.sqlite")), end_of(fresh_url()))


def test_a_copy_that_differs_is_told_and_not_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = fresh_url()
    target = end_of(url)

    def spoil() -> None:
        server().psql(f"UPDATE {url.schema}.messages SET kind = 'other' WHERE number = {number_at(200)}")

    totals = copy_store(SqliteCopyEnd(str(path)), target, lambda table, done, total: None, spoil)
    assert [name for name, (here, there) in totals.items() if here != there] == ["messages"]
    with pytest.raises(StoreUnusable, match="was not finished"):
        PostgresStore(url, lambda callback: None).open()


def test_a_failed_write_ends_the_copy(path: Path) -> None:
    url = fresh_url()
    reading, writing = OpenEnd(SqliteCopyEnd(str(path))), OpenEnd(end_of(url), "somewhere")
    server().psql(f"DROP TABLE {url.schema}.trail CASCADE")
    with pytest.raises(StoreError):
        writing.ask(writing.store.write, Batch(trail=[make_trail(1, 1, 1, "sent")]))
    reading.close()
    writing.close()
