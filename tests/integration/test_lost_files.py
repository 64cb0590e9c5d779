"""Files that are deleted, replaced, cut or shared: `stored` is only said of what the next start will find."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.ports.store import Batch, Snapshot, StoreUnusable
from agent_relay.protocol.places import LOG_FILE
from agent_relay.storage.sqlite.store import SqliteStore
from agent_relay.testing.daemon import DaemonFailed, DaemonProcess
from agent_relay.testing.raw_client import RawClient
from tests.integration.test_failing_disk import Scene, wait_until
from tests.support.store_driver import StoreDriver, make_message, make_stream, number_at

DATABASE = "messages.sqlite"


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.close()


def problem(scene: Scene) -> str:
    return str(scene.status()["storage"]["problem"])


def take_the_database(scene: Scene) -> None:
    (scene.daemon.state_dir / DATABASE).unlink()


def take_everything(scene: Scene) -> None:
    for file in scene.daemon.state_dir.glob(f"{DATABASE}*"):
        file.unlink()


def replace_the_database(scene: Scene) -> None:
    copy = scene.daemon.directory / "copy"
    shutil.copy(scene.daemon.state_dir / DATABASE, copy)
    copy.rename(scene.daemon.state_dir / DATABASE)


# --- under a running daemon


@pytest.mark.parametrize("act", [take_the_database, take_everything, replace_the_database])
def test_a_database_that_is_gone_is_noticed_and_what_was_in_it_is_saved(scene: Scene, act: object) -> None:
    for _ in range(5):
        scene.say()
    assert callable(act)
    act(scene)
    scene.send()
    wait_until(lambda: "deleted or replaced" in problem(scene), "nobody noticed")
    rescued = scene.daemon.state_dir / f"{DATABASE}.rescued"
    assert str(rescued) in problem(scene)
    assert scene.answer(scene.send()) == "NACK"
    assert len(scene.alice.request("HISTORY", {"limit": 10})["messages"]) >= 5  # reads go on
    assert "saved in" in scene.command("status")[1]
    assert scene.command("doctor")[0] == 1
    assert scene.daemon.terminate() == 0
    for ending in ("", "-wal", "-shm"):
        (scene.daemon.state_dir / f"{DATABASE}{ending}").unlink(missing_ok=True)
    rescued.rename(scene.daemon.state_dir / DATABASE)
    scene.restart()
    assert not scene.status()["storage"]["lost"]
    scene.repeat_unanswered()
    scene.check()


def test_a_wal_that_is_gone_is_noticed_and_nothing_is_lost(scene: Scene) -> None:
    for _ in range(5):
        scene.say()
    (scene.daemon.state_dir / f"{DATABASE}-wal").unlink()
    scene.send()
    wait_until(lambda: "restart the daemon" in problem(scene), "nobody noticed")
    assert scene.answer(scene.send()) == "NACK"
    scene.restart()
    assert not scene.status()["storage"]["lost"]
    scene.repeat_unanswered()
    scene.check()


def test_files_that_come_back_are_gone_on_with(scene: Scene) -> None:
    scene.say()
    away = scene.daemon.directory / "away"
    away.mkdir()
    names = [f"{DATABASE}{ending}" for ending in ("", "-wal", "-shm")]
    for name in names:
        (scene.daemon.state_dir / name).rename(away / name)
    scene.send()
    wait_until(lambda: "deleted or replaced" in problem(scene), "nobody noticed")
    for name in names:
        (away / name).rename(scene.daemon.state_dir / name)
    wait_until(lambda: not problem(scene), "it does not go on")
    scene.answer(next(iter(scene.unanswered)))
    assert scene.say() == "ACK"
    scene.restart()
    scene.check()


# --- one daemon to a database


def test_two_daemons_do_not_share_a_database(scene: Scene, tmp_path: Path) -> None:
    path = scene.daemon.state_dir / DATABASE
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    for storage in (path, link):
        other = DaemonProcess(f"--storage-path={storage}")
        try:
            with pytest.raises(DaemonFailed, match="is in use by another daemon"):
                other.start()
        finally:
            other.remove()
    assert scene.say() == "ACK"
    scene.check()


@pytest.mark.parametrize("storage", ["sqlite", "memory"])
def test_a_lock_file_that_is_removed_lets_no_second_daemon_in(storage: str) -> None:
    with DaemonProcess(f"--storage={storage}") as first:
        (first.state_dir / "relay.lock").unlink()
        second = DaemonProcess(f"--storage={storage}", directory=first.directory)
        where = ["--socket", f"{first.directory}/other.sock", "--state-dir", str(first.state_dir), *second.flags]
        ended = subprocess.run([*second.command, *where], capture_output=True, text=True, check=False, timeout=60)
        assert ended.returncode == 1
        assert "Another daemon is running with" in ended.stderr
        with RawClient(first.socket) as alice:
            alice.hello("Alice")


def test_the_lock_goes_with_the_process(tmp_path: Path) -> None:
    with DaemonProcess(directory=tmp_path) as daemon:
        daemon.kill()
        daemon.start()
        assert daemon.terminate() == 0
        daemon.start()


# --- while no daemon ran


def make_database(path: Path, *, closed: bool) -> StoreDriver:
    """200 messages, of which the first half is in the database itself and, if it is not closed, the rest in the WAL alone."""
    driver = StoreDriver(lambda post: SqliteStore(path, post))
    driver.open()
    streams = [make_stream("Alice", "Bob")]
    for place in range(1, 101):
        driver.write(Batch(messages=[make_message(place, "x" * 900, recipients=[("Bob", place)])], streams=streams))
    driver.store.close()
    driver.replace_store()
    driver.open()
    for place in range(101, 201):
        driver.put(make_message(place, "x" * 900, recipients=[("Bob", place)]))
    if closed:
        driver.store.close()
    return driver


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The files as kill -9 leaves them."""
    (tmp_path / "running").mkdir()
    driver = make_database(tmp_path / "running" / DATABASE, closed=False)
    target = tmp_path / "state"
    shutil.copytree(tmp_path / "running", target, ignore=shutil.ignore_patterns("*-shm"))
    driver.store.close()
    return target / DATABASE


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    make_database(tmp_path / DATABASE, closed=True)
    return tmp_path / DATABASE


def open_once(path: Path) -> tuple[Snapshot, str]:
    snapshot, _, lost = open_and_read(path)
    return snapshot, lost


def open_and_read(path: Path) -> tuple[Snapshot, list[int], str]:
    """What a start finds, the places of the messages, and what is said to be lost."""
    driver = StoreDriver(lambda post: SqliteStore(path, post))
    snapshot = driver.open()
    places = sorted(driver.find(limit=1_000))
    lost = driver.store.stats().lost
    driver.store.close()
    return snapshot, places, lost


def wal_of(path: Path) -> Path:
    return Path(f"{path}-wal")


def test_nothing_is_said_when_nothing_is_missing(killed: Path) -> None:
    snapshot, places, lost = open_and_read(killed)
    assert (len(places), lost, snapshot.first_seq) == (200, "", 0)


@pytest.mark.parametrize("keep", [0.0, 0.2, 0.5, 0.9, 0.99])
def test_a_wal_that_was_cut_is_told(killed: Path, keep: float) -> None:
    os.truncate(wal_of(killed), int(wal_of(killed).stat().st_size * keep))
    check_told(killed)


@pytest.mark.parametrize("at", [0.0, 0.3, 0.6, 0.95])
def test_a_wal_that_was_garbled_is_told(killed: Path, at: float) -> None:
    with wal_of(killed).open("r+b") as file:
        file.seek(int(wal_of(killed).stat().st_size * at))
        file.write(random.Random(1).randbytes(100))
    check_told(killed)


def test_a_wal_that_was_deleted_is_told(killed: Path) -> None:
    wal_of(killed).unlink()
    check_told(killed, there=100)


def test_a_database_that_was_deleted_is_told(closed: Path) -> None:
    closed.unlink()
    snapshot, places, lost = open_and_read(closed)
    assert places == []
    assert "200 messages are missing" in lost
    assert snapshot.first_seq == 200
    assert snapshot.last_number == number_at(200)


def test_an_older_copy_is_told(closed: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copy(closed, copy)
    driver = StoreDriver(lambda post: SqliteStore(closed, post))
    driver.open()
    driver.put(*(make_message(place, recipients=[("Bob", place)]) for place in range(201, 231)))
    driver.store.close()
    copy.rename(closed)
    _, lost = open_once(closed)
    assert "30 messages are missing" in lost


def check_told(path: Path, there: int | None = None) -> None:
    snapshot, places, lost = open_and_read(path)
    assert places == list(range(1, len(places) + 1))
    assert 100 <= len(places) < 200
    assert there is None or len(places) == there
    missing = 200 - len(places)
    assert f"{missing} messages are missing from {path}" in lost
    assert f"remove {path}-lost" in lost
    (stream,) = snapshot.streams
    assert stream.last_seq == 200  # what was given out before is given to nobody else
    assert (snapshot.first_seq, snapshot.last_number) == (missing, number_at(200))
    again, still = open_once(path)
    assert (again.first_seq, still) == (missing, lost)  # said until somebody has seen to it, and skipped once
    Path(f"{path}-lost").unlink()
    assert open_once(path)[1] == ""


def test_a_wal_without_its_database_is_refused_and_kept(killed: Path) -> None:
    for damage in (killed.unlink, killed.touch):
        damage()
        before = wal_of(killed).read_bytes()
        with pytest.raises(StoreUnusable, match=r"is missing or empty.*Restore"):
            open_once(killed)
        assert wal_of(killed).read_bytes() == before


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_a_database_that_was_cut_beside_its_wal_is_refused(killed: Path, keep: float) -> None:
    os.truncate(killed, int(killed.stat().st_size * keep))
    with pytest.raises(StoreUnusable, match=r"is damaged .*Restore"):
        open_once(killed)


def test_a_lost_acknowledgement_is_told_though_no_message_is(tmp_path: Path) -> None:
    path = tmp_path / DATABASE
    driver = StoreDriver(lambda post: SqliteStore(path, post))
    driver.open()
    driver.put(make_message(1))
    driver.store.close()
    copy = tmp_path / "copy"
    shutil.copy(path, copy)
    driver.replace_store()
    driver.open()
    driver.write(Batch(streams=[make_stream("Alice", "Bob")]))
    driver.store.close()
    copy.rename(path)
    snapshot, lost = open_once(path)
    assert "Acknowledgements and other changes" in lost
    assert snapshot.first_seq == 0


def test_a_daemon_starts_loudly_with_less_and_gives_out_no_number_twice(scene: Scene) -> None:
    wal = wal_of(scene.daemon.state_dir / DATABASE)
    for _ in range(3):
        scene.say()
    size = wal.stat().st_size
    for _ in range(3):
        scene.say()
    numbers = [frame["delivery"]["seq"] for frame in scene.bob.deliveries(6)]
    scene.alice.close()
    scene.bob.close()
    scene.daemon.kill()
    os.truncate(wal, size)
    scene.daemon.start()
    lost = scene.status()["storage"]["lost"]
    assert "3 messages are missing from" in lost
    code, said = scene.command("status")
    assert (code, lost in said) == (0, True), said
    code, said = scene.command("doctor")
    assert (code, "missing from" in said) == (1, True), said
    assert "missing from" in (scene.daemon.state_dir / LOG_FILE).read_text()
    with RawClient(scene.daemon.socket) as alice, RawClient(scene.daemon.socket) as bob:
        for name, client in (("Alice", alice), ("Bob", bob)):
            if client.greet(name, token=scene.tokens[name])["type"] != "WELCOME":  # who came is among what is lost, too
                pytest.fail(f"{name} is refused")
        alice.send_stored("Bob", "after")
        while (frame := bob.deliveries(1)[0])["payload"]["body"] != "after":
            assert frame["delivery"]["seq"] in numbers
        assert frame["delivery"]["seq"] > max(numbers)
        assert frame["delivery"]["prev_seq"] <= max(numbers)


def test_sqlite_keeps_its_own_locks_beside_ours(closed: Path) -> None:
    driver = StoreDriver(lambda post: SqliteStore(closed, post))
    driver.open()
    other = sqlite3.connect(closed, isolation_level=None, timeout=0)
    other.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
    other.close()
    driver.put(make_message(300))
    with pytest.raises(StoreUnusable, match="is in use by another daemon"):
        SqliteStore(closed, lambda callback: callback()).open()
    driver.put(make_message(301))
    driver.store.close()
