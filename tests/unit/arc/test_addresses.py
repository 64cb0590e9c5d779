"""One address, written in many ways."""

from __future__ import annotations

import pytest

from agent_relay.arc.addresses import parse_address
from agent_relay.arc.errors import ArcError


@pytest.mark.parametrize(
    "url",
    ["ws://Relay.example:3888/arc", "http://relay.example:3888", "relay.example:3888", "http://relay.example:3888/", "ws://relay.example:3888/arc/"],
)  # fmt: skip
def test_one_relay_has_one_address(url: str) -> None:
    address = parse_address(url)
    assert (address.socket_url, address.http_url) == ("ws://relay.example:3888/arc", "http://relay.example:3888")


def test_tls_and_a_path_in_front_are_kept() -> None:
    address = parse_address("https://example.com/relays/one/arc")
    assert (address.socket_url, address.http_url) == ("wss://example.com/relays/one/arc", "https://example.com/relays/one")


@pytest.mark.parametrize("url", ["", "ftp://x", "ws://", "ws://x:port", "ws://[::1"])
def test_what_is_no_address_is_said(url: str) -> None:
    with pytest.raises(ArcError):
        parse_address(url)


@pytest.mark.parametrize("url", ["ws://x/arc?token=tok_secret", "ws://tok_secret@x/arc", "ws://x/arc#tok_secret"])
def test_a_token_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ArcError) as caught:
        parse_address(url)
    assert "tok_secret" not in str(caught.value)
