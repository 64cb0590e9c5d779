"""Finding an agent's session among others, and following it through new files."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from pathlib import Path

import pytest

from agent_relay.terminal.output.transcripts.find import find_sessions, holds, home_of, project_names
from agent_relay.terminal.output.transcripts.follow import SessionFollower
from agent_relay.terminal.output.transcripts.records import Record, Saying
from agent_relay.terminal.profiles.profile import profile_for
from tests.unit.terminal.recorded_screens import SCREENS, sessions_of

CWD = "/srv/team/relay1/proj"
CLAUDE = profile_for("claude")


def copied_home(cli: str, tmp_path: Path) -> Path:
    transcript = profile_for(cli).transcript
    assert transcript is not None
    shutil.copytree(SCREENS / cli / "home", tmp_path / "home")
    return home_of(transcript, {"HOME": str(tmp_path / "home")})


@pytest.mark.parametrize("cli", ["claude", "codex", "gemini"])
def test_sessions_are_found_where_each_cli_keeps_them(cli: str, tmp_path: Path) -> None:
    home = copied_home(cli, tmp_path)
    found = find_sessions(profile_for(cli), CWD, home=home)
    assert sorted(path.name for path in found) == [path.name for path in sessions_of(cli)]
    assert find_sessions(profile_for(cli), "/srv/team/elsewhere", home=home) == []
    assert find_sessions(profile_for(cli), CWD, home=home, since_ms=int(time.time() * 1000) + 3_600_000) == []


def test_a_cli_without_session_files_has_none(tmp_path: Path) -> None:
    assert find_sessions(profile_for("aider"), CWD, home=tmp_path) == []


def test_a_home_can_be_moved() -> None:
    assert CLAUDE.transcript is not None
    assert home_of(CLAUDE.transcript, {"HOME": "/h", "CLAUDE_CONFIG_DIR": "/elsewhere"}) == Path("/elsewhere")
    assert home_of(CLAUDE.transcript, {"HOME": "/h"}) == Path("/h/.claude")
    gemini = profile_for("gemini").transcript
    assert gemini is not None
    assert home_of(gemini, {"HOME": "/h", "GEMINI_CLI_HOME": "/elsewhere"}) == Path("/elsewhere/.gemini")


def test_spellings_of_a_directory() -> None:
    gemini = profile_for("gemini").transcript
    assert CLAUDE.transcript is not None
    assert gemini is not None
    assert "-srv-my-app-v1-2" in project_names(CLAUDE.transcript, "/srv/my_app/v1.2")
    assert {"proj", "my-app"} <= {*project_names(gemini, "/x/proj"), *project_names(gemini, "/x/My App")}


def test_a_second_folder_of_the_same_name_has_a_number(tmp_path: Path) -> None:
    for name in ("proj", "proj-1", "proj-ect"):
        chats = tmp_path / "tmp" / name / "chats"
        chats.mkdir(parents=True)
        (chats / "session-1.jsonl").write_text('{"sessionId": "1"}\n')
    found = find_sessions(profile_for("gemini"), "/srv/proj", home=tmp_path)
    assert {path.parent.parent.name for path in found} == {"proj", "proj-1"}


# --- following ---------------------------------------------------------------------------------------------------------


def folder(home: Path) -> Path:
    path = home / "projects" / "-srv-team-relay1-proj"
    path.mkdir(parents=True, exist_ok=True)
    return path


def write(path: Path, number: int, text: str, at: str = "2026-11-15T06:26:02Z") -> None:
    record = {
        "type": "assistant", "uuid": f"u{number}", "timestamp": at, "cwd": CWD, "sessionId": path.stem,
        "message": {"id": f"m{number}", "content": [{"type": "text", "text": text}]},
    }  # fmt: skip
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def texts(records: list[Record]) -> list[str]:
    return [record.text for record in records if isinstance(record, Saying)]


def test_a_new_file_goes_on_where_the_old_one_ended(tmp_path: Path) -> None:
    """As after /clear, or a resume that copies what was said before."""
    follower = SessionFollower(CLAUDE, CWD, home=tmp_path, since_ms=0)
    assert follower.poll() == []
    first, second = folder(tmp_path) / "one.jsonl", folder(tmp_path) / "two.jsonl"
    write(first, 1, "one")
    assert texts(follower.poll()) == ["one"]
    write(second, 1, "one")
    write(second, 2, "two")
    os.utime(second, (time.time() + 5, time.time() + 5))
    assert texts(follower.poll()) == ["two"]
    assert follower.path == second
    write(first, 3, "late")
    assert texts(follower.poll()) == ["late"]


def test_what_was_said_before_the_agent_started_is_history(tmp_path: Path) -> None:
    follower = SessionFollower(CLAUDE, CWD, home=tmp_path, since_ms=1_794_723_963_000)
    write(folder(tmp_path) / "one.jsonl", 1, "before", "2026-11-15T06:26:02Z")
    write(folder(tmp_path) / "one.jsonl", 2, "after", "2026-11-15T06:26:04Z")
    os.utime(folder(tmp_path) / "one.jsonl", (1_794_723_964, 1_794_723_964))
    assert texts(follower.poll()) == ["after"]


def test_two_agents_in_one_directory_do_not_hear_each_other(tmp_path: Path) -> None:
    mine: list[str] = []
    follower = SessionFollower(CLAUDE, CWD, home=tmp_path, since_ms=0, is_shared=lambda: True, evidence=lambda: mine)
    write(folder(tmp_path) / "mine.jsonl", 1, "said to me: msg_42")
    write(folder(tmp_path) / "other.jsonl", 2, "said to another")
    assert follower.poll() == []
    mine.append("msg_42")
    assert texts(follower.poll()) == ["said to me: msg_42"]


def test_a_known_session_needs_no_evidence(tmp_path: Path) -> None:
    follower = SessionFollower(CLAUDE, CWD, home=tmp_path, since_ms=0, session_id="mine", is_shared=lambda: True)
    write(folder(tmp_path) / "mine.jsonl", 1, "a")
    write(folder(tmp_path) / "other.jsonl", 2, "b")
    assert texts(follower.poll()) == ["a"]
    follower.add_session("other")
    assert texts(follower.poll()) == ["b"]


def test_words_are_looked_for_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("hello msg_1")
    assert holds(file, "msg_1")
    assert not holds(file, "msg_2")
    assert not holds(tmp_path / "none", "msg_1")


@pytest.mark.parametrize("exists", [True, False])
def test_following_live(tmp_path: Path, exists: bool) -> None:
    """Records arrive as they are written, also into folders that did not exist when it began."""
    if exists:
        folder(tmp_path)

    async def run() -> list[str]:
        stop = asyncio.Event()
        follower = SessionFollower(CLAUDE, CWD, home=tmp_path, since_ms=0)
        heard: list[str] = []

        async def listen() -> None:
            async for records in follower.follow(stop):
                heard.extend(texts(records))
                if len(heard) == 1:
                    write(folder(tmp_path) / "one.jsonl", 2, "two")
                if len(heard) >= 2:
                    stop.set()

        task = asyncio.create_task(listen())
        write(folder(tmp_path) / "one.jsonl", 1, "one")
        await asyncio.wait_for(task, 30)
        return heard

    assert asyncio.run(run()) == ["one", "two"]
