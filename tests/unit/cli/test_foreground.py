"""The short way of `up --foreground` reads exactly what it knows, and leaves everything else to the long way."""

from __future__ import annotations

import pytest

from agent_relay.cli.foreground import daemon_arguments, run_in_foreground


@pytest.mark.parametrize(
    "words", [[], ["up"], ["status", "--foreground"], ["up", "--foreground", "--help"], ["up", "--foreground", "x"]]
)
def test_other_commands_go_the_long_way(words: list[str]) -> None:
    assert run_in_foreground(words) is None


def test_values_that_look_like_flags_reach_the_daemon_as_values() -> None:
    assert daemon_arguments("/s", "/d", "/r", {"allowed_uids": "-1"}) == [
        "--socket=/s", "--state-dir=/d", "--project-root=/r", "--allowed-uids=-1",
    ]  # fmt: skip
