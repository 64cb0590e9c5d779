"""Every store, held to the one contract; and a message of any content, through each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.ports.store import Batch, MessageQuery, MessageRow, MessageStore
from agent_relay.storage.memory import MemoryStore
from agent_relay.storage.postgres.store import PostgresStore
from agent_relay.storage.postgres.url import DatabaseUrl
from agent_relay.storage.sqlite.store import SqliteStore
from tests.contract.store_suite import MessageStoreContract
from tests.support.postgres_stores import fresh_url
from tests.support.store_driver import Post, StoreDriver, make_message, number_at, time_at


class TestMemoryStore(MessageStoreContract):
    persistent = False

    def make_store(self, post: Post) -> MessageStore:
        return MemoryStore(post)


class TestSqliteStore(MessageStoreContract):
    def make_store(self, post: Post) -> MessageStore:
        return SqliteStore(self.folder / "messages.sqlite", post)


class TestSqliteStoreNormal(MessageStoreContract):
    def make_store(self, post: Post) -> MessageStore:
        return SqliteStore(self.folder / "messages.sqlite", post, durability="normal")


class TestPostgresStore(MessageStoreContract):
    url: DatabaseUrl

    @pytest.fixture(autouse=True)
    def _choose_schema(self) -> None:
        self.url = fresh_url()

    @pytest.fixture
    def driver(self, _choose_schema: None, _keep_folder: None) -> Iterator[StoreDriver]:
        driver = StoreDriver(self.make_store)
        driver.open()
        yield driver
        driver.store.close()

    def make_store(self, post: Post) -> MessageStore:
        return PostgresStore(self.url, post)


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,8}", fullmatch=True)
whole = st.integers(0, 2**62)


@st.composite
def messages(draw: st.DrawFn, number: int = 1) -> MessageRow:
    return MessageRow(
        number=number, id=draw(text), sender=draw(names), client_id=draw(text), target=draw(text), topic=draw(text),
        kind=draw(text), thread=draw(st.none() | text), ts=draw(whole), expires_at=draw(whole), priority=draw(st.integers(0, 9)),
        queued=draw(whole), skipped=tuple(draw(st.lists(names, max_size=3))),
        recipients=tuple(draw(st.lists(st.tuples(names, whole), max_size=4))), tail=draw(st.binary(max_size=300)),
    )  # fmt: skip


def _memory(post: Post, folder: Path) -> MessageStore:
    return MemoryStore(post)


def _sqlite(post: Post, folder: Path) -> MessageStore:
    return SqliteStore(folder / "messages.sqlite", post, durability="normal")


_schemas: dict[Path, DatabaseUrl] = {}


def _postgres(post: Post, folder: Path) -> MessageStore:
    return PostgresStore(_schemas.setdefault(folder, fresh_url()), post)


@pytest.mark.parametrize("make", [_memory, _sqlite, _postgres], ids=["memory", "sqlite", "postgres"])
def test_any_message_comes_back_as_it_was_written(make: Callable[[Post, Path], MessageStore], tmp_path: Path) -> None:
    driver = StoreDriver(lambda post: make(post, tmp_path))
    driver.open()
    last = 0

    @settings(deadline=None, max_examples=60)
    @given(data=st.data(), count=st.integers(1, 70))
    def check(data: st.DataObject, count: int) -> None:
        nonlocal last
        rows = [
            data.draw(messages(number=last + place)) if place < 3 else make_plain(last + place) for place in range(1, count + 1)
        ]
        last += count
        driver.put(*rows)
        assert driver.fetch(*(row.number for row in rows)) == rows

    check()
    assert driver.find(search="nothing-of-the-kind") == []  # the index swallows whatever was stored
    driver.store.close()


def make_plain(number: int) -> MessageRow:
    return make_message(1, number=number)


words = st.lists(st.sampled_from(["red", "blue", "fish", "Bird", "über", "auth.py", "42"]), max_size=4).map(" ".join)
agents = st.sampled_from(["Alice", "Bob", "Carol", "Dave"])
topics = st.sampled_from(["", "code", "code.review"])
targets = st.sampled_from(["Bob", "*", "#dev", "", "Bob,Carol"])
threads = st.none() | st.sampled_from(["", "t1", "t2"])
places = st.integers(0, 30)


@st.composite
def corpora(draw: st.DrawFn) -> list[MessageRow]:
    rows = []
    for place in range(1, draw(st.integers(1, 25)) + 1):
        recipients = tuple((name, place) for name in draw(st.lists(agents, unique=True, max_size=3)))
        fields: dict[str, Any] = {"sender": draw(agents), "topic": draw(topics), "target": draw(targets), "thread": draw(threads)}
        rows.append(make_message(place, draw(words), recipients, **fields))
    return rows


def or_none(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


queries = st.builds(
    MessageQuery,
    with_agent=or_none(agents.map(str.upper)),
    sender=or_none(agents),
    recipient=or_none(agents.map(str.lower)),
    target=or_none(targets),
    topic=or_none(topics),
    thread=threads,
    search=or_none(words),
    since=or_none(places.map(time_at)),
    until=or_none(places.map(time_at)),
    before=or_none(places.map(number_at)),
    limit=st.integers(0, 8),
)


@settings(deadline=None, max_examples=40)
@given(rows=corpora(), asked=st.lists(queries, min_size=5, max_size=20), pruned_before=places, after=st.integers(0, 25))
def test_all_stores_give_the_same_answers(
    tmp_path_factory: pytest.TempPathFactory, rows: list[MessageRow], asked: list[MessageQuery], pruned_before: int, after: int
) -> None:
    folder = tmp_path_factory.mktemp("stores")
    drivers = [StoreDriver(lambda post, make=make: make(post, folder)) for make in (_memory, _sqlite, _postgres)]  # type: ignore[misc]
    streams = {(row.topic, row.sender): after for row in rows}
    for driver in drivers:
        driver.open()
        driver.write(Batch(messages=rows, checkpoint=rows[-1].number))
    for _ in range(2):
        for query in asked:
            answers = [driver.ask(driver.store.find, query) for driver in drivers]
            assert answers[0] == answers[1] == answers[2], query
        replays = [driver.replay("bob", streams) for driver in drivers]
        assert replays[0] == replays[1] == replays[2]
        pruned = [driver.prune(time_at(pruned_before), limit=10) for driver in drivers]
        assert pruned[0] == pruned[1] == pruned[2]
    for driver in drivers:
        driver.store.close()
