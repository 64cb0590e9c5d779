"""The sparse index looks at one place in 64 KiB, and finds any line from there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_relay.storage.jsonl.index import STEP_BYTES, SparseIndex
from agent_relay.storage.jsonl.lines import read_head
from tests.support.event_driver import START_MS
from tests.unit.storage.jsonl.test_lines import make_lines


@pytest.mark.parametrize("text", ["", "x" * 700, "x" * 200_000], ids=["short", "middling", "longer than a step"])
def test_any_number_and_any_time_is_found_within_a_step(tmp_path: Path, text: str) -> None:
    count = 40 if len(text) > 1_000 else 2_000
    lines = make_lines(count, text)
    path = tmp_path / "lines"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    descriptor, size, index = os.open(path, os.O_RDONLY), path.stat().st_size, SparseIndex()
    index.extend(descriptor, size)
    assert index.probes <= size // STEP_BYTES + 1
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    longest = max(map(len, lines)) + 1
    for seq in range(0, count, 7):
        for place in (index.place_after(seq), index.place_since(START_MS + (seq + 1) * 1_000)):
            head = read_head(os.pread(descriptor, 200, place))
            assert head is not None
            assert head.seq <= seq + 1
            assert offsets[seq] - place <= STEP_BYTES + longest
    os.close(descriptor)


def test_it_grows_with_the_file(tmp_path: Path) -> None:
    path, index = tmp_path / "lines", SparseIndex()
    lines = make_lines(3_000)
    with path.open("wb", buffering=0) as file:
        descriptor = os.open(path, os.O_RDONLY)
        index.extend(descriptor, 0)
        for line in lines:
            file.write(line + b"\n")
            index.extend(descriptor, file.tell())
        size = file.tell()
    assert index.probes <= size // STEP_BYTES + 1
    assert size - index.place_after(2_999) <= STEP_BYTES + 1_000
    os.close(descriptor)
