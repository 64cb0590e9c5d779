"""The short way of `up --foreground` reads exactly what it knows, and leaves everything else to the long way."""

from __future__ import annotations

import pytest

from agent_relay.cli.foreground import daemon_arguments, read_flags, run_in_foreground

NAMES = {"--socket": "socket", "--max-frame-bytes": "max_frame_bytes"}


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["--foreground"], {}),
        (["--foreground", "--no-http", "--socket", "/s"], {"http": "false", "socket": "/s"}),
        (["--socket=/s=t", "--foreground"], {"socket": "/s=t"}),
        (["--socket=", "--max-frame-bytes", "5"], {"socket": "", "max_frame_bytes": "5"}),
        (["--socket", "/a", "--socket", "/b"], {"socket": "/b"}),
    ],
)
def test_plain_flags_are_read(words: list[str], values: dict[str, str]) -> None:
    assert read_flags(words, NAMES) == values


@pytest.mark.parametrize(
    "words", [["--help"], ["--sock", "/s"], ["--socket"], ["--socket", "--foreground"], ["word"], ["--json"]]
)
def test_anything_else_is_not(words: list[str]) -> None:
    assert read_flags(words, NAMES) is None


@pytest.mark.parametrize(
    "words", [[], ["up"], ["status", "--foreground"], ["up", "--foreground", "--help"], ["up", "--foreground", "x"]]
)
def test_other_commands_go_the_long_way(words: list[str]) -> None:
    assert run_in_foreground(words) is None


def test_values_that_look_like_flags_reach_the_daemon_as_values() -> None:
    assert daemon_arguments("/s", "/d", "/r", {"allowed_uids": "-1"}) == [
        "--socket=/s", "--state-dir=/d", "--project-root=/r", "--allowed-uids=-1",
    ]  # fmt: skip
