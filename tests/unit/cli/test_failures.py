"""Every failure is one sentence with a way out, and the right exit status."""

from __future__ import annotations

import pytest
import typer

from agent_relay.cli.failures import FAILED, NOT_RUNNING, USAGE, Failure, explain_failure
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.errors import DaemonNotRunning


def test_a_missing_daemon_names_the_command_that_starts_it() -> None:
    failure = explain_failure(DaemonNotRunning("/run/x.sock"))
    assert failure.status == NOT_RUNNING
    assert "start it with: agent-relay up" in failure.sentence
    assert "/run/x.sock" in failure.sentence


@pytest.mark.parametrize(
    ("near", "hint"),
    [
        (["Bob"], "Did you mean Bob?"),
        (["Bob", "Rob"], "Did you mean Bob or Rob?"),
        (["A", "B", "C"], "Did you mean A, B or C?"),
        ([], "agents"),
    ],
)
def test_an_unknown_agent_comes_with_a_hint(near: list[str], hint: str) -> None:
    failure = explain_failure(RelayError(ErrorCode.AGENT_NOT_FOUND, "No agent Bop has ever connected.", did_you_mean=near))
    assert failure.status == FAILED
    assert failure.sentence.startswith("No agent Bop has ever connected.")
    assert hint in failure.sentence


def test_what_the_daemon_says_is_cleaned() -> None:
    assert "\x1b" not in explain_failure(RelayError(ErrorCode.REJECTED, "no\x1b[2J\nreally")).sentence


def test_wrong_usage_points_to_the_help() -> None:
    failure = explain_failure(typer.BadParameter("too long", param_hint="--ttl"))
    assert failure.status == USAGE
    assert failure.sentence.endswith("See: agent-relay --help")


def test_other_errors_are_a_sentence_too() -> None:
    assert explain_failure(Failure("No.", 2)).status == USAGE
    assert explain_failure(PermissionError(13, "Permission denied", "/x")).sentence == "/x: Permission denied."
    assert "AGENT_RELAY_DEBUG" in explain_failure(ZeroDivisionError("division by zero")).sentence
    with pytest.raises(UnicodeEncodeError) as unwritable:
        "\udcff".encode()
    assert explain_failure(unwritable.value).status == USAGE
