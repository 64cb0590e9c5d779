"""Small files of the user's own: private, whole, and never through a link."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

import pytest

from agent_relay.private_files import is_locked, read_private, replace_private


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "kept")


def test_what_is_replaced_is_read_again_and_nobody_else_may_read_it(path: str) -> None:
    assert read_private(path) is None
    for data in (b"one", b"another"):
        replace_private(path, data)
        assert read_private(path) == data
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert os.listdir(os.path.dirname(path)) == ["kept"]


def test_a_link_is_replaced_and_not_followed(path: str, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"theirs")
    os.symlink(theirs, path)
    assert read_private(path) is None
    assert not is_locked(path)
    replace_private(path, b"ours")
    assert (theirs.read_bytes(), read_private(path), os.path.islink(path)) == (b"theirs", b"ours", False)


def test_nothing_is_written_through_a_link_in_the_place_of_the_new_file(path: str, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"theirs")
    os.symlink(theirs, f"{path}.{os.getpid()}.tmp")
    with pytest.raises(OSError, match="symbolic"):
        replace_private(path, b"ours")
    assert theirs.read_bytes() == b"theirs"


def test_half_a_file_stays_nowhere(path: str) -> None:
    os.mkdir(path)  # so that the last step fails
    with pytest.raises(OSError, match="directory"):
        replace_private(path, b"content")
    assert os.listdir(os.path.dirname(path)) == ["kept"]


def test_a_lock_is_seen_for_as_long_as_somebody_holds_it(path: str) -> None:
    assert not is_locked(path)
    with open(path, "wb") as file:
        assert not is_locked(path)
        fcntl.flock(file, fcntl.LOCK_EX)
        assert is_locked(path)
    assert not is_locked(path)
