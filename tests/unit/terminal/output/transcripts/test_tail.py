"""A growing session file: whole lines once, through cuts, truncation, replacement and rotation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_relay.terminal.output.transcripts.claude import ClaudeReader
from agent_relay.terminal.output.transcripts.gemini import GeminiReader
from agent_relay.terminal.output.transcripts.records import Saying
from agent_relay.terminal.output.transcripts.tail import TranscriptTail


def record(number: int, text: str = "") -> bytes:
    message = {"id": f"m{number}", "content": [{"type": "text", "text": text or f"text {number}"}]}
    return json.dumps({"type": "assistant", "uuid": f"u{number}", "message": message}).encode() + b"\n"


def poll(tail: TranscriptTail) -> list[str]:
    return [found.id for found in tail.poll() if isinstance(found, Saying)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def test_a_file_that_comes_later_and_grows(file: Path) -> None:
    tail = TranscriptTail(file, ClaudeReader())
    assert poll(tail) == []
    file.write_bytes(record(1))
    assert poll(tail) == ["u1"]
    assert poll(tail) == []
    with file.open("ab") as stream:
        stream.write(record(2) + record(3))
    assert poll(tail) == ["u2", "u3"]


def test_a_line_without_its_end_waits(file: Path) -> None:
    whole = record(1)
    file.write_bytes(whole[:20])
    tail = TranscriptTail(file, ClaudeReader())
    assert poll(tail) == []
    with file.open("ab") as stream:
        stream.write(whole[20:-1])
    assert poll(tail) == []
    with file.open("ab") as stream:
        stream.write(b"\n")
    assert poll(tail) == ["u1"]


def test_truncation_tells_nothing_twice_and_loses_nothing(file: Path) -> None:
    file.write_bytes(record(1) + record(2))
    tail = TranscriptTail(file, ClaudeReader())
    assert poll(tail) == ["u1", "u2"]
    file.write_bytes(record(2))
    assert poll(tail) == []
    file.write_bytes(record(2) + record(3))
    assert poll(tail) == ["u3"]


def test_replacement_by_another_file(file: Path, tmp_path: Path) -> None:
    file.write_bytes(record(1))
    tail = TranscriptTail(file, ClaudeReader())
    assert poll(tail) == ["u1"]
    other = tmp_path / "other"
    other.write_bytes(record(1) + record(2) + record(3))
    other.replace(file)
    assert poll(tail) == ["u2", "u3"]


def test_removal_and_return(file: Path) -> None:
    file.write_bytes(record(1))
    tail = TranscriptTail(file, ClaudeReader())
    assert poll(tail) == ["u1"]
    file.unlink()
    assert poll(tail) == []
    file.write_bytes(record(1) + record(2))
    assert poll(tail) == ["u2"]


def test_broken_lines_are_passed_over(file: Path) -> None:
    file.write_bytes(b"\n{broken\n\xff\xfe\n[]\n" + record(1))
    assert poll(TranscriptTail(file, ClaudeReader())) == ["u1"]


def test_from_the_end(file: Path) -> None:
    file.write_bytes(record(1))
    tail = TranscriptTail(file, ClaudeReader(), from_end=True)
    with file.open("ab") as stream:
        stream.write(record(2))
    assert poll(tail) == ["u2"]


def test_the_old_format_of_one_document(tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    messages = [{"id": "1", "type": "gemini", "content": "a", "model": "m", "tokens": {"input": 1}}]
    tail = TranscriptTail(file, GeminiReader())
    assert poll(tail) == []
    file.write_text(json.dumps({"messages": messages}))
    assert poll(tail) == ["1"]
    file.write_text('{"messages": [')
    assert poll(tail) == []
    file.write_text(json.dumps({"messages": [*messages, {**messages[0], "id": "2"}]}))
    assert poll(tail) == ["2"]


@given(cuts=st.lists(st.integers(1, 90), min_size=1, max_size=30), count=st.integers(1, 12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
def test_any_way_of_writing_reads_the_same(tmp_path: Path, cuts: list[int], count: int) -> None:
    file = tmp_path / "session.jsonl"
    file.unlink(missing_ok=True)
    data = b"".join(record(number, "日本 " * 5) for number in range(count))
    tail = TranscriptTail(file, ClaudeReader())
    found: list[str] = []
    at = 0
    with file.open("ab", buffering=0) as stream:
        for index in range(len(data)):
            if at >= len(data):
                break
            stream.write(data[at : at + cuts[index % len(cuts)]])
            at += cuts[index % len(cuts)]
            found += poll(tail)
    assert found == [f"u{number}" for number in range(count)]
