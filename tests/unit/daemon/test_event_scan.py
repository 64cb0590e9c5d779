"""Reading the recorded events without the daemon: every file, in order, once, and nothing half written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_relay.daemon.event_scan import scan_events
from agent_relay.events.codec import encode_event
from agent_relay.events.types import Event, LoopDetected, TokensUsed
from agent_relay.storage.jsonl import packer
from agent_relay.storage.jsonl.lines import Head
from agent_relay.storage.jsonl.shelf import Shelf


def tokens(seq: int, agent: str = "Alice") -> TokensUsed:
    return TokensUsed(
        seq=seq,
        ts=seq * 10,
        by_agent=agent,
        by_session="s",
        session_id="s",
        agent_name=agent,
        model="m",
        input_tokens=seq,
        output_tokens=1,
    )


def write(shelf: Shelf, *events: Event) -> None:
    for event in events:
        shelf.write(encode_event(event) + b"\n", Head(event.seq, event.ts))


def seqs(folder: Path) -> list[int]:
    return [event.seq for event in scan_events(str(folder), "tokens.used")]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    shelf = Shelf(str(tmp_path / "events.jsonl"))
    shelf.open()
    return shelf


def test_where_there_is_nothing_there_is_nothing(tmp_path: Path) -> None:
    assert seqs(tmp_path) == []
    assert seqs(tmp_path / "nowhere") == []


def test_every_file_is_read_oldest_first(shelf: Shelf, tmp_path: Path) -> None:
    write(shelf, tokens(1), tokens(2))
    shelf.put_aside()
    write(shelf, tokens(3))
    shelf.put_aside()
    write(shelf, tokens(4))
    assert len(os.listdir(tmp_path)) == 3
    assert seqs(tmp_path) == [1, 2, 3, 4]


def test_other_types_and_other_files_are_passed_over(shelf: Shelf, tmp_path: Path) -> None:
    write(shelf, LoopDetected(seq=1, agents=("Alice",), hops=1, stage="x", text='{"type":"tokens.used",'), tokens(2))
    (tmp_path / "events-old.jsonl").write_bytes(encode_event(tokens(9)) + b"\n")
    (tmp_path / "events.jsonl.damaged").write_bytes(encode_event(tokens(9)) + b"\n")
    assert seqs(tmp_path) == [2]


def test_what_is_half_written_or_damaged_is_passed_over(shelf: Shelf, tmp_path: Path) -> None:
    write(shelf, tokens(1), tokens(2))
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(
            b'{"type":"tokens.used","_seq":"x"}\n\xff\xfe\n\n' + encode_event(tokens(3)) + b"\n" + encode_event(tokens(4))[:60]
        )
    assert seqs(tmp_path) == [1, 2, 3]


def test_a_file_that_is_put_aside_meanwhile_is_read_once(shelf: Shelf, tmp_path: Path) -> None:
    write(shelf, tokens(1), tokens(2))
    scan = scan_events(str(tmp_path), "tokens.used")
    assert next(scan).seq == 1
    shelf.put_aside()
    write(shelf, tokens(3))
    assert [event.seq for event in scan] == [2]
    os.link(tmp_path / "events.jsonl", tmp_path / "events-0000000000000003.jsonl")  # under both names, as while it is renamed
    assert seqs(tmp_path) == [1, 2, 3]


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").mkdir()
    with pytest.raises(IsADirectoryError):
        seqs(tmp_path)


def pack(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packer, "_FIRST_AFTER_S", 0.0)
    packing = packer.Packer(shelf)
    while packing.due_in_s() is not None:
        packing.step()


def test_packed_files_are_read_as_well(shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seq in range(1, 5):
        write(shelf, tokens(seq))
        shelf.put_aside()
    pack(shelf, monkeypatch)
    write(shelf, tokens(5))
    shelf.put_aside()
    write(shelf, tokens(6))
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".gz"] * 4 + [".jsonl"] * 2
    assert seqs(tmp_path) == [1, 2, 3, 4, 5, 6]


def test_a_file_that_is_put_aside_and_packed_meanwhile_is_read_once(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(shelf, tokens(1))
    shelf.put_aside()
    write(shelf, tokens(2))
    scan = scan_events(str(tmp_path), "tokens.used")
    found = [next(scan).seq]
    shelf.put_aside()
    pack(shelf, monkeypatch)
    assert found + [event.seq for event in scan] == [1, 2]
