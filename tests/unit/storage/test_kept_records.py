from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.storage.kept_records import KeptRecords, read_records


def fill(kept: KeptRecords, first: int, last: int) -> None:
    for sequence in range(first, last + 1):
        kept.keep(sequence, f"record {sequence}".encode())


def sequences(folder: Path) -> list[int]:
    return [sequence for sequence, _ in read_records(folder)]


def test_what_is_kept_is_read_back_in_order_also_in_the_next_life(tmp_path: Path) -> None:
    kept = KeptRecords(tmp_path / "records", part_bytes=100)
    fill(kept, 5, 20)
    kept.close()
    again = KeptRecords(tmp_path / "records", part_bytes=100)
    assert again.last == 20
    fill(again, 18, 25)  # what it has stays as it is
    assert list(read_records(tmp_path / "records")) == [(number, f"record {number}".encode()) for number in range(5, 26)]
    assert again.find(7) == b"record 7"
    assert (again.find(4), again.find(26)) == (None, None)


def test_the_oldest_go_when_there_are_too_many(tmp_path: Path) -> None:
    kept = KeptRecords(tmp_path / "records", most_bytes=1_000, part_bytes=200)
    fill(kept, 1, 500)
    size = sum(part.stat().st_size for part in (tmp_path / "records").iterdir())
    assert size <= 1_000
    found = sequences(tmp_path / "records")
    assert found == list(range(found[0], 501))
    assert len(found) > 15


def test_after_a_gap_everything_begins_anew(tmp_path: Path) -> None:
    kept = KeptRecords(tmp_path / "records")
    fill(kept, 1, 3)
    kept.keep(7, b"later")
    assert list(read_records(tmp_path / "records")) == [(7, b"later")]


@pytest.mark.parametrize("cut", [1, 10, 17, 30])
def test_a_torn_end_is_found_and_written_again(tmp_path: Path, cut: int) -> None:
    kept = KeptRecords(tmp_path / "records")
    fill(kept, 1, 3)
    kept.close()
    (part,) = (tmp_path / "records").iterdir()
    part.write_bytes(part.read_bytes()[:-cut])
    again = KeptRecords(tmp_path / "records")
    assert again.last < 3
    fill(again, again.last + 1, 4)
    assert sequences(tmp_path / "records") == [1, 2, 3, 4]


def test_a_changed_byte_ends_what_can_be_read(tmp_path: Path) -> None:
    kept = KeptRecords(tmp_path / "records")
    fill(kept, 1, 3)
    kept.close()
    (part,) = (tmp_path / "records").iterdir()
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(bytes(content))
    assert sequences(tmp_path / "records") == [1]


def test_nothing_is_left_of_what_is_forgotten(tmp_path: Path) -> None:
    kept = KeptRecords(tmp_path / "records")
    fill(kept, 1, 3)
    kept.forget()
    assert not list((tmp_path / "records").iterdir())
    fill(kept, 9, 9)
    assert sequences(tmp_path / "records") == [9]


def test_a_disk_that_takes_nothing_keeps_nothing_and_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("a file where the folder should be")
    kept = KeptRecords(tmp_path / "records")
    fill(kept, 1, 3)
    assert kept.last == 0
    assert kept.find(1) is None


def test_the_files_are_the_owners_alone(tmp_path: Path) -> None:
    kept = KeptRecords(tmp_path / "records")
    fill(kept, 1, 1)
    (part,) = (tmp_path / "records").iterdir()
    assert ((tmp_path / "records").stat().st_mode & 0o777, part.stat().st_mode & 0o777) == (0o700, 0o600)
