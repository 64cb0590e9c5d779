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


def test_for_programs_a_failure_has_the_shape_of_errors_over_http() -> None:
    error = explain_failure(RelayError(ErrorCode.AGENT_NOT_FOUND, "No agent Bop.", did_you_mean=["Bob"])).for_programs()["error"]
    assert (error["code"], error["category"], error["retryable"]) == ("AGENT_NOT_FOUND", "routing", False)
    assert (error["message"], error["details"]) == ("No agent Bop. Did you mean Bob?", {"did_you_mean": ["Bob"]})


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (Failure("x"), "FAILED"), (Failure("x", USAGE), "INVALID_FORMAT"), (Failure("x", NOT_RUNNING), "SERVICE_UNAVAILABLE"),
        (explain_failure(OSError(28, "full")), "INTERNAL_ERROR"), (explain_failure(ValueError()), "INTERNAL_ERROR"),
        (Failure("x", code="DELIVERY_TIMEOUT"), "DELIVERY_TIMEOUT"),
    ],
)  # fmt: skip
def test_every_failure_has_a_code(failure: Failure, code: str) -> None:
    assert failure.for_programs()["error"]["code"] == code
