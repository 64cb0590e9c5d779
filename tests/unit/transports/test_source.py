"""One machine and one network are one source, however many addresses they come from."""

from __future__ import annotations

import pytest

from agent_relay.transports.source import LOOPBACK, source_of


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "127.255.0.9", "::1", "::ffff:127.0.0.7"])
def test_all_of_loopback_is_one_source(address: str) -> None:
    assert source_of(address) == LOOPBACK


def test_addresses_of_one_ipv6_network_are_one_source() -> None:
    assert source_of("2001:db8:1:2::1") == source_of("2001:db8:1:2:ffff::9") == source_of("2001:db8:1:2::5%eth0")
    assert source_of("2001:db8:1:2::1") != source_of("2001:db8:1:3::1")


def test_other_addresses_stand_for_themselves() -> None:
    assert source_of("192.0.2.1") == "192.0.2.1" != source_of("192.0.2.2")
    assert source_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert source_of("") == ""
    assert source_of("nonsense") == "nonsense"


def test_loopback_of_another_host_is_a_source_of_its_own() -> None:
    assert source_of("b/127.0.0.1") == source_of("b/127.9.9.9") == source_of("b/::1") == "b/loopback"
    assert source_of("b/127.0.0.1") != source_of("c/127.0.0.1") != source_of("127.0.0.1")
    assert source_of("b/192.0.2.1") == "b/192.0.2.1"
