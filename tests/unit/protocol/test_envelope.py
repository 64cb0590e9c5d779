from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.protocol.decode import BadFrame, decode_client_frame, decode_daemon_frame
from agent_relay.protocol.encode import encode_envelope
from agent_relay.protocol.envelope import ClientFrame, DaemonFrame
from agent_relay.protocol.framing import HEADER_BYTES

from .frames import ADDED_TYPES, CLIENT_PAYLOADS, DAEMON_PAYLOADS, V1_TYPES, as_bytes, envelope
from .strategies import identifiers, json_objects, moments


def tags(union: Any) -> set[str]:
    return {member.__struct_config__.tag for member in get_args(union)}


def test_every_type_of_the_contract_exists_and_no_other() -> None:
    assert len(V1_TYPES) == 15
    assert len(ADDED_TYPES) == 16
    assert tags(ClientFrame) | tags(DaemonFrame) == {*V1_TYPES, *ADDED_TYPES}


def test_the_examples_cover_every_type() -> None:
    assert set(CLIENT_PAYLOADS) == tags(ClientFrame)
    assert set(DAEMON_PAYLOADS) == tags(DaemonFrame)


def contains(whole: Any, part: Any) -> bool:
    """Whether everything said in `part` is said in `whole` as well; defaults may have been added."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(name in whole and contains(whole[name], part[name]) for name in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


@pytest.mark.parametrize("kind", CLIENT_PAYLOADS)
@settings(max_examples=15)
@given(id_=identifiers, ts=moments, version=st.sampled_from([1, 2]), sender=st.none() | st.text())
def test_client_frames_round_trip(kind: str, id_: str, ts: int, version: int, sender: str | None) -> None:
    said = envelope(kind, CLIENT_PAYLOADS[kind], id=id_, ts=ts, v=version)
    if sender is not None:
        said["from"] = sender
    frame = decode_client_frame(as_bytes(said))
    assert (frame.id, frame.ts, frame.v, frame.from_) == (id_, ts, version, sender)
    again = msgspec.json.encode(frame)
    assert contains(json.loads(again), said)
    assert msgspec.json.encode(decode_client_frame(again)) == again


@pytest.mark.parametrize("kind", DAEMON_PAYLOADS)
@settings(max_examples=15)
@given(id_=identifiers, ts=moments, version=st.sampled_from([1, 2]))
def test_daemon_frames_round_trip(kind: str, id_: str, ts: int, version: int) -> None:
    said = envelope(kind, DAEMON_PAYLOADS[kind], id=id_, ts=ts, v=version)
    frame = decode_daemon_frame(as_bytes(said))
    assert (frame.id, frame.ts, frame.v) == (id_, ts, version)
    again = msgspec.json.encode(frame)
    assert contains(json.loads(again), said)
    assert msgspec.json.encode(decode_daemon_frame(again)) == again


@pytest.mark.parametrize("kind", CLIENT_PAYLOADS)
def test_what_the_encoder_writes_the_decoder_reads(kind: str) -> None:
    frame = encode_envelope(kind, "x", 5, CLIENT_PAYLOADS[kind], to=None, from_="Alice")
    assert contains(json.loads(msgspec.json.encode(decode_client_frame(frame[HEADER_BYTES:]))), json.loads(frame[HEADER_BYTES:]))


@given(kind=st.sampled_from(sorted(CLIENT_PAYLOADS)), more=json_objects, inside=json_objects)
def test_unknown_fields_are_ignored_everywhere(kind: str, more: dict[str, Any], inside: dict[str, Any]) -> None:
    extra = {f"x-{name}": value for name, value in more.items()}
    extra_inside = {f"x-{name}": value for name, value in inside.items()}
    plain = decode_client_frame(as_bytes(envelope(kind, CLIENT_PAYLOADS[kind])))
    found = decode_client_frame(as_bytes(extra | envelope(kind, extra_inside | CLIENT_PAYLOADS[kind])))
    if kind == "SEND":
        assert contains(json.loads(msgspec.json.encode(found)), json.loads(msgspec.json.encode(plain)))
    else:
        assert msgspec.json.encode(found) == msgspec.json.encode(plain)


@pytest.mark.parametrize("kind", sorted(tags(DaemonFrame) - tags(ClientFrame)))
def test_a_client_cannot_say_what_is_the_daemons_to_say(kind: str) -> None:
    with pytest.raises(BadFrame) as caught:
        decode_client_frame(as_bytes(envelope(kind, DAEMON_PAYLOADS[kind])))
    assert caught.value.details == {"type": kind}


def test_the_payload_of_a_message_stays_as_it_came() -> None:
    spelled = b'{ "body" : "\\u0041",\n"z":1.0 }'
    frame = decode_client_frame(b'{"v":1,"type":"SEND","id":"a","ts":1,"payload": \n' + spelled + b" }")
    assert bytes(frame.payload) == spelled  # type: ignore[arg-type]
