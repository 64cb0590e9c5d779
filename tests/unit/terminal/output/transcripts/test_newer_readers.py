"""Session files of copilot and qwen, as recorded: what was said, given, run and spent, each once."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.terminal.output.transcripts.find import find_sessions, read_head, reader_for
from agent_relay.terminal.output.transcripts.records import Record, Saying, Spending, Taking, ToolCall, ToolResult
from agent_relay.terminal.output.transcripts.tail import TranscriptTail
from agent_relay.terminal.profiles.profile import profile_for
from tests.unit.terminal.recorded_screens import CASES, SCREENS

CLIS = ("copilot", "qwen")
TALK, TOOL = "a", "perm-h-enter"
INJECTED = "Relay message from Alice [1a2b3c4d]: please review"
# Qwen Code writes an answer down a moment after it was shown: the last one of a program that was ended is missing.
ANSWERS = {"copilot": 2, "qwen": 1}


def home(cli: str) -> Path:
    return SCREENS / cli / "home" / f".{cli}"


def session(cli: str, case: str) -> Path:
    """The file of the recording of this case: found as an agent's own is, by where it worked."""
    (path,) = find_sessions(profile_for(cli), f"/srv/the-team/w/{cli}-{case}/proj", home=home(cli))
    return path


def read(cli: str, case: str) -> list[Record]:
    reader = reader_for(profile_for(cli))
    assert reader is not None
    return TranscriptTail(session(cli, case), reader).poll()


@pytest.mark.parametrize("cli", CLIS)
def test_what_was_said_and_given_is_there_verbatim_and_once(cli: str) -> None:
    records = read(cli, TALK)
    assert [record.text for record in records if isinstance(record, Saying)] == [CASES["a"], CASES["ack"]][: ANSWERS[cli]]
    assert [record.text for record in records if isinstance(record, Taking)] == ["case:a please", INJECTED]


@pytest.mark.parametrize("cli", CLIS)
def test_a_command_is_told_whole_with_its_end(cli: str) -> None:
    records = read(cli, TOOL)
    (call,) = [record for record in records if isinstance(record, ToolCall)]
    (result,) = [record for record in records if isinstance(record, ToolResult)]
    transcript = profile_for(cli).transcript
    assert transcript is not None
    assert call.name in transcript.commands
    assert call.arguments["command"] == "rm -rf build"
    assert (result.id, result.is_error, result.was_run, result.exit_code) == (call.id, False, True, 0)


@pytest.mark.parametrize("cli", CLIS)
def test_tokens_are_told_once_for_each_answer(cli: str) -> None:
    spent = [record for record in read(cli, TOOL) if isinstance(record, Spending)]
    assert [(each.model, each.input_tokens, each.output_tokens) for each in spent] == [("fake-model", 1234, 57)] * ANSWERS[cli]


@pytest.mark.parametrize("cli", CLIS)
def test_the_head_names_session_and_folder_and_another_folder_has_no_session(cli: str) -> None:
    path = session(cli, TALK)
    head = read_head(profile_for(cli), path)
    assert head is not None
    assert head.session_id == (path.parent.name if cli == "copilot" else path.stem)
    assert head.cwd == f"/srv/the-team/w/{cli}-a/proj"
    assert head.started_ms > 0
    assert find_sessions(profile_for(cli), "/srv/elsewhere", home=home(cli)) == []


@pytest.mark.parametrize("cli", CLIS)
def test_rubbish_and_what_is_told_twice_say_nothing(cli: str) -> None:
    reader = reader_for(profile_for(cli))
    assert reader is not None
    for record in ({}, {"type": "user.message", "data": 3}, {"type": "assistant", "message": {"parts": [None, 7]}, "uuid": []}):
        assert reader.read(dict(record)) == []
    tail = TranscriptTail(session(cli, TALK), reader)
    assert tail.poll()
    assert TranscriptTail(session(cli, TALK), reader).poll() == []
