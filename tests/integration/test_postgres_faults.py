"""What goes wrong between a store and its PostgreSQL server: lost connections and answers, restarts, two daemons."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.ports.store import Batch, MessageQuery, StoreError, StoreUnusable
from agent_relay.storage.postgres.store import PostgresStore
from agent_relay.storage.postgres.url import DatabaseUrl, read_url
from tests.support.cutting_proxy import CuttingProxy
from tests.support.postgres_server import ESCAPED_PASSWORD, PASSWORD, PostgresServer, fresh_schema, server
from tests.support.postgres_stores import fresh_url, opened
from tests.support.store_driver import StoreDriver, make_message, place_of, time_at

ROOT = Path(__file__).parents[2]


@pytest.fixture
def url() -> DatabaseUrl:
    return fresh_url()


class Load:
    """Writes batches one after the other, as the core does, and remembers what it was told of each."""

    def __init__(self, driver: StoreDriver) -> None:
        self._driver = driver
        self.place = 0
        self.stored: set[int] = set()
        self.refused: set[int] = set()

    def write(self, size: int = 3) -> bool:
        places = range(self.place + 1, self.place + size + 1)
        self.place += size
        batch = Batch(messages=[make_message(place, recipients=(("Bob", place),)) for place in places])
        outcome = self._driver.call(self._driver.store.write, batch)
        (self.stored if outcome is None else self.refused).update(places)
        return outcome is None

    def write_until_stored(self) -> None:
        deadline = time.monotonic() + 60
        while not self.write():
            assert time.monotonic() < deadline, self._driver.store.trouble
            wait_until(lambda: self._driver.store.trouble is None)

    def check(self, url: DatabaseUrl) -> None:
        """Every message it was told is stored is there once, and no other."""
        rows = server().psql(f"SELECT number, count(*), min(ts) FROM {url.schema}.messages GROUP BY number ORDER BY number")
        assert all(count == "1" for _, count, _ in rows)
        assert {(int(ts) - time_at(0)) // 1_000 for _, _, ts in rows} == self.stored
        ((counted,),) = server().psql(f"SELECT messages FROM {url.schema}.state")
        assert int(counted) == len(self.stored)


def wait_until(condition: object, seconds: float = 60.0) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def find_all(driver: StoreDriver) -> set[int]:
    """What is found once the reader has its connection again."""
    query = MessageQuery(limit=1_000)
    wait_until(lambda: not isinstance(driver.call(driver.store.find, query), StoreError))
    return set(driver.find(limit=1_000))


# --- the connection is lost -------------------------------------------------------------------------------------------


def test_connections_ended_at_any_moment_lose_and_double_nothing(url: DatabaseUrl) -> None:
    random.seed(7)
    with opened(url) as driver:
        load = Load(driver)
        pause = threading.Event()
        ended = 0

        def end_connections() -> None:
            nonlocal ended
            while ended < 60:
                pause.wait(random.random() * 0.02)
                ended += server().end_writers(url.schema)

        thread = threading.Thread(target=end_connections)
        thread.start()
        while thread.is_alive():
            load.write(random.choice((1, 3, 200)))
        thread.join()
        load.write_until_stored()
        assert len(load.stored) > 100
        load.check(url)
    with opened(url) as driver:
        assert {place_of(each.message) for each in driver.owed(limit=1_000_000)} == load.stored


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """One that may be stopped without disturbing other tests."""
    started = PostgresServer()
    yield started
    started.remove()


def test_a_server_that_restarts_in_the_middle_of_a_load_is_found_again(own_server: PostgresServer) -> None:
    url = read_url(own_server.url(fresh_schema()), "unused")
    with opened(url) as driver:
        load = Load(driver)
        for number in (signal.SIGINT, signal.SIGQUIT):
            for _ in range(20):
                assert load.write()
            own_server.stop(number)
            wait_until(lambda: "cannot be reached" in str(driver.store.trouble))
            assert driver.store.stats().problem
            assert not load.write()
            assert isinstance(driver.call(driver.store.find, MessageQuery()), StoreError)
            own_server.start()
            load.write_until_stored()
        assert driver.store.trouble is None
        assert driver.store.stats().problem == ""
        assert find_all(driver) == load.stored
        (pid,) = own_server.writer_pids(url.schema)
        os.kill(pid, signal.SIGKILL)  # then the server throws everybody out and recovers: the dead writer's lock ends with that
        load.write_until_stored()
        assert own_server.writer_pids(url.schema) not in ([], [pid])
        assert find_all(driver) == load.stored


@pytest.fixture
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CuttingProxy, DatabaseUrl]]:
    import tempfile

    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        proxy = CuttingProxy(Path(folder), server().folder)
        yield proxy, read_url(server().url(fresh_schema(), folder=Path(folder)), "unused")
        proxy.close()


def test_a_commit_whose_answer_was_lost_is_known_to_be_stored(proxied: tuple[CuttingProxy, DatabaseUrl]) -> None:
    proxy, url = proxied
    with opened(url) as driver:
        load = Load(driver)
        assert load.write()
        for place in range(5):
            proxy.cut_before_answer(lambda chunk: b"c-" in chunk)
            assert load.write()  # once, and not again: its number would be there already
            assert proxy.cuts == place + 1
        load.check(url)
        proxy.cut_before_answer(lambda chunk: b"B" in chunk)
        assert driver.prune(time_at(0)) == 0


def test_while_it_is_not_known_what_was_stored_nobody_is_told(proxied: tuple[CuttingProxy, DatabaseUrl]) -> None:
    proxy, url = proxied
    with opened(url) as driver:
        outcomes: list[StoreError | None] = []
        proxy.cut_before_answer(lambda chunk: b"c-1" in chunk)
        hidden = proxy.path.with_name("hidden")
        os.rename(proxy.path, hidden)  # nobody gets a new connection
        driver.store.write(Batch(messages=[make_message(1)]), outcomes.append)
        wait_until(lambda: driver.store.trouble is not None)
        assert "not yet known" in str(driver.store.trouble)
        answer = driver.call(driver.store.find, MessageQuery())
        assert isinstance(answer, StoreError) or answer.messages  # the reader may have had its connection before
        driver.run_ready()
        assert outcomes == []
        os.rename(hidden, proxy.path)
        driver.wait_until(lambda: outcomes)
        assert outcomes == [None]
        assert driver.store.trouble is None
        assert find_all(driver) == {1}


def test_a_store_that_closes_in_doubt_says_nothing(proxied: tuple[CuttingProxy, DatabaseUrl]) -> None:
    proxy, url = proxied
    driver = StoreDriver(lambda post: PostgresStore(url, post))
    driver.open()
    outcomes: list[StoreError | None] = []
    proxy.cut_before_answer(lambda chunk: b"c-1" in chunk)
    os.rename(proxy.path, proxy.path.with_name("hidden"))
    driver.store.write(Batch(messages=[make_message(1)]), outcomes.append)
    wait_until(lambda: driver.store.trouble is not None)
    driver.store.close()
    driver.run_ready()
    assert outcomes == []


# --- two of them ------------------------------------------------------------------------------------------------------


def test_a_second_store_is_refused_and_told_who_has_it(url: DatabaseUrl) -> None:
    with opened(url):
        with pytest.raises(StoreUnusable) as refusal:
            PostgresStore(url, lambda callback: None).open()
        assert f"process {os.getpid()}" in str(refusal.value)
        assert "agent-relay down" in str(refusal.value)
    with opened(url) as driver:
        driver.put(make_message(1))


def test_whoever_lost_its_place_never_writes_again_and_learns_what_was_stored(proxied: tuple[CuttingProxy, DatabaseUrl]) -> None:
    proxy, url = proxied
    direct = read_url(server().url(url.schema), "unused")
    first = StoreDriver(lambda post: PostgresStore(url, post))
    first.open()
    first.put(make_message(1))
    outcomes: list[StoreError | None] = []
    proxy.cut_before_answer(lambda chunk: b"c-2" in chunk)
    hidden = proxy.path.with_name("hidden")
    os.rename(proxy.path, hidden)
    first.store.write(Batch(messages=[make_message(2)]), outcomes.append)
    wait_until(lambda: first.store.trouble is not None)
    with opened(direct) as second:
        second.put(make_message(3))
        os.rename(hidden, proxy.path)
        first.wait_until(lambda: outcomes)
        assert outcomes == [None]  # it was stored before it lost its place
        wait_until(lambda: "taken over" in str(first.store.trouble))
        refusal = first.call(first.store.write, Batch(messages=[make_message(4)]))
        assert isinstance(refusal, StoreError)
        assert "taken over" in str(refusal)
        assert "taken over" in first.store.stats().problem
        assert second.find() == [3, 2, 1]
    first.store.close()


def test_a_change_of_an_earlier_generation_is_refused_by_the_database_itself(url: DatabaseUrl) -> None:
    for _ in range(2):
        with opened(url) as driver:
            driver.write(Batch(checkpoint=1))
    path = f"SET search_path = {url.schema}"
    with pytest.raises(AssertionError, match="another daemon writes this project"):
        server().psql(path, "SELECT erase_agent(1, 99, 'bob', 5)")
    server().psql(path, "SELECT erase_agent(2, 99, 'bob', 5)")


_HOLDER = """
import sys, time
from agent_relay.storage.postgres.store import PostgresStore
from agent_relay.storage.postgres.url import read_url
PostgresStore(read_url(sys.argv[1], "unused"), lambda callback: None).open()
print("open", flush=True)
time.sleep(600)
"""


def test_the_place_of_a_killed_process_is_taken_at_once() -> None:
    given = server().url(fresh_schema())
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, given], stdout=subprocess.PIPE, cwd=ROOT)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"open\n"
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with opened(read_url(given, "unused")) as driver:
        driver.put(make_message(1))


def test_two_that_start_at_once_make_the_schema_once(url: DatabaseUrl) -> None:
    outcomes: list[object] = []

    def start() -> None:
        store = PostgresStore(url, lambda callback: None)
        try:
            store.open()
        except StoreUnusable as refusal:
            outcomes.append(str(refusal))
        else:
            outcomes.append(store)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stores = [outcome for outcome in outcomes if isinstance(outcome, PostgresStore)]
    assert len(stores) == 1
    assert all("is in use" in str(outcome) for outcome in outcomes if outcome not in stores)
    stores[0].close()


# --- it cannot be opened ----------------------------------------------------------------------------------------------


def refused(text: str) -> str:
    with pytest.raises(StoreUnusable) as refusal:
        PostgresStore(read_url(text, "unused"), lambda callback: None).open()
    return str(refusal.value)


def test_a_wrong_password_is_named_and_never_shown() -> None:
    said = refused(server().url(fresh_schema(), "relay", "Sesame-open"))
    assert "refused the login" in said
    assert "Sesame" not in said


def test_a_user_with_a_password_and_its_own_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    url = read_url(server().url(fresh_schema(), "relay"), "unused")
    with opened(url) as driver:
        driver.put(make_message(1))
        assert PASSWORD not in driver.store.stats().location


@pytest.fixture
def server_with_tls() -> Iterator[tuple[PostgresServer, int]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = PostgresServer(listen_addresses="127.0.0.1,127.0.0.2", port=str(port), ssl="on")
    yield started, port
    started.remove()


def test_the_certificate_of_the_server_is_checked_as_the_url_says(server_with_tls: tuple[PostgresServer, int]) -> None:
    certificate = ROOT / "tests" / "data" / "tls" / "cert.pem"
    given = f"postgresql://relay:{ESCAPED_PASSWORD}@127.0.0.1:{server_with_tls[1]}/postgres?schema=encrypted&sslmode="
    with opened(read_url(f"{given}verify-full&sslrootcert={certificate}", "unused")) as driver:
        driver.put(make_message(1))
        query = "SELECT bool_and(s.ssl) FROM pg_stat_ssl AS s JOIN pg_stat_activity AS a USING (pid) WHERE a.usename = 'relay'"
        assert server_with_tls[0].psql(query) == [["t"]]
        assert "verify-full" in driver.store.stats().location
    elsewhere = given.replace("127.0.0.1", "127.0.0.2")  # which the certificate does not name
    said = refused(f"{elsewhere}verify-full&sslrootcert={certificate}")
    assert "no encrypted connection" in said
    assert ESCAPED_PASSWORD not in said
    assert "refused the login" in refused(f"{given}disable")  # the server takes nobody without


def test_an_absent_server_and_an_absent_database_are_named() -> None:
    assert "cannot be reached" in refused("postgresql://relay@/postgres?host=/tmp/there-is-none")
    assert "does not exist" in refused(server().url("x").replace("/postgres?", "/nowhere?"))


def test_a_newer_schema_and_that_of_another_program_are_refused(url: DatabaseUrl) -> None:
    with opened(url):
        pass
    server().psql(f"INSERT INTO {url.schema}.relay_migrations (version) VALUES (999)")
    with pytest.raises(StoreUnusable, match="newer version of Agent Relay"):
        PostgresStore(url, lambda callback: None).open()
    schema = fresh_schema()
    server().psql(f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.payroll (name text)")
    assert "another program" in refused(server().url(schema))


# --- removing -------------------------------------------------------------------------------------------------------


def test_whole_days_go_with_their_partition(url: DatabaseUrl) -> None:
    day = 86_400
    with opened(url) as driver:
        for start in range(3):
            rows = [make_message(start * day + place, "common") for place in range(1, 6)]
            driver.write(Batch(messages=rows, checkpoint=rows[-1].number))
        partitions = f"SELECT count(*) FROM {url.schema}.partition_days"
        assert server().psql(partitions) == [["3"]]
        assert driver.prune(time_at(2 * day), limit=2) == 5  # a day at a time costs no more than a few of its messages
        assert server().psql(partitions) == [["2"]]
        assert driver.prune(time_at(3 * day), limit=1_000) == 10
        assert driver.find(search="common") == []
        driver.put(make_message(1), make_message(4 * day))
        assert driver.find() == [4 * day, 1]
        assert driver.store.stats().messages == 2
