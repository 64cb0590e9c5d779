"""The name a command speaks as."""

from __future__ import annotations

import pytest

from agent_relay.cli.link import login_name, own_name
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.names import check_agent_name


@pytest.mark.parametrize("login", ["anna", "Anna Ó Brien", "DOMAIN\\user", "-", "ж" * 80, "x" * 200, "a/b"])
def test_every_login_gives_a_usable_name(login: str) -> None:
    name = login_name({"LOGNAME": login})
    assert name.startswith("cli-")
    check_agent_name(f"{name}-9")


def test_a_plain_login_stays_readable() -> None:
    assert login_name({"LOGNAME": "anna"}) == login_name({"USER": "anna"}) == "cli-anna"


def test_the_option_goes_before_the_environment_and_that_before_the_login() -> None:
    environ = {"AGENT_RELAY_NAME": "Worker", "LOGNAME": "anna"}
    assert own_name("Alice", environ) == ("Alice", False)
    assert own_name(None, environ) == ("Worker", False)
    assert own_name(None, {"LOGNAME": "anna"}) == ("cli-anna", True)


@pytest.mark.parametrize("name", ["a/b", "relay", "x" * 65, "-a"])
def test_a_name_nobody_can_have_is_refused_before_connecting(name: str) -> None:
    with pytest.raises(RelayError):
        own_name(name, {})
