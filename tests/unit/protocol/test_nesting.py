from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from agent_relay.protocol.nesting import MAX_NESTING, SHALLOW_BYTES, is_too_deep, measure_nesting

from .strategies import json_values, nested, spellings

tricky = st.recursive(
    st.integers() | st.text('[]{}"\\/é,:'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('[]{}"\\'), inner, max_size=3),
)


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


@given(spellings(json_values | tricky))
def test_against_a_reference(value: tuple[Any, bytes]) -> None:
    assert measure_nesting(value[1]) == depth_of(value[0])


@pytest.mark.parametrize("around", [nested, lambda levels, inner: '{"a":' * levels + (inner or "0") + "}" * levels])
@pytest.mark.parametrize("inner", ["", json.dumps("[" * 1_000), json.dumps('\\"]' * 1_000)])
def test_the_limit(around: Any, inner: str) -> None:
    assert not is_too_deep(around(MAX_NESTING, inner).encode())
    assert is_too_deep(around(MAX_NESTING + 1, inner).encode())
    assert is_too_deep(Raw(around(MAX_NESTING + 1, inner).encode()))


def test_wide_is_not_deep() -> None:
    assert not is_too_deep(b"[" + b"[]," * 10_000 + b"[{}]]")


def test_nothing_short_can_be_deep() -> None:
    assert measure_nesting(nested(SHALLOW_BYTES // 2).encode()) <= MAX_NESTING
