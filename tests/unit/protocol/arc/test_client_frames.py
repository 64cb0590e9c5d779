"""What a client over ARC says: any JSON at all is either understood or refused in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.arc.client_frames import is_command, read_payload, read_ref, read_said
from agent_relay.protocol.arc.codes import ArcCode, ArcProblem

SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)


@given(text=st.binary(max_size=300) | JSON.map(lambda value: json.dumps(value).encode()))
def test_anything_is_understood_or_refused(text: bytes) -> None:
    try:
        said = read_said(text)
    except ArcProblem as found:
        problem = found
    else:
        assert said.to
        assert is_command(said) or len(said.payload)
        return
    assert problem.code is ArcCode.INVALID_MESSAGE
    assert problem.message


@given(
    to=st.lists(st.text(), min_size=1, max_size=4),
    payload=JSON,
    kind=st.none() | st.text(),
    ref=JSON,
    extras=st.dictionaries(st.text(), JSON),
)
def test_every_field_is_found_as_it_was(to: list[str], payload: Any, kind: str | None, ref: Any, extras: dict[str, Any]) -> None:
    own = {"to": to, "payload": payload, "type": kind, "ref": ref, "id": "x", "from": "y", "ts": 1}
    said = read_said(json.dumps(extras | own).encode())
    assert said.to == to
    assert json.loads(bytes(said.payload)) == payload
    assert said.type == kind
    assert read_ref(said) == ref
    assert {name: json.loads(bytes(raw)) for name, raw in said.extras.items()} == {
        name: value for name, value in extras.items() if name not in own
    }


@pytest.mark.parametrize(("text", "payload"), [(b'{"to":["relay"],"type":"ping"}', {}), (b'{"to":["relay"],"payload":null}', {})])
def test_a_command_needs_no_payload(text: bytes, payload: dict[str, Any]) -> None:
    assert read_payload(read_said(text)) == payload


@pytest.mark.parametrize("payload", ["1", '"x"', "[]", "1e999"])
def test_the_payload_of_a_command_is_an_object(payload: str) -> None:
    said = read_said(f'{{"to":["relay"],"ref":7,"payload":{payload}}}'.encode())
    with pytest.raises(ArcProblem) as problem:
        read_payload(said)
    assert problem.value.ref == 7
