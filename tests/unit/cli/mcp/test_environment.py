"""What the wrapper handed down: whole, as names that nobody expanded, or to be found above."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from agent_relay.cli.mcp.environment import HANDED_DOWN, restore
from agent_relay.protocol.places import ENV_NAME, ENV_SOCKET, ENV_TOKEN

_LOOK = """
import json, os
from agent_relay.cli.mcp.environment import restore
restore()
print(json.dumps({name: value for name, value in os.environ.items() if name.startswith("AGENT_RELAY_")}))
"""
GIVEN = {name: f"of {name}" for name in HANDED_DOWN}


def look(started_with: dict[str, str], above: dict[str, str]) -> dict[str, str]:
    """What a server finds that is started with one environment, below a program with another."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_RELAY_")}
    words = [sys.executable, "-c", _LOOK]
    start = f"import subprocess; subprocess.run({words!r}, env={own | started_with!r}, check=True)"
    done = subprocess.run(
        [sys.executable, "-c", start], env=own | above, capture_output=True, text=True, timeout=120, check=True
    )  # fmt: skip
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_variables_that_stand_for_nothing_are_dropped() -> None:
    environ = {
        "AGENT_RELAY_NAME": "$AGENT_RELAY_NAME", "AGENT_RELAY_TOKEN": "${AGENT_RELAY_TOKEN:-}", "AGENT_RELAY_OUTBOX": "",
        "AGENT_RELAY_SOCKET": "/a/socket", "HOME": "$AGENT_RELAY_NAME",
    }  # fmt: skip
    restore(environ)
    assert environ == {"AGENT_RELAY_SOCKET": "/a/socket", "HOME": "$AGENT_RELAY_NAME"}


def test_what_the_cli_kept_back_is_found_above() -> None:
    assert look({}, GIVEN) == GIVEN
    assert look({ENV_NAME: f"${ENV_NAME}"}, GIVEN) == GIVEN


def test_without_a_wrapper_above_nothing_is_made_up() -> None:
    assert look({}, {name: value for name, value in GIVEN.items() if name != ENV_TOKEN}) == {}


def test_whoever_was_given_a_name_keeps_what_they_were_given() -> None:
    own = {ENV_NAME: "Script", ENV_SOCKET: "/a/socket"}
    assert look(own, GIVEN) == own
