"""A database of an earlier release is brought to today's schema: nothing is lost, whatever happens on the way."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_relay.interpreter import run_module
from agent_relay.ports.store import Snapshot
from agent_relay.protocol.places import ENV_HOME
from agent_relay.protocol.ulid import number_of
from agent_relay.storage.sqlite import backup
from agent_relay.storage.sqlite.migrate import migrations, newest_version
from agent_relay.storage.sqlite.store import SqliteStore
from agent_relay.testing.daemon import DaemonFailed, DaemonProcess
from tests.data.databases import read_said, unpack
from tests.faults import Faults
from tests.support.store_driver import StoreDriver
from tests.support.upgrades import check_goes_on

ROOT = Path(__file__).parents[2]
RELEASES = ["v1-closed", "v1-killed", "v2-closed", "v2-killed"]
OLDEST = RELEASES[:2]  # go through every migration there is
DAY = "36500d"

_OPEN = """
import os, signal, sys
from pathlib import Path
from agent_relay.storage.sqlite import store as module
from agent_relay.storage.sqlite.store import SqliteStore
from agent_relay.ports.store import StoreUnusable

die_at = int(sys.argv[2])
apply = module.apply_migrations
seen = 0

def count(statement):
    global seen
    seen += 1
    if seen == die_at:
        os.kill(os.getpid(), signal.SIGKILL)

def apply_and_die(connection):
    connection.set_trace_callback(count)
    apply(connection)
    connection.set_trace_callback(None)

module.apply_migrations = apply_and_die
store = SqliteStore(Path(sys.argv[1]), lambda callback: None)
try:
    store.open()
except StoreUnusable as error:
    print(error)
    sys.exit(1)
store.close()
print(seen)
"""


def open_elsewhere(path: Path, faults: Faults, die_at: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _OPEN, str(path), str(die_at)]
    return subprocess.run(
        command, env=os.environ | faults.environ, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT
    )


def open_once(path: Path) -> Snapshot:
    driver = StoreDriver(lambda post: SqliteStore(path, post))
    snapshot = driver.open()
    driver.store.close()
    return snapshot


def owed_then(said: dict[str, Any]) -> list[tuple[int, str, int]]:
    """(number, recipient, seq) of what a release with the first schema would have delivered."""
    streams = {(row["topic"], row["sender"], row["recipient"]): row for row in said["streams"]}
    found = []
    for message in said["open_messages"]:
        for name, seq in message["recipients"]:
            stream = streams.get((message["topic"], message["sender"], name), {"done_seq": 0, "done_above": []})
            if seq > stream["done_seq"] and seq not in stream["done_above"]:
                found.append((message["number"], name, seq))
    return sorted(found)


def check_whole(which: str, path: Path) -> None:
    """Everything is there that the release itself read from it."""
    said = read_said(which)["snapshot"]
    driver = StoreDriver(lambda post: SqliteStore(path, post))
    found = json.loads(msgspec.json.encode(driver.open()))
    for name in ("agents", "spent_tokens", "subscriptions", "members", "last_number"):
        assert found[name] == said[name], name
    letters = sorted((letter for letter, _ in driver.dead_letters()), key=lambda letter: (letter.at, letter.number))
    assert json.loads(msgspec.json.encode(letters)) == said["dead_letters"]
    assert found["dead_letters"] == len(letters)
    streams = {(row["topic"], row["sender"], row["recipient"]): row for row in found["streams"]}
    for row in said["streams"]:
        now = streams[row["topic"], row["sender"], row["recipient"]]
        assert now | {"last_seq": row["last_seq"]} == row
        assert now["last_seq"] >= row["last_seq"]
    if "open_messages" in said:
        assert [(owed.message.number, owed.recipient, owed.seq) for owed in driver.owed()] == owed_then(said)
        bodies = {row["number"]: row["tail"] for row in said["open_messages"]}
        assert all(base64.b64encode(owed.message.tail).decode() == bodies[owed.message.number] for owed in driver.owed())
        for sender in {row["sender"] for row in said["seen_ids"]}:
            ids = {row["client_id"]: row["number"] for row in said["seen_ids"] if row["sender"] == sender}
            assert driver.seen(sender) == ids
    else:
        assert found["waiting"] == said["waiting"]
        for sender, stored in read_said(which)["stored"].items():
            ids = {client_id: number_of(message_id.removeprefix("msg_")) for client_id, message_id, _ in stored}
            assert driver.seen(sender) == ids
    assert found["documents"] == {}
    driver.store.close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == newest_version()
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def owner_of(path: Path, which: str) -> None:
    """Names belong to users; whoever runs this takes the place of who made the database."""
    if read_said(which)["uid"] != os.geteuid():
        connection = sqlite3.connect(path)
        connection.execute("UPDATE agents SET uid = ?", (os.geteuid(),))
        connection.commit()
        connection.close()


@pytest.mark.parametrize("which", RELEASES)
def test_nothing_is_lost(which: str, tmp_path: Path) -> None:
    path = unpack(which, tmp_path / "state")
    check_whole(which, path)
    check_whole(which, path)  # and again: it was upgraded once


@pytest.mark.parametrize("which", RELEASES)
def test_what_was_owed_is_delivered_and_numbers_go_on(which: str, tmp_path: Path) -> None:
    owner_of(unpack(which, tmp_path / "state"), which)
    with DaemonProcess(f"--resume-ttl={DAY}", f"--message-retention={DAY}", directory=tmp_path) as daemon:
        check_goes_on(daemon, read_said(which))


@pytest.mark.parametrize("which", RELEASES)
def test_a_kill_at_every_statement_of_it(which: str, tmp_path: Path) -> None:
    faults = Faults(tmp_path)
    die_at, ended = 1, -9
    while ended == -9:
        path = unpack(which, tmp_path / f"state-{die_at}")
        ended = open_elsewhere(path, faults, die_at).returncode
        check_whole(which, path)
        die_at += 1
    assert ended == 0
    assert die_at > 4  # BEGIN, what the migration does, its marks, COMMIT


@pytest.mark.parametrize("fate", ["KILL", "DIE", "HALF", "ENOSPC", "EIO"])
@pytest.mark.parametrize("which", OLDEST)
def test_a_disk_that_fails_at_every_write_of_it(which: str, fate: str, tmp_path: Path) -> None:
    for call in ("pwrite", "fdatasync"):
        for skip in range(100):
            folder = tmp_path / f"{call}-{skip}"
            path = unpack(which, folder / "state")
            faults = Faults(folder)
            faults.set(f"{call} {fate} -wal 1 {skip}")
            ended = open_elsewhere(path, faults)
            if not faults.log:
                break
            if ended.returncode == 1:
                assert ("is full" if (call, fate) == ("pwrite", "ENOSPC") else "cannot be used") in ended.stdout, ended.stdout
            faults.clear()
            check_whole(which, path)
        else:
            pytest.fail("there is no end of it")


def test_a_copy_is_kept_for_a_week_and_goes_with_who_is_erased(tmp_path: Path) -> None:
    path = unpack("v1-killed", tmp_path / "state")
    driver = StoreDriver(lambda post: SqliteStore(path, post))
    driver.open()
    copy = Path(f"{path}.before-schema-{newest_version()}")
    connection = sqlite3.connect(copy)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert connection.execute("SELECT count(*) FROM messages").fetchone() == (
        len(read_said("v1-killed")["snapshot"]["seen_ids"]),
    )
    connection.close()
    assert copy.stat().st_mode & 0o777 == 0o600
    driver.erase("Dan")
    assert not copy.exists()
    driver.store.close()
    copy.touch()
    open_once(path)
    assert copy.exists()
    os.utime(copy, (1, 1))
    open_once(path)
    assert not copy.exists()


def test_without_room_for_a_copy_it_is_upgraded_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "_LARGEST_BYTES", 10)
    path = unpack("v1-closed", tmp_path / "state")
    check_whole("v1-closed", path)
    assert not list(path.parent.glob("*.before-schema*"))


def test_an_older_daemon_says_that_the_database_is_newer(tmp_path: Path) -> None:
    daemon = DaemonProcess(directory=tmp_path)
    daemon.start()
    assert daemon.terminate() == 0
    connection = sqlite3.connect(daemon.state_dir / "messages.sqlite")
    connection.execute(f"PRAGMA user_version = {newest_version() + 1}")
    connection.close()
    with pytest.raises(DaemonFailed, match=r"was written by a newer version of agent-relay.*Upgrade agent-relay"):
        daemon.start()
    environ = os.environ | {ENV_HOME: str(tmp_path / "home"), "COLUMNS": "1000"}
    for words, expected in ((["up"], 1), (["doctor"], 1)):
        where = ["--socket", daemon.socket, "--state-dir", str(daemon.state_dir)]
        ended = subprocess.run(
            [*run_module("agent_relay"), *words, *where], env=environ, capture_output=True, text=True, check=False, timeout=60
        )
        assert ended.returncode == expected
        assert "was written by a newer version of agent-relay" in ended.stdout + ended.stderr


def test_every_migration_but_the_first_has_a_database_it_was_tried_with() -> None:
    assert {f"v{version - 1}-killed" for version, _ in migrations() if version > 1} <= {
        folder.name for folder in (ROOT / "tests" / "data" / "databases").iterdir()
    }
