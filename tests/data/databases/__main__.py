"""Makes `v<schema>-closed` and `v<schema>-killed` with the code that is checked out; see `__init__`."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from agent_relay.storage.sqlite.migrate import newest_version
from agent_relay.storage.sqlite.store import SqliteStore
from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient
from tests.data.databases import HERE, NAME

LONG = {"ttl_ms": 100 * 365 * 86_400_000}  # still owed whenever the test runs
_OLD_S = 3.0  # older than this an open message is in the backlog


class Story:
    """What happens before the database is taken; `tokens`, `stored` and `owed` are what a test can hold it to."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self._daemon = daemon
        self.tokens: dict[str, str] = {}
        self.stored: dict[str, list[str]] = {}  # client id, message id and body, by sender
        self.owed: dict[str, list[list[Any]]] = {}  # recipient: sender, topic, number and body, in order
        self._clients: dict[str, RawClient] = {}

    def join(self, name: str) -> RawClient:
        client = RawClient(self._daemon.socket)
        client.hello(name, token=self.tokens.get(name))
        client.flush()
        self.tokens[name] = client.token
        self._clients[name] = client
        return client

    def leave(self, name: str) -> None:
        self._clients.pop(name).close()

    def send(self, sender: str, to: Any, body: str, owed_to: tuple[tuple[str, int], ...] = (), **options: Any) -> None:
        options.setdefault("meta", LONG)
        frame = self._clients[sender].message(to, body, **options)
        self._clients[sender].write_frame(frame)
        receipt = self._clients[sender].stored(frame["id"])
        self.stored.setdefault(sender, []).append([frame["id"], receipt["message_id"], body])
        for name, seq in owed_to:
            self.owed.setdefault(name, []).append([sender, options.get("topic", ""), seq, body])

    def begin(self) -> None:
        alice, bob, carol = self.join("Alice"), self.join("Bob"), self.join("Carol")
        self.join("Dan")
        self.leave("Dan")
        for client in (bob, carol):
            client.request("SUBSCRIBE", {"topic": "build.*"})
            client.request("CHANNEL_JOIN", {"channel": "#dev"})
        alice.request("CHANNEL_JOIN", {"channel": "#dev"})
        for number in range(1, 7):
            self.send("Alice", "Bob", f"number {number}", ((("Bob", number),) if number in {4, 6} else ()))
        delivers = bob.deliveries(6, ack=False)
        for place in (0, 1, 2, 4):
            bob.ack(delivers[place])
        self.send("Alice", "Carol", "refused")
        carol.nack(carol.deliveries(1, ack=False)[0], "REJECTED")
        self.send("Bob", "Alice", "in a thread, acknowledged", payload={"thread": "t-1"})
        alice.deliveries(1)
        self.send("Bob", "#dev", "to the channel", (("Carol", 1),))
        alice.deliveries(1)
        self.send("Alice", None, "to the topic", (("Bob", 1), ("Carol", 1)), topic="build.done")
        self.send("Alice", "Dan", "kept for Dan", (("Dan", 1),))
        self.send("Alice", "Dan", "never read", meta={"ttl_ms": 1})
        self.send("Alice", "Dan", "x" * 9_000, (("Dan", 3),))
        self._wait_for_the_dead()
        time.sleep(_OLD_S)  # what is open by now moves to the backlog with the next write

    def end(self) -> None:
        """After a restart: what came before is in the database itself, and this, if it is killed now, in the WAL alone."""
        self.join("Alice")
        self.join("Carol").deliveries(2, ack=False)  # tokens are spent; what is owed comes again
        self.send("Carol", "Dan", "the newest", (("Dan", 1),))
        self.send("Carol", "*", "to all who are here", (("Alice", 1),))
        self._clients["Carol"].flush()
        time.sleep(1.0)  # cursors and trails follow within 200 ms

    def _wait_for_the_dead(self) -> None:
        deadline = time.monotonic() + 20
        while not self._clients["Alice"].request("HISTORY", {"view": "dead_letters"})["messages"]:
            if time.monotonic() > deadline:
                raise AssertionError("nothing died")
            time.sleep(0.05)

    def go(self) -> None:
        for name in list(self._clients):
            self.leave(name)


def make(which: str, *, is_killed: bool) -> None:
    target = HERE / which
    target.mkdir()
    with DaemonProcess("--heartbeat-ms=60s", "--ack-timeout-ms=60s") as daemon:
        story = Story(daemon)
        story.begin()
        daemon.terminate()
        story.go()
        daemon.start()
        story.end()
        daemon.kill() if is_killed else daemon.terminate()
        story.go()
        read = _read(daemon.state_dir)
        for file in daemon.state_dir.glob(f"{NAME}*"):
            if not file.name.endswith("-shm"):
                (target / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))
    said = {"uid": os.geteuid(), "tokens": story.tokens, "stored": story.stored, "owed": story.owed, "snapshot": read}
    (target / "said.json").write_text(json.dumps(said, indent=1) + "\n")


def _read(state_dir: Path) -> Any:
    """What this release finds at a start, from a copy: reading changes the files."""
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(state_dir, Path(copy) / "state", ignore=shutil.ignore_patterns("*.sock", "*-shm"))
        store = SqliteStore(Path(copy) / "state" / NAME, lambda callback: callback())
        snapshot = store.open()
        store.close()
        return msgspec.to_builtins(snapshot)


if __name__ == "__main__":
    for ending in ("closed", "killed"):
        if (HERE / f"v{newest_version()}-{ending}").exists():
            sys.exit(f"v{newest_version()}-{ending} is there; it was made by the release that had this schema, and is kept.")
        make(f"v{newest_version()}-{ending}", is_killed=ending == "killed")
