"""Who is joined: from flags and from a file, and what cannot be."""

from __future__ import annotations

import pytest

from agent_relay.bridge.plan import Plan, make_plan, read_pairs, read_plan
from agent_relay.protocol.errors import RelayError

URL = "wss://relay.example.com/arc"


def test_pairs() -> None:
    assert read_pairs(["Alice=alice-acme", "bob"], "--map") == {"Alice": "alice-acme", "bob": "bob"}
    with pytest.raises(RelayError, match="twice"):
        read_pairs(["a=b", "a=c"], "--map")


def test_a_file_says_the_same_as_flags() -> None:
    content = f'url = "{URL}"\nbroadcasts = true\n[map]\nAlice = "alice-acme"\n[peers]\nbob-7 = "Bob"\n'
    assert read_plan(content, "bridge.toml") == Plan(URL, {"Alice": "alice-acme"}, {"bob-7": "Bob"}, broadcasts=True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("url =", "not valid TOML"),
        ("[map]\nAlice = 'alice-acme'", "url"),
        (f"url = '{URL}'", "No agents to bridge"),
        (f"url = '{URL}'\nmap = 'x'", "table"),
        (f"url = '{URL}'\ncolour = 1\n[map]\nAlice = 'alice-acme'", "colour"),
        (f"url = '{URL}'\n[map]\nAlice = 7", "table"),
    ],
)
def test_a_file_that_is_wrong_is_said(content: str, said: str) -> None:
    with pytest.raises(RelayError, match=said):
        read_plan(content, "bridge.toml")


@pytest.mark.parametrize(
    ("joined", "peers", "said"),
    [
        ({}, {}, "No agents"),
        ({"Alice": "Alice!"}, {}, "not a valid ARC agent id"),
        ({"a b": "alice-acme"}, {}, "name"),
        ({"relay": "alice-acme"}, {}, "reserved"),
        ({"Alice": "one", "Carol": "one"}, {}, "same remote id"),
        ({"Alice": "one"}, {"bob-7": "ALICE"}, "only stand for one agent"),
        ({"Alice": "one"}, {"one": "Bob"}, "already the remote id"),
        ({"Alice": "one"}, {"no_id": "Bob"}, "not a valid ARC agent id"),
    ],
)
def test_what_cannot_be_is_said(joined: dict[str, str], peers: dict[str, str], said: str) -> None:
    with pytest.raises(RelayError, match=said):
        make_plan(URL, joined, peers, broadcasts=False)
