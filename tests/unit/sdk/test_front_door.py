"""`import agent_relay`: what is there, and what it must not bring along."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import agent_relay
from agent_relay.protocol.errors import RelayError
from agent_relay.sdk import errors

_SERVER_SIDE = ("core", "storage", "transports", "cluster", "dashboard", "daemon", "cli", "ports")
_FOREIGN = ("typer", "rich", "uvloop", "sqlite3", "httpx")


def modules_after(statement: str) -> set[str]:
    code = f"import sys, json; {statement}; json.dump(sorted(sys.modules), sys.stdout)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return set(json.loads(done.stdout))


def test_no_name_brings_in_the_servers_side() -> None:
    names = ", ".join(f"agent_relay.{name}" for name in agent_relay.__all__)
    loaded = modules_after(f"import agent_relay; {names}")
    assert {"agent_relay.sdk.client", "agent_relay.sdk.sync", "agent_relay.patterns"} <= loaded
    wrong = {f"agent_relay.{room}" for room in _SERVER_SIDE} | set(_FOREIGN)
    assert not {module for module in loaded if any(module == bad or module.startswith(bad + ".") for bad in wrong)}


def test_every_error_of_the_sdk_is_at_the_front_door() -> None:
    raised = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, RelayError)}
    assert raised >= {"TimedOut", "ConnectionLost"}
    assert raised | {"ErrorCode"} <= set(agent_relay.__all__)


def test_the_package_alone_loads_nothing_of_ours_but_its_version() -> None:
    loaded = modules_after("import agent_relay")
    assert {module for module in loaded if module.startswith("agent_relay")} == {"agent_relay", "agent_relay.version"}


def test_the_names_are_there_and_others_are_not() -> None:
    for name in agent_relay.__all__:
        assert getattr(agent_relay, name) is not None
        assert name in dir(agent_relay)
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = agent_relay.Nonsense
