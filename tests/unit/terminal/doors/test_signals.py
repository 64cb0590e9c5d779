"""Signals of a session file: kept until they are taken, and looked for where a message stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_relay.terminal.doors.ledger import mark_of
from agent_relay.terminal.doors.signals import Decided, Given, ModelAnswered, SignalReader, find_signals
from agent_relay.terminal.output.transcripts.records import Record, Saying, SessionHead, Spending, Taking, ToolCall, ToolResult
from tests.unit.terminal.doors.heard import message

CALL = ToolCall("t1", "shell", {"command": "make"}, 0)


class Scripted:
    """A reader that tells what it was made with, whatever the record; without that, the record's text as something given."""

    def __init__(self, *found: Record) -> None:
        self.found = list(found)
        self.lines = 0

    def read(self, record: dict[str, Any]) -> list[Record]:
        self.lines += 1
        return self.found or [Taking("1", str(record["text"]), 0)]

    def head(self, record: dict[str, Any]) -> SessionHead | None:
        return SessionHead(str(record["id"]))


def test_what_is_found_is_kept_until_it_is_taken() -> None:
    spending = Spending("s", None, 0, 1, 2)
    reader = SignalReader(Scripted(Taking("1", "hello", 0, "id-1"), Saying("2", "words", 0), spending))
    assert reader.read({}) == []
    assert reader.take() == [Given("hello", "id-1"), ModelAnswered()]
    assert reader.take() == []
    assert reader.head({"id": "a"}) == SessionHead("a")


def test_a_tool_is_decided_once() -> None:
    scripted = Scripted(CALL)
    reader = SignalReader(scripted)
    reader.read({})
    scripted.found = [ToolResult("t1", 0, was_run=False, output="no"), ToolResult("t1", 0), ToolResult("another", 0)]
    reader.read({})
    assert reader.take() == [Decided(CALL, was_run=False, output="no")]


def test_only_lines_that_hold_the_message_are_read(tmp_path: Path) -> None:
    path, ours = tmp_path / "a.jsonl", f"so {mark_of(message(1))}"
    lines = [{"text": ours}, {"text": "another"}, {"text": message(1).uuid}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + mark_of(message(1)) + "\n")
    scripted = Scripted()
    assert find_signals(path, SignalReader(scripted), message(1)) == [Given(ours), Given(message(1).uuid)]
    assert scripted.lines == 2
    assert find_signals(path, SignalReader(Scripted()), message(1), last_bytes=70) == [Given(message(1).uuid)]
    assert find_signals(tmp_path / "missing", SignalReader(Scripted()), message(1)) == []
