"""The name a command speaks as."""

from __future__ import annotations

import pytest

from agent_relay.cli.person import person
from agent_relay.cli.project.link import own_name
from agent_relay.protocol.errors import RelayError


def test_the_option_goes_before_the_environment_and_that_before_the_login() -> None:
    environ = {"AGENT_RELAY_NAME": "Worker"}
    assert own_name("Alice", environ) == ("Alice", False)
    assert own_name(None, environ) == ("Worker", False)
    assert own_name(None, {"LOGNAME": "somebody-else"}) == (person(), True)


@pytest.mark.parametrize("name", ["a/b", "relay", "x" * 65, "-a"])
def test_a_name_nobody_can_have_is_refused_before_connecting(name: str) -> None:
    with pytest.raises(RelayError):
        own_name(name, {})
