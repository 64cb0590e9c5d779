from __future__ import annotations

import gzip
import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_relay.storage.sqlite import transfer
from agent_relay.storage.sqlite.migrate import apply_migrations
from agent_relay.storage.sqlite.rows import read_meta, write_place
from agent_relay.storage.sqlite.transfer import CopyRefused, IncomingCopy, PreparedCopy, prepare_copy, read_piece


def make_database(path: Path, position: int) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    apply_migrations(connection)
    write_place(connection, position=position)
    return connection


def take(copy: PreparedCopy, database: Path, *, sha256: str = "", position: int | None = None) -> IncomingCopy:
    incoming = IncomingCopy(
        database, copy.size, copy.raw_bytes, sha256 or copy.sha256, copy.position if position is None else position
    )  # fmt: skip
    for offset in range(0, copy.size, 1_000):
        incoming.write(read_piece(copy, offset, 1_000))
    return incoming


def test_a_database_in_use_arrives_as_it_was_at_one_moment(tmp_path: Path) -> None:
    with closing(make_database(tmp_path / "there.sqlite", 41)) as giver:
        copy = prepare_copy(tmp_path / "there.sqlite", tmp_path / "copy")
        write_place(giver, position=42)  # after it
        assert copy.path.stat().st_mode & 0o777 == 0o600
        here = tmp_path / "here.sqlite"
        make_database(here, 3).close()
        incoming = take(copy, here)
        incoming.check()
        incoming.put_in_place()
    with closing(sqlite3.connect(here)) as found:
        assert read_meta(found)["position"] == 41
    assert here.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir() if "incoming" in path.name) == []


def test_what_arrives_damaged_or_is_of_another_moment_is_not_used(tmp_path: Path) -> None:
    make_database(tmp_path / "there.sqlite", 41).close()
    copy = prepare_copy(tmp_path / "there.sqlite", tmp_path / "copy")
    with pytest.raises(CopyRefused, match="damaged"):
        take(copy, tmp_path / "here.sqlite", sha256="0" * 64).check()
    with pytest.raises(CopyRefused, match="another moment"):
        take(copy, tmp_path / "here.sqlite", position=40).check()
    half = IncomingCopy(tmp_path / "here.sqlite", copy.size, copy.raw_bytes, copy.sha256, copy.position)
    half.write(read_piece(copy, 0, copy.size // 2))
    with pytest.raises(CopyRefused, match="not whole"):
        half.check()
    half.discard()
    assert not list(tmp_path.glob("here*"))


def test_a_small_file_that_unpacks_into_more_than_announced_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(bytes(50_000_000))
    incoming = IncomingCopy(tmp_path / "here.sqlite", len(packed), 1_000, hashlib.sha256(packed).hexdigest(), 1)
    incoming.write(packed)
    with pytest.raises(CopyRefused, match="larger than"):
        incoming.check()
    assert (tmp_path / "here.sqlite.incoming").stat().st_size < 3_000_000


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "there.sqlite")) as strange:
        strange.execute("CREATE TABLE meta (key TEXT, value INTEGER)")
        strange.execute("INSERT INTO meta VALUES ('position', 1)")
        strange.commit()
    copy = prepare_copy(tmp_path / "there.sqlite", tmp_path / "copy")
    with pytest.raises(CopyRefused, match="another program"):
        take(copy, tmp_path / "here.sqlite").check()


def test_a_disk_without_room_is_told_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_database(tmp_path / "there.sqlite", 1).close()
    monkeypatch.setattr(transfer, "_SPARE_BYTES", 1 << 60)
    with pytest.raises(CopyRefused, match="MiB are free"):
        prepare_copy(tmp_path / "there.sqlite", tmp_path / "copy")
    with pytest.raises(CopyRefused, match="MiB are free"):
        IncomingCopy(tmp_path / "here.sqlite", 10, 10, "", 1)
    assert not list(tmp_path.glob("here*"))
