"""`python -m bench.stores`: messages per second into each kind of store, in batches, side by side.

PostgreSQL is a temporary cluster on this machine and a Unix socket, with fsync on: what is compared is the stores, not two disks.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from agent_relay.ports.store import Batch, MessageStore
from agent_relay.storage.memory import MemoryStore
from agent_relay.storage.postgres.store import PostgresStore
from agent_relay.storage.postgres.url import read_url
from agent_relay.storage.sqlite.store import SqliteStore
from tests.support.postgres_server import PostgresServer, fresh_schema
from tests.support.store_driver import Post, StoreDriver, make_message

_BODY = "please review src/auth.py before the release, the token is refreshed twice " * 2
_UNDER_WAY = 2  # batches: one is written while the next gathers, as in the daemon


def measure(make: Callable[[Post], MessageStore], batches: int, size: int) -> float:
    """Messages per second, durable."""
    driver = StoreDriver(make)
    driver.open()
    rows = [
        [make_message(number * size + place, _BODY, recipients=(("Bob", number * size + place),)) for place in range(1, size + 1)]
        for number in range(batches)
    ]
    outcomes: list[object] = []
    began = time.perf_counter()
    for number, messages in enumerate(rows):
        driver.store.write(Batch(messages=messages), outcomes.append)
        driver.wait_until(lambda number=number: len(outcomes) > number - _UNDER_WAY)  # type: ignore[misc]
    driver.wait_until(lambda: len(outcomes) == batches)
    took_s = time.perf_counter() - began
    assert outcomes == [None] * batches
    driver.store.close()
    return batches * size / took_s


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.stores", description=__doc__)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--size", type=int, default=256, help="messages per batch")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    server = PostgresServer(fsync="on")
    found: dict[str, list[float]] = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number in range(options.rounds):  # in turn, so that whatever else the machine does hits all of them
                path, url = Path(folder) / f"{number}.sqlite", read_url(server.url(fresh_schema()), "unused")
                kinds: dict[str, Callable[[Post], MessageStore]] = {
                    "memory": MemoryStore,
                    "sqlite": lambda post, path=path: SqliteStore(path, post),  # type: ignore[misc]
                    "postgres": lambda post, url=url: PostgresStore(url, post),  # type: ignore[misc]
                }
                for name, make in kinds.items():
                    found.setdefault(name, []).append(measure(make, options.batches, options.size))
    finally:
        server.remove()
    middle = {name: statistics.median(rates) for name, rates in found.items()}
    for name, rate in middle.items():
        print(f"{name:<10}{rate:>10,.0f} messages/s  {rate / middle['sqlite']:.2f} of sqlite")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
