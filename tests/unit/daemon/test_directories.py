"""The daemon's place: private, ours, and held by one at a time, also between processes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agent_relay.daemon.directories import (
    AlreadyRunning,
    Lock,
    PlaceUnusable,
    make_private_directory,
    prepare_socket_directory,
    remove_file,
    write_private_file,
)
from agent_relay.protocol import places

HOLD = (
    "import sys\n"
    "from agent_relay.daemon.directories import AlreadyRunning, Lock\n"
    "try:\n"
    "    lock = Lock(sys.argv[1])\n"
    "except AlreadyRunning:\n"
    "    print('taken', flush=True)\n"
    "else:\n"
    "    print('held', flush=True)\n"
    "    if sys.stdin.readline() == 'release\\n':\n"
    "        lock.release()\n"
)


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


# --- directories ------------------------------------------------------------------------------------------------------


def test_a_directory_is_made_for_the_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "state"
    make_private_directory(str(path))
    assert mode(path) == 0o700
    make_private_directory(str(path))


@pytest.mark.parametrize("before", [0o777, 0o755, 0o750, 0o701])
def test_one_that_others_can_look_into_is_closed(tmp_path: Path, before: int) -> None:
    path = tmp_path / "state"
    path.mkdir()
    path.chmod(before)
    make_private_directory(str(path))
    assert mode(path) == 0o700


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text("precious")
    with pytest.raises(PlaceUnusable, match="is not a directory; move it away or choose another --state-dir"):
        make_private_directory(str(path))
    assert path.read_text() == "precious"


def test_a_file_above_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(PlaceUnusable, match="cannot be created"):
        make_private_directory(str(tmp_path / "file" / "state"))


def test_one_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(tmp_path).st_uid + 1)
    with pytest.raises(PlaceUnusable, match="belongs to another user"):
        make_private_directory(str(tmp_path))


def test_one_without_permission_to_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may always
    with pytest.raises(PlaceUnusable, match="chmod"):
        make_private_directory(str(tmp_path))


def test_the_socket_s_directory_is_made_private_and_an_existing_one_left_as_it_is(tmp_path: Path) -> None:
    prepare_socket_directory(str(tmp_path / "new" / "relay.sock"), os.geteuid())
    assert mode(tmp_path / "new") == 0o700
    tmp_path.chmod(0o755)
    prepare_socket_directory(str(tmp_path / "relay.sock"), os.geteuid())
    assert mode(tmp_path) == 0o755


@pytest.fixture
def short_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place for sockets whose own path is too long, moved away from the machine's real one."""
    monkeypatch.setattr(places, "short_socket_directory", lambda _uid: str(tmp_path / "short"))
    return tmp_path / "short"


def test_the_short_place_is_private_however_it_was(short_directory: Path) -> None:
    short_directory.mkdir()
    short_directory.chmod(0o777)
    prepare_socket_directory(str(short_directory / "id" / "relay.sock"), os.geteuid())
    assert (mode(short_directory), mode(short_directory / "id")) == (0o700, 0o700)


def test_a_link_in_the_short_place_is_not_followed(short_directory: Path, tmp_path: Path) -> None:
    (tmp_path / "trap").mkdir()
    short_directory.symlink_to(tmp_path / "trap")
    with pytest.raises(PlaceUnusable, match="is a link"):
        prepare_socket_directory(str(short_directory / "id" / "relay.sock"), os.geteuid())
    assert list((tmp_path / "trap").iterdir()) == []


# --- files --------------------------------------------------------------------------------------------------------------


def test_a_private_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "agents.json"
    path.write_text("x" * 10_000)
    path.chmod(0o644)
    write_private_file(str(path), "short\n")
    assert path.read_text() == "short\n"
    assert mode(path) == 0o600
    assert [found.name for found in tmp_path.iterdir()] == ["agents.json"]


def test_a_private_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_private_file(str(path), "before")
    with pytest.raises(UnicodeEncodeError):
        write_private_file(str(path), "\ud800")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "before"


def test_removing_what_is_not_there_is_fine(tmp_path: Path) -> None:
    remove_file(str(tmp_path / "nothing"))


# --- locks --------------------------------------------------------------------------------------------------------------


class Holder:
    """Another process that tries to take the lock."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.said = self._process.stdout.readline().strip()

    def end(self, how: str) -> None:
        assert self._process.stdin is not None
        if how == "kill":
            self._process.kill()
        else:
            self._process.stdin.write("release\n" if how == "release" else "exit\n")
        self._process.communicate(timeout=30)


@pytest.mark.parametrize("how", ["release", "exit", "kill"])
def test_a_lock_is_held_by_one_process_and_free_however_it_ends(tmp_path: Path, how: str) -> None:
    path = tmp_path / "relay.lock"
    holder = Holder(path)
    try:
        assert holder.said == "held"
        with pytest.raises(AlreadyRunning, match="Another daemon is running with"):
            Lock(str(path))
    finally:
        holder.end(how)
    assert path.exists() is (how != "release")
    lock = Lock(str(path))
    other = Holder(path)
    other.end("exit")
    assert other.said == "taken"
    lock.release()
    assert not path.exists()


def test_a_lock_on_a_file_that_was_removed_meanwhile_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between our opening the file and our locking it, its holder removed it: the name stands for another file by then."""
    path = tmp_path / "relay.lock"
    path.touch()
    opened: list[int] = []
    real_open = os.open

    def open_and_lose(name: str, *arguments: int) -> int:
        descriptor = real_open(name, *arguments)
        opened.append(descriptor)
        if len(opened) == 1:
            os.unlink(path)
        return descriptor

    monkeypatch.setattr(os, "open", open_and_lose)
    lock = Lock(str(path))
    monkeypatch.undo()
    assert len(opened) == 2
    with pytest.raises(AlreadyRunning):
        Lock(str(path))
    lock.release()


def test_of_many_who_race_for_it_one_holds_it_at_a_time(tmp_path: Path) -> None:
    path, holding, most, rounds = str(tmp_path / "relay.lock"), [0], [0], 200
    guard = threading.Lock()

    def race() -> None:
        for _ in range(rounds):
            try:
                lock = Lock(path)
            except AlreadyRunning:
                continue
            with guard:
                holding[0] += 1
                most[0] = max(most[0], holding[0])
            with guard:
                holding[0] -= 1
            lock.release()

    threads = [threading.Thread(target=race) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1


def test_a_link_is_not_locked_through(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    (tmp_path / "relay.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(PlaceUnusable, match="cannot be opened"):
        Lock(str(tmp_path / "relay.lock"))


def test_a_lock_in_a_place_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(PlaceUnusable, match="cannot be opened: No such file"):
        Lock(str(tmp_path / "nowhere" / "relay.lock"))


def test_a_shared_directory_with_other_things_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    (shared / "somebody's").write_text("things")
    with pytest.raises(PlaceUnusable, match="open to other users"):
        make_private_directory(str(shared))
    assert shared.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["", "daemon.log"])
def test_an_empty_directory_or_one_of_ours_is_closed_to_others(tmp_path: Path, name: str) -> None:
    place = tmp_path / "state"
    place.mkdir()
    place.chmod(0o755)
    if name:
        (place / name).write_text("")
    make_private_directory(str(place))
    assert place.stat().st_mode & 0o777 == 0o700
