"""Starting Claude Code: what is added to the user's command, what is left out, and why."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import subprocess
import uuid
from pathlib import Path

import pytest

from agent_relay.terminal.doors.claude.launch import ClaudeLauncher
from agent_relay.terminal.doors.claude.record import KNOWN
from agent_relay.terminal.doors.door import DoorShut
from agent_relay.terminal.doors.launch import AgentPlace, PreparedStart, Program
from tests.unit.terminal.doors.claude_cli import Heard

INTRODUCTION = "Relay notice [0a1b2c3d]: you are Bob."


def prepare(folder: Path, *words: str) -> PreparedStart:
    environment = {"CLAUDE_CONFIG_DIR": str(folder / "claude")}
    return ClaudeLauncher().prepare(Program(("claude", *words), str(folder), environment), place(folder), INTRODUCTION)


def place(folder: Path) -> AgentPlace:
    return AgentPlace("Bob", str(folder), "0123456789ab")


def test_a_plain_start_is_given_a_session_hooks_and_the_introduction(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, "--model", "opus", "fix it")
    assert prepared.session_id is not None
    assert uuid.UUID(prepared.session_id).version == 4
    settings = str(tmp_path / "claude-settings.json")
    added = ("--session-id", prepared.session_id, "--settings", settings, "--append-system-prompt", INTRODUCTION)
    assert prepared.program.argv == ("claude", *added, "--model", "opus", "fix it")
    assert prepared.is_introduced
    assert prepared.notes == ()


def test_our_settings_are_private_and_hold_hooks_alone(tmp_path: Path) -> None:
    prepare(tmp_path)
    path = tmp_path / "claude-settings.json"
    settings = json.loads(path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(settings) == ["hooks"]
    assert set(settings["hooks"]) == {
        "SessionStart", "UserPromptSubmit", "PermissionRequest", "PreToolUse", "PostToolUse", "Stop", "Notification", "SessionEnd"
    }  # fmt: skip


@pytest.mark.parametrize("event", ["SessionStart", "PermissionRequest", "Stop", "PreToolUse", "Notification", "SessionEnd"])
def test_hooks_end_well_and_silently_when_nobody_is_there(tmp_path: Path, event: str) -> None:
    prepare(tmp_path)
    (tmp_path / "claude-waiting").touch()
    settings = json.loads((tmp_path / "claude-settings.json").read_text())
    command = settings["hooks"][event][0]["hooks"][0]["command"]
    done = subprocess.run(["sh", "-c", command], input=b"{}", capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "words", [["-p", "hi"], ["-cp", "hi"], ["--print"], ["mcp", "list"], ["--version"], ["--bg"], ["update"]]
)
def test_what_opens_no_session_here_is_left_alone(tmp_path: Path, words: list[str]) -> None:
    prepared = prepare(tmp_path, *words)
    assert prepared.program.argv == ("claude", *words)
    assert not prepared.is_introduced
    assert prepared.notes
    assert ClaudeLauncher().doors(prepared.program, place(tmp_path), prepared.facts, Heard()) == []


@pytest.mark.parametrize("words", [["--resume", "abc"], ["--resume=abc"], ["-r"], ["-c"], ["--continue"], ["--from-pr", "7"]])
def test_a_resumed_conversation_keeps_its_session_and_its_system_prompt(tmp_path: Path, words: list[str]) -> None:
    prepared = prepare(tmp_path, *words)
    assert prepared.program.argv == ("claude", "--settings", str(tmp_path / "claude-settings.json"), *words)
    assert prepared.session_id is None
    assert not prepared.is_introduced


def test_a_session_the_user_chose_is_ours_too(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, "--session-id", "11111111-2222-4333-8444-555555555555")
    assert prepared.session_id == "11111111-2222-4333-8444-555555555555"
    assert prepared.program.argv.count("--session-id") == 1


@pytest.mark.parametrize("words", [["--settings", "{}"], ["--settings={}"], ["--bare"], ["--safe-mode"]])
def test_where_the_user_has_settings_ours_are_left_out_and_said_so(tmp_path: Path, words: list[str]) -> None:
    prepared = prepare(tmp_path, *words)
    assert prepared.program.argv[-len(words) :] == tuple(words)
    assert prepared.program.argv.count("--settings") <= 1
    assert len(prepared.notes) == 1
    doors = ClaudeLauncher().doors(prepared.program, place(tmp_path), prepared.facts, Heard())
    assert [door.name for door in doors] == ["claude inbox"]


@pytest.mark.parametrize("flag", ["--append-system-prompt", "--system-prompt-file", "--system-prompt"])
def test_the_users_own_system_prompt_is_not_added_to(tmp_path: Path, flag: str) -> None:
    prepared = prepare(tmp_path, flag, "mine")
    assert not prepared.is_introduced
    assert INTRODUCTION not in prepared.program.argv


def test_what_stands_behind_two_dashes_is_no_flag(tmp_path: Path) -> None:
    assert prepare(tmp_path, "--", "--resume").session_id is not None


@pytest.mark.parametrize("words", [["--dangerously-skip-permissions"], ["--permission-mode", "bypassPermissions"]])
def test_without_permission_checks_the_inbox_is_not_used_unless_the_user_lets_messages_in(
    tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "claude").mkdir()
    held = prepare(tmp_path, *words)
    inbox, _ = ClaudeLauncher().doors(held.program, place(tmp_path), held.facts, Heard())
    with pytest.raises(DoorShut, match="until a person accepts it") as error:
        asyncio.run(inbox.open())
    assert "crossSessionInbound" in error.value.mend
    assert "crossSessionInbound" not in (tmp_path / "claude-settings.json").read_text()
    assert "holds" not in prepare(tmp_path, *words, "--settings", '{"crossSessionInbound": "accept"}').facts
    assert "holds" in prepare(tmp_path, *words, "--settings", '{"crossSessionInbound": "refuse"}').facts
    (tmp_path / "claude" / "settings.json").write_text('{"crossSessionInbound": "accept"}')
    assert "holds" not in prepare(tmp_path, *words).facts


def test_what_was_known_of_the_last_program_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / KNOWN.name).write_text(json.dumps({"pid": os.getpid(), "sessions": ["old"]}))
    prepare(tmp_path)
    assert not (tmp_path / KNOWN.name).exists()
