"""What the words of a line mean: a command, a CLI that the relay knows, or nothing."""

from __future__ import annotations

import pytest

from agent_relay.cli.command_list import COMMANDS
from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.first_word import put_command_first
from agent_relay.protocol.clis import KNOWN_CLIS


@pytest.mark.parametrize(
    "words",
    [
        ["-n", "Alice", "claude"],
        ["-n", "Alice", "cat", "-n"],
        ["-nAlice", "rm"],
        ["--name=Alice", "some-program"],
        ["--backend", "pty", "-n", "Alice", "cat"],
        ["-n", "Alice"],
        ["-n"],
        ["--backend", "pty", "claude"],
        ["--no-intro", "claude", "--resume"],
        ["--socket", "/s", "claude"],
        ["--", "claude"],
        ["-d"],
        *([cli] for cli in sorted(KNOWN_CLIS)),
    ],
)
def test_a_known_cli_and_whatever_is_given_a_name_are_wrapped(words: list[str]) -> None:
    assert put_command_first(words) == ["wrap", *words]


@pytest.mark.parametrize(
    "words",
    [
        [], ["--version"], ["--help"], ["-h"], ["--nonsense"], ["status"], ["send", "Bob", "-n"], ["wrap", "rm"],
        ["--nonsense", "x"],
    ],
)  # fmt: skip
def test_the_rest_is_as_it_was(words: list[str]) -> None:
    assert put_command_first(words) == words


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["--json", "status"], ["status", "--json"]),
        (["--socket", "/s", "status", "--json"], ["status", "--socket", "/s", "--json"]),
        (["--socket=/s", "--state-dir", "/d", "agents"], ["agents", "--socket=/s", "--state-dir", "/d"]),
        (["--json", "permissions", "approve", "3f9c"], ["permissions", "--json", "approve", "3f9c"]),
        (["--from", "send", "send", "Bob", "hi"], ["send", "--from", "send", "Bob", "hi"]),
        (["-f", "events"], ["events", "-f"]),
        (["--socket", "/s", "wrap", "cat"], ["wrap", "--socket", "/s", "cat"]),
        (["--project", "/p", "status"], ["status", "--project", "/p"]),
        (["--project=/p", "rm", "Alice"], ["rm", "--project=/p", "Alice"]),
    ],
)
def test_options_may_stand_before_the_command(words: list[str], meant: list[str]) -> None:
    assert put_command_first(words) == meant


@pytest.mark.parametrize(
    "words",
    [
        ["mv", "Alice"], ["cat"], ["sh", "-c", "x"], ["/bin/rm", "x"], ["./claude"], ["no-such-word"], ["--json", "mv", "x"],
        ["-d", "rm", "x"], ["--backend", "pty", "rm", "x"], ["--socket", "/s", "mv", "x"], ["--", "rm", "x"], ["RM"], ["CLAUDE"],
    ],
)  # fmt: skip
def test_everything_else_is_no_command(words: list[str]) -> None:
    with pytest.raises(Failure, match="There is no command ") as raised:
        put_command_first(words)
    assert raised.value.status == USAGE


@pytest.mark.parametrize(
    ("word", "near"), [("statsu", "status"), ("claud", "claude"), ("inbx", "inbox"), ("dead-leters", "dead-letters")]
)
def test_the_nearest_is_named(word: str, near: str) -> None:
    with pytest.raises(Failure, match=f"Did you mean {near}"):
        put_command_first([word])


def test_the_way_to_run_a_program_all_the_same_is_named_and_nothing_moves_the_cursor() -> None:
    with pytest.raises(Failure, match=r"agent-relay wrap cat …"):
        put_command_first(["cat"])
    with pytest.raises(Failure) as raised:
        put_command_first(["\x1b[2J" + "x" * 500])
    assert "\x1b" not in raised.value.sentence
    assert len(raised.value.sentence) < 200


def test_no_command_has_the_name_of_a_cli() -> None:
    assert not KNOWN_CLIS & COMMANDS.keys()
