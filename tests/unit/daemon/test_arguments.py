"""The short way through the daemon's command line reads exactly what it knows, and means the same as the long one."""

from __future__ import annotations

import os

import pytest

from agent_relay.daemon.arguments import _read_at_length, read_arguments, read_flags
from agent_relay.daemon.settings import SETTINGS

NAMES = {"--socket": "socket", "--max-frame-bytes": "max_frame_bytes"}
SWITCHES = {"--foreground": {}, "--no-http": {"http": "false"}}
PLACE = ["--socket=/s", "--state-dir", "/d"]


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
    assert read_flags(words, NAMES, SWITCHES) == values


@pytest.mark.parametrize(
    "words", [["--help"], ["--sock", "/s"], ["--socket"], ["--socket", "--foreground"], ["word"], ["--json"]]
)
def test_anything_else_is_not(words: list[str]) -> None:
    assert read_flags(words, NAMES, SWITCHES) is None


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--project-root=/p"],
        ["--queue-capacity", "7", "--heartbeat-ms=9s"],
        [f"{setting.flag}=1" for setting in SETTINGS],
        ["--port=1", "--port", "2"],
    ],
)
def test_both_ways_read_the_same(words: list[str]) -> None:
    assert read_arguments([*PLACE, *words]) == _read_at_length([*PLACE, *words])


def test_what_is_not_plain_is_read_all_the_same() -> None:
    found = read_arguments([*PLACE, "--arc-ephemeral", "--queue-cap", "7"])
    assert (found["arc_ephemeral"], found["queue_capacity"], found["project_root"]) == ("true", "7", os.getcwd())
