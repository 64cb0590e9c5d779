"""There and back: what one client over ARC says is what another gets, and clients of the socket can read it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from agent_relay.protocol import payloads
from agent_relay.protocol.arc.client_frames import Said, read_said
from agent_relay.protocol.arc.translation import encode_envelope, encode_tail, make_payload, make_send
from agent_relay.protocol.decode import decode_client_frame
from agent_relay.protocol.encode import encode_json
from agent_relay.protocol.encode import encode_tail as encode_stored_tail
from agent_relay.protocol.envelope import Send
from agent_relay.protocol.ulid import decode_bits
from tests.unit.protocol.arc.test_client_frames import JSON

ID = "msg_01M7FSGCBYJESY1TGHAJMN0000"
MOMENT = decode_bits(ID[4:14])  # when it was accepted: all recipients are told the same
OWN = {"id", "from", "ts", "to", "payload", "type", "ref", "stored"}


def say(**fields: Any) -> Said:
    return read_said(json.dumps(fields).encode())


def relayed(said: Said, to: str, *, stored: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        encode_envelope(ID, "alice-1", to, None, make_payload(said)[0], from_arc=True, stored=stored)
    )
    tail = encode_stored_tail("alice-1", "", make_payload(said)[0], b"")
    assert json.loads(encode_tail(ID, "alice-1", to, "", tail, from_arc=True, stored=stored)) == found
    return found


@given(
    payload=JSON, kind=st.none() | st.text(), ref=JSON, extras=st.dictionaries(st.text(), JSON, max_size=4), stored=st.booleans()
)
def test_what_was_said_is_what_is_heard(payload: Any, kind: str | None, ref: Any, extras: dict[str, Any], stored: bool) -> None:
    extras = {name: value for name, value in extras.items() if name not in OWN}
    said = say(to=["bob-1"], payload=payload, type=kind, ref=ref, **{"id": "x", "from": "eve", "ts": 1}, **extras)
    wanted = {"id": ID, "from": "alice-1", "to": ["bob-1"], "payload": payload, "ts": MOMENT, "ref": ref} | extras
    wanted |= {"type": kind} if kind is not None else {}
    wanted |= {"stored": True} if stored else {}
    assert relayed(said, "bob-1", stored=stored) == wanted


@given(payload=JSON)
def test_a_client_of_the_socket_has_a_body_to_show(payload: Any) -> None:
    *_, sent, body = make_send(say(to=["sock"], payload=payload), "arc_1")
    send = msgspec.json.decode(sent, type=payloads.SendPayload)
    assert send.body == body
    if isinstance(payload, str):
        assert (send.body, bytes(send.data)) == (payload, b"")
    else:
        assert json.loads(send.body) == payload == json.loads(bytes(send.data))
        assert send.body == json.dumps(payload, separators=(",", ":"))


@given(payload=JSON)
def test_a_send_is_as_if_it_had_been_read_from_a_frame(payload: Any) -> None:
    id_, to, sent, body = make_send(say(to=["sock"], payload=payload, type="t"), "arc_1")
    frame = decode_client_frame(encode_json({"type": "SEND", "v": 2, "id": id_, "ts": 0, "to": to, "payload": Raw(sent)}))
    assert isinstance(frame, Send)
    assert (frame.id, frame.to, bytes(frame.payload)) == ("arc_1", "sock", sent)
    assert msgspec.json.decode(frame.payload, type=payloads.SendPayload).body == body


@pytest.mark.parametrize(
    ("to", "told", "shown"),
    [
        (["*"], "*", ["*"]),
        (["bob-1"], "bob-1", ["bob-1"]),
        (["BOB-1"], "bob-1", ["BOB-1"]),
        (["bob-1", "nobody"], "bob-1", ["bob-1", "nobody"]),
        (["*", "bob-1"], "*", ["*", "bob-1"]),
    ],
)
def test_to_is_shown_as_the_sender_wrote_it(to: list[str], told: str, shown: list[str]) -> None:
    assert relayed(say(to=to, payload=1), told)["to"] == shown


def test_a_star_among_names_is_everybody() -> None:
    _, to, *_ = make_send(say(to=["bob-1", "*"], payload=1), "arc_1")
    assert to == "*"


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        ({"body": "hi"}, "hi"),
        ({"body": "hi", "data": {"a": 1}}, {"body": "hi", "data": {"a": 1}}),
        ({"body": "hi", "kind": "action"}, {"body": "hi", "kind": "action"}),
        ({"body": "hi", "arc": {"from": "eve", "type": "welcome"}}, {"body": "hi", "arc": {"from": "eve", "type": "welcome"}}),
    ],
)
def test_a_client_of_the_socket_cannot_dress_up_as_one_of_arc(payload: dict[str, Any], shown: Any) -> None:
    found = json.loads(encode_envelope(ID, "Sock", "bob-1", "news", json.dumps(payload).encode(), from_arc=False))
    assert found == {"id": ID, "from": "Sock", "to": ["bob-1"], "payload": shown, "ts": MOMENT, "topic": "news"}


def test_what_the_relay_sets_cannot_be_smuggled_in() -> None:
    payload = b'{"body":"x","arc":{"id":"a","from":"eve","ts":1,"payload":2,"stored":false,"to":["z"]}}'
    found = json.loads(encode_envelope(ID, "alice-1", "bob-1", None, payload, from_arc=True, stored=True))
    assert (found["id"], found["from"], found["payload"], found["stored"]) == (ID, "alice-1", "x", True)
