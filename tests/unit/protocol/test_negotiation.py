from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.negotiation import CAPABILITIES, negotiate_capabilities, negotiate_version, negotiate_window

from .strategies import json_values


@pytest.mark.parametrize(("asked", "spoken"), [(1, 1), (2, 2), (3, 2), (10**30, 2)])
def test_the_lower_of_the_two(asked: int, spoken: int) -> None:
    assert negotiate_version(asked) == spoken


@pytest.mark.parametrize("asked", [0, -1, -(10**30)])
def test_no_common_version(asked: int) -> None:
    with pytest.raises(RelayError) as caught:
        negotiate_version(asked)
    assert caught.value.code is ErrorCode.VERSION_MISMATCH
    assert caught.value.details == {"supported": [1, 2]}


@given(st.dictionaries(st.sampled_from([*CAPABILITIES, "shadows", "of_the_future", "max_inflight"]), json_values))
def test_what_both_have_and_nothing_else(asked: dict[str, object]) -> None:
    found = negotiate_capabilities(asked)
    assert set(found) == {name for name, value in asked.items() if value is True} & set(CAPABILITIES)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(("asked", "window"), [(1, 1), (64, 64), (65, 64), (0, 64), (-1, 64), (True, 64), ("9", 64), (None, 64)])
def test_a_window_is_no_wider_than_ours(asked: object, window: int) -> None:
    assert negotiate_window({"max_inflight": asked}, 64) == window
    assert negotiate_window({}, 64) == 64


def test_everything_we_have_is_of_the_contract() -> None:
    contract = {
        "ack",
        "resume",
        "supports_topics",
        "sync",
        "backpressure",
        "checksums",
        "sequences",
        "priorities",
        "channels",
        "shadows",
        "events",
    }
    assert set(CAPABILITIES) <= contract | {"control", "consensus"}
    assert negotiate_capabilities(dict.fromkeys(contract | {"control", "consensus"}, True)) == CAPABILITIES
