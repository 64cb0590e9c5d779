"""What is known of an agent's sessions outlives a wrapper, also one of an earlier release."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.terminal.doors.claude import record as claude
from agent_relay.terminal.doors.codex import record as codex
from agent_relay.terminal.doors.gemini import record as gemini
from agent_relay.terminal.doors.known import KnownFile, KnownSession, add_name, put_last
from agent_relay.terminal.doors.opencode import sessions as opencode

ALL = [claude.KNOWN, codex.KNOWN, gemini.KNOWN, opencode.KNOWN]


def test_files_of_earlier_releases_are_read(tmp_path: Path) -> None:
    written = {
        "claude-session.json": '{"pid":7,"started_at":9,"sessions":["a","b"],"senders":["Alice"]}',
        "codex-threads.json": '[{"id":"a","path":"/a.jsonl"},{"id":"b","path":""}]',
        "gemini-session.json": '{"sessions":[{"id":"a","path":"/a.jsonl"}],"introduced":["a"]}',
        "opencode-known.json": '{"heard_ms":5,"sessions":["ses_1"]}',
    }
    for name, text in written.items():
        (tmp_path / name).write_text(text)
    folder = str(tmp_path)
    assert claude.KNOWN.load(folder) == claude.ClaudeKnown(7, 9, ["a", "b"], ["Alice"])
    assert codex.KNOWN.load(folder) == [KnownSession("a", "/a.jsonl"), KnownSession("b")]
    assert gemini.KNOWN.load(folder) == gemini.GeminiKnown([KnownSession("a", "/a.jsonl")], ["a"])
    assert opencode.KNOWN.load(folder) == opencode.OpencodeKnown(5, ["ses_1"])


@pytest.mark.parametrize("known", ALL, ids=lambda known: known.name)
@pytest.mark.parametrize("content", [None, b"", b"{", b"7", b'"\xff"'])
def test_a_file_that_is_missing_or_damaged_knows_nothing(tmp_path: Path, known: KnownFile[object], content: bytes | None) -> None:
    if content is not None:
        (tmp_path / known.name).write_bytes(content)
    empty = known.load(str(tmp_path))
    known.save(str(tmp_path), empty)
    assert known.load(str(tmp_path)) == empty
    known.forget(str(tmp_path))
    known.forget(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_are_forgotten() -> None:
    names = ["a", "b"]
    assert not add_name(names, "a", 2)
    assert not add_name(names, "", 2)
    assert add_name(names, "c", 2)
    assert names == ["b", "c"]
    sessions = [KnownSession("a"), KnownSession("b")]
    assert put_last(sessions, KnownSession("a", "/a"), 2) == [KnownSession("b"), KnownSession("a", "/a")]
    assert put_last(sessions, KnownSession("c"), 2) == [KnownSession("b"), KnownSession("c")]
