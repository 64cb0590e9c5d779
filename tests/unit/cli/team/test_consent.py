"""The owner's word: what is shown before it is asked for, and where it is kept."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from agent_relay.cli.failures import Failure
from agent_relay.cli.team.consent import RECORD_FILE, Record, ask_owner, read_record, write_record
from agent_relay.cli.team.team_file import TeamFile, parse_team

TEXT = """
[[agents]]
name = "Bob"
cli = "claude"
permission_mode = "acceptEdits"
restart = "on-crash"
worktree = "review"
environment = { OPENAI_API_KEY = "x" }
task = "Look. \\u001b[2J"
[[channels]]
name = "dev"
members = ["Bob"]
[[rules]]
effect = "deny"
action = "approve"
"""


def make_file(text: str = TEXT) -> TeamFile:
    return TeamFile("team.toml", "f" * 64, parse_team(text.encode(), "team.toml"))


def test_the_summary_names_programs_tasks_permissions_and_rules(capsys: pytest.CaptureFixture[str]) -> None:
    ask_owner(make_file(), before="", yes=True, as_json=False)
    shown = capsys.readouterr()
    wanted = (
        "is new",
        "claude",
        "Bob",
        "acceptEdits",
        "review",
        "3 times",
        "OPENAI_API_KEY=x",
        "Look.",
        "#dev",
        "deny approve from * to *",
    )
    assert [word for word in wanted if word not in shown.err] == []
    assert "\x1b[2J" not in shown.err
    assert shown.out == ""  # which is for programs


def test_a_long_task_cannot_hide_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    ask_owner(
        make_file(f'[[agents]]\nname = "Bob"\ncli = "claude"\ntask = "{"x" * 3_000}"\n'), before="", yes=True, as_json=False
    )
    assert "1,000 more characters" in capsys.readouterr().err


@pytest.mark.parametrize("as_json", [True, False])
def test_without_a_person_nothing_is_confirmed(as_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull, encoding="ascii") as nobody:
        monkeypatch.setattr("sys.stdin", nobody)
        with pytest.raises(Failure, match="--yes"):
            ask_owner(make_file(), before="e" * 64, yes=False, as_json=as_json)


def test_the_record_is_the_owners_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert read_record(str(state)) == Record()
    write_record(str(state), Record("a" * 64, [("#dev", "Bob")], ["/x"]))
    assert read_record(str(state)) == Record("a" * 64, [("#dev", "Bob")], ["/x"])
    assert stat.S_IMODE((state / RECORD_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "{", '{"confirmed": 7}', "[]"])
def test_a_record_that_cannot_be_read_confirms_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / RECORD_FILE).write_text(content)
    assert read_record(str(tmp_path)).confirmed == ""
