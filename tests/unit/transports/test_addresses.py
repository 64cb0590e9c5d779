"""Which addresses count as one."""

from __future__ import annotations

import pytest

from agent_relay.transports.addresses import LOOPBACK, neighbourhood


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.8.7", "::1", "::ffff:127.0.0.1"])
def test_all_of_this_machine_is_one(address: str) -> None:
    assert neighbourhood(address) == LOOPBACK


def test_a_network_of_ipv6_is_one_and_an_address_of_ipv4() -> None:
    assert neighbourhood("2001:db8::1") == neighbourhood("2001:db8::ffff:1") != neighbourhood("2001:db8:0:1::1")
    assert neighbourhood("fe80::1%eth0") == neighbourhood("fe80::2%eth1")
    assert neighbourhood("192.0.2.1") == neighbourhood("::ffff:192.0.2.1") != neighbourhood("192.0.2.2")
    assert neighbourhood("") == ""
