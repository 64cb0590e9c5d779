from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.negotiation import CAPABILITIES, negotiate_capabilities, negotiate_version

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
