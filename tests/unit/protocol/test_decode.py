from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from agent_relay.protocol.decode import (
    DEFAULT_META,
    BadFrame,
    decode_client_frame,
    decode_daemon_frame,
    decode_meta,
    decode_send,
    is_object,
)
from agent_relay.protocol.envelope import ClientFrame, Send
from agent_relay.protocol.errors import ErrorCode, RelayError

from .frames import CLIENT_PAYLOADS, DAEMON_PAYLOADS, REQUIRED, as_bytes, envelope
from .strategies import json_objects, json_values, nested, spellings


def refuse(frame: bytes) -> BadFrame:
    with pytest.raises(BadFrame) as caught:
        decode_client_frame(frame)
    return caught.value


def read_send(frame: bytes) -> Any:
    found = decode_client_frame(frame)
    assert isinstance(found, Send)
    decode_meta(found.payload_meta)
    return decode_send(found.payload)


def refuse_send(frame: bytes) -> RelayError:
    with pytest.raises(RelayError) as caught:
        read_send(frame)
    return caught.value


# --- not even an object ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b" ",
        b"{",
        b"null",
        b"5",
        b'"HELLO"',
        b"[]",
        b"[{}]",
        b"{'v':1}",
        b'{"v":1}{"v":1}',
        b'{"v":NaN}',
        b"\x00",
        b"\xef\xbb\xbf{}",
        b'{"v":1,}',
        as_bytes(envelope("PING")) + b"x",
    ],
)
@pytest.mark.parametrize("decode", [decode_client_frame, decode_daemon_frame])
def test_malformed(frame: bytes, decode: Any) -> None:
    with pytest.raises(BadFrame) as caught:
        decode(frame)
    bad = caught.value
    assert bad.malformed
    assert bad.code is ErrorCode.INVALID_FORMAT
    assert (bad.request_id, bad.type) == (None, None)
    assert bad.message.endswith(".")


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80"])
@pytest.mark.parametrize(
    "frame",
    [
        b'{"v":1,"type":"SEND","id":"%s","ts":1,"payload":{"body":"x"}}',
        b'{"v":1,"type":"SEND","id":"a","ts":1,"payload":{"body":"%s"}}',
        b'{"v":1,"type":"SEND","id":"a","ts":1,"payload":{"body":"x","data":{"%s":1}}}',
        b'{"v":1,"type":"SEND","id":"a","ts":1,"payload":{"body":"x"},"payload_meta":{"%s":1}}',
        b'{"v":1,"type":"SEND","id":"a","ts":1,"payload":{"body":"x"},"unknown":["%s"]}',
        b'{"v":1,"type":"PING","id":"a","ts":1,"payload":{"nonce":"%s"}}',
        b'{"v":1,"type":"%s","id":"a","ts":1,"payload":{}}',
    ],
)
def test_invalid_utf_8_anywhere(frame: bytes, bad: bytes) -> None:
    found = refuse(frame % bad)
    assert found.malformed
    assert f"byte {frame.index(b'%s')} " in found.message


def test_invalid_utf_8_from_the_daemon() -> None:
    frame = as_bytes(envelope("DELIVER", {"body": "#"}))
    with pytest.raises(BadFrame) as caught:
        decode_daemon_frame(frame.replace(b"#", b"\xff"))
    assert f"byte {frame.index(b'#')} " in caught.value.message


@pytest.mark.parametrize("surrogate", [r"\ud800", r"\udfff", r"\ud800\u0041", r"\udc00\ud800", r"\ud83dx"])
@pytest.mark.parametrize(
    "frame",
    [
        '{"v":1,"type":"SEND","id":"%s","ts":1,"payload":{"body":"x"}}',
        '{"v":1,"type":"SEND","id":"a","ts":1,"payload":{"body":"%s"}}',
        '{"v":1,"type":"SEND","id":"a","ts":1,"payload":{"body":"x","data":{"a":"%s"}}}',
        '{"v":1,"type":"SEND","id":"a","ts":1,"payload":{"body":"x"},"topic":"%s"}',
        '{"v":1,"type":"PING","id":"a","ts":1,"payload":{"nonce":"%s"}}',
    ],
)
def test_lone_surrogates(frame: str, surrogate: str) -> None:
    assert refuse((frame % surrogate).encode()).malformed
    assert read_send((frame % "ok").replace('"PING"', '"SEND"').replace("nonce", "body").encode())


@pytest.mark.parametrize("levels", [1_000, 10_000, 500_000])
@pytest.mark.parametrize("place", ['"payload":{"nonce":%s}', '"payload":{},"unknown":%s', '"payload":%s'])
def test_deep_nesting_is_no_crash(levels: int, place: str) -> None:
    frame = f'{{"v":1,"type":"PING","id":"a","ts":1,{place % nested(levels)}}}'.encode()
    assert refuse(frame).malformed
    with pytest.raises(BadFrame):
        decode_daemon_frame(frame)


# --- envelopes ---------------------------------------------------------------------------------------------------

WRONG_VALUES: dict[str, list[Any]] = {
    "v": [None, 0, 3, -1, "1", True, 1.5, [], {}, 10**30],
    "type": [None, 5, True, [], {}],
    "id": [None, 5, True, "", "x" * 129, [], {}],
    "ts": [None, "1", True, [], {}],
    "payload": [None, 5, "x", True, [], [{}]],
}


@pytest.mark.parametrize("kind", [kind for kind in CLIENT_PAYLOADS if kind != "SEND"])
@pytest.mark.parametrize("field", WRONG_VALUES)
def test_a_missing_or_mistyped_envelope_field_is_named(kind: str, field: str) -> None:
    good = envelope(kind, CLIENT_PAYLOADS[kind])
    missing = {name: value for name, value in good.items() if name != field}
    wrong = [good | {field: value} for value in WRONG_VALUES[field]]
    for frame in (missing, *wrong):
        bad = refuse(as_bytes(frame))
        assert bad.code is ErrorCode.INVALID_FORMAT
        assert bad.details == {"field": field}
        assert f"`{field}`" in bad.message
        assert not bad.malformed
        assert bad.request_id == (None if field == "id" else "id-1")
        assert bad.type == (None if field == "type" else kind)


@pytest.mark.parametrize("value", [None, 5, "x", True, [], [{}]])
def test_the_payload_of_a_message_is_known_to_be_no_object(value: Any) -> None:
    frame = decode_client_frame(as_bytes(envelope("SEND") | {"payload": value}))
    assert isinstance(frame, Send)
    assert not is_object(frame.payload)
    error = refuse_send(as_bytes(envelope("SEND") | {"payload": value}))
    assert error.details == {"field": "payload"}


def test_a_message_without_payload() -> None:
    bad = refuse(as_bytes({"v": 1, "type": "SEND", "id": "a", "ts": 1}))
    assert bad.details == {"field": "payload"}
    assert bad.request_id == "a"


@pytest.mark.parametrize("spaces", ["", " ", "\n\t\r  "])
def test_spaces_around_a_raw_part_are_not_part_of_it(spaces: str) -> None:
    text = '{"v":1,"type":"SEND","id":"a","ts":1,"payload":#{"body":"x"}#,"payload_meta":#{}#}'.replace("#", spaces)
    frame = decode_client_frame(text.encode())
    assert isinstance(frame, Send)
    assert (bytes(frame.payload), bytes(frame.payload_meta)) == (b'{"body":"x"}', b"{}")
    assert is_object(frame.payload)
    assert is_object(frame.payload_meta)
    assert not is_object(Raw())


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 5_000])
@pytest.mark.parametrize("field", ["v", "ts", "id", "type"])
def test_a_number_out_of_range_is_blamed_on_its_field(field: str, number: str) -> None:
    frame = json.dumps(envelope("PING") | {field: "#"}).replace('"#"', number).encode()
    bad = refuse(frame)
    assert (bad.details, bad.malformed) == ({"field": field}, False)


def test_a_deep_value_in_a_field_of_the_envelope_is_blamed_on_it() -> None:
    frame = json.dumps(envelope("PING") | {"v": "#"}).replace('"#"', nested(200)).encode()
    assert refuse(frame).details == {"field": "v"}


@pytest.mark.parametrize(("field", "values"), [("to", [5, {}, ["a", 5], True]), ("topic", [5, []]), ("from", [5, []])])
def test_optional_envelope_fields_of_a_message(field: str, values: list[Any]) -> None:
    for value in values:
        bad = refuse(as_bytes(envelope("SEND", {"body": "x"}, **{field: value})))
        assert bad.details == {"field": field}
        assert (bad.request_id, bad.type) == ("id-1", "SEND")  # enough to answer with a NACK


@pytest.mark.parametrize("kind", ["", "NOPE", "hello", "DELIVER", "WELCOME", "x" * 1_000, "Ω\n"])
def test_an_unknown_type(kind: str) -> None:
    bad = refuse(as_bytes(envelope(kind)))
    assert bad.code is ErrorCode.FEATURE_UNSUPPORTED
    assert bad.details == {"type": kind[:128]}
    assert bad.request_id == "id-1"
    assert not bad.malformed
    assert "\n" not in bad.message
    assert len(bad.message) < 200


def test_an_unknown_type_with_a_bad_envelope_is_a_bad_envelope() -> None:
    assert refuse(as_bytes(envelope("NOPE", v=9))).details == {"field": "v"}


# --- payloads ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, fields in REQUIRED.items() for field in fields])
@pytest.mark.parametrize("wrong", ["missing", "mistyped"])
def test_a_wrong_payload_field_is_named(kind: str, field: str, wrong: str) -> None:
    payload = dict(CLIENT_PAYLOADS[kind])
    del payload[field]
    if wrong == "mistyped":
        payload[field] = 5
    frame = as_bytes(envelope(kind) | {"payload": payload})
    error = refuse_send(frame) if kind == "SEND" else refuse(frame)
    assert error.code is ErrorCode.INVALID_FORMAT
    assert error.details == {"field": f"payload.{field}"}


@pytest.mark.parametrize(
    ("kind", "payload", "field"),
    [
        ("HELLO", {"agent": "A", "session": 5}, "session"),
        ("HELLO", {"agent": "A", "session": {"resume_token": 5}}, "session.resume_token"),
        ("HELLO", {"agent": "A", "version": "2"}, "version"),
        ("HELLO", {"agent": "A", "capabilities": ["ack"]}, "capabilities"),
        ("RESUME", {"agent": "A", "resume_token": "t", "streams": 5}, "streams"),
        ("RESUME", {"agent": "A", "resume_token": "t", "streams": [{"last_seq": -1}]}, "streams"),
        ("RESUME", {"agent": "A", "resume_token": "t", "streams": {"a": {"last_seq": "x"}}}, "streams"),
        ("CANCEL", {"correlationId": "x" * 129}, "correlationId"),
        ("ACK", {"ack_id": "a", "seq": -1}, "seq"),
        ("ACK", {"ack_id": "a", "seq": 2**53}, "seq"),
        ("NACK", {"nack_id": "a", "code": "REJECTED", "retry_after_ms": -1}, "retry_after_ms"),
        ("HISTORY", {"limit": 0}, "limit"),
        ("HISTORY", {"limit": 1_001}, "limit"),
        ("HISTORY", {"since": 2**64}, "since"),
        ("HISTORY", {"with": 5}, "with"),
        ("PROPOSE", {"title": "t", "participants": ["a", 5]}, "participants"),
        ("SUBSCRIBE", {"topic": 5}, "topic"),
        ("CHANNEL_JOIN", {"channel": []}, "channel"),
    ],
)
def test_other_wrong_payload_fields(kind: str, payload: dict[str, Any], field: str) -> None:
    bad = refuse(as_bytes(envelope(kind, payload)))
    assert bad.details == {"field": f"payload.{field}"}
    assert (bad.request_id, bad.type) == ("id-1", kind)


@pytest.mark.parametrize("number", ["1e999", "9" * 5_000])
def test_a_number_out_of_range_in_a_payload(number: str) -> None:
    frame = as_bytes(envelope("PING", {"nonce": "#"})).replace(b'"#"', number.encode())
    assert refuse(frame).details == {"field": "payload.nonce"}


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({}, "body"),
        ({"body": None}, "body"),
        ({"body": 5}, "body"),
        ({"body": "x", "kind": "Message"}, "kind"),
        ({"body": "x", "kind": "message\n"}, "kind"),
        ({"body": "x", "kind": "two words"}, "kind"),
        ({"body": "x", "kind": ""}, "kind"),
        ({"body": "x", "kind": 5}, "kind"),
        ({"body": "x", "thread": 5}, "thread"),
        ({"body": "x", "data": []}, "data"),
        ({"body": "x", "data": "text"}, "data"),
        ({"body": "x", "data": None}, "data"),
    ],
)
def test_a_wrong_message_is_named(payload: dict[str, Any], field: str) -> None:
    error = refuse_send(as_bytes(envelope("SEND") | {"payload": payload}))
    assert not isinstance(error, BadFrame)  # the envelope is good: the answer is a NACK
    assert error.code is ErrorCode.INVALID_FORMAT
    assert error.details == {"field": f"payload.{field}"}


@pytest.mark.parametrize("kind", ["message", "action", "state", "thinking", "another-word", "v2.kind_x"])
def test_kinds(kind: str) -> None:
    assert read_send(as_bytes(envelope("SEND", {"body": "x", "kind": kind}))).kind == kind


def test_what_a_message_says() -> None:
    send = read_send(as_bytes(envelope("SEND", CLIENT_PAYLOADS["SEND"])))
    assert (send.body, send.kind, send.thread) == ("Hello ☃", "action", "t-1")
    assert json.loads(bytes(send.data)) == {"a": [1, None, "é"]}
    plain = read_send(as_bytes(envelope("SEND", {"body": ""})))
    assert (plain.body, plain.kind, plain.thread, len(plain.data)) == ("", "message", None, 0)


@pytest.mark.parametrize(
    ("meta", "field"),
    [
        (5, ""),
        (None, ""),
        ([], ""),
        ({"requires_ack": "yes"}, ".requires_ack"),
        ({"ttl_ms": 0}, ".ttl_ms"),
        ({"ttl_ms": -1}, ".ttl_ms"),
        ({"ttl_ms": 2**53}, ".ttl_ms"),
        ({"ttl_ms": 10**30}, ".ttl_ms"),
        ({"ttl_ms": 1.5}, ".ttl_ms"),
        ({"priority": -1}, ".priority"),
        ({"priority": 10}, ".priority"),
        ({"reply_to": 5}, ".reply_to"),
        ({"reply_to": ""}, ".reply_to"),
        ({"checksum": 5}, ".checksum"),
        ({"sync": 5}, ".sync"),
        ({"sync": {"timeoutMs": 0}}, ".sync.timeoutMs"),
        ({"sync": {"timeoutMs": "1s"}}, ".sync.timeoutMs"),
        ({"sync": {"correlationId": "x" * 129}}, ".sync.correlationId"),
        ({"sync": {"blocking": 1}}, ".sync.blocking"),
    ],
)
def test_wrong_meta_is_named(meta: Any, field: str) -> None:
    error = refuse_send(as_bytes(envelope("SEND", {"body": "x"}, payload_meta=meta)))
    assert not isinstance(error, BadFrame)
    assert error.code is ErrorCode.INVALID_FORMAT
    assert error.details == {"field": f"payload_meta{field}"}


def test_meta_and_its_defaults() -> None:
    assert decode_meta(Raw()) is DEFAULT_META
    assert (DEFAULT_META.requires_ack, DEFAULT_META.ttl_ms, DEFAULT_META.priority, DEFAULT_META.sync) == (False, None, 5, None)
    meta = decode_meta(Raw(b'{"priority":0,"sync":{"correlationId":"c","blocking":true},"new":[1]}'))
    assert meta.priority == 0
    assert meta.sync is not None
    assert (meta.sync.correlationId, meta.sync.timeoutMs, meta.sync.blocking) == ("c", 30_000, True)


# --- what is forwarded must be readable at the other end ---------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "meta", "field"),
    [
        ('{"body":"x","data":{"a":#}}', "{}", "payload"),
        ('{"body":"x","unknown":#}', "{}", "payload"),
        ('{"body":"x"}', '{"unknown":#}', "payload_meta"),
    ],
)
def test_forwarded_parts_are_not_nested_too_deeply(payload: str, meta: str, field: str) -> None:
    text = f'{{"v":1,"type":"SEND","id":"a","ts":1,"payload":{payload},"payload_meta":{meta}}}'
    read_send(text.replace("#", nested(250)).encode())
    for levels in (257, 400, 800):
        error = refuse_send(text.replace("#", nested(levels)).encode())
        assert error.code is ErrorCode.INVALID_FORMAT
        assert error.details == {"field": field}


def test_brackets_in_a_long_text_are_no_nesting() -> None:
    payload = {"body": "[" * 100_000, "data": {"a": '{"\\[' * 1_000}}
    assert read_send(as_bytes(envelope("SEND", payload))).body == payload["body"]


@pytest.mark.parametrize("number", ["1e999", "9" * 5_000])
def test_forwarded_data_has_no_number_out_of_range(number: str) -> None:
    frame = as_bytes(envelope("SEND", {"body": "x", "data": {"a": ["#"]}})).replace(b'"#"', number.encode())
    assert refuse_send(frame).details == {"field": "payload.data"}


@pytest.mark.parametrize("field", ["response", "responseData"])
def test_a_forwarded_response_is_readable(field: str) -> None:
    text = as_bytes(envelope("ACK", {"ack_id": "d_1", field: {"a": "#"}})).decode()
    out_of_range = refuse(text.replace('"#"', "1e999").encode())
    assert out_of_range.details == {"field": f"payload.{field}"}
    assert (out_of_range.request_id, out_of_range.type) == ("id-1", "ACK")
    assert refuse(text.replace('"#"', nested(300)).encode()).code is ErrorCode.INVALID_FORMAT
    decode_client_frame(text.replace('"#"', nested(200)).encode())


def call_deeper(levels: int, call: Any) -> Any:
    return call() if levels == 0 else call_deeper(levels - 1, call)


def test_a_stack_that_is_already_deep_is_no_crash() -> None:
    # Where a decoder gives up depends on the stack it is called on; that must end in an answer as well.
    frame = decode_client_frame(as_bytes(envelope("SEND", {"body": "x"})).replace(b'"x"', b'"x","u":' + nested(200).encode()))
    assert isinstance(frame, Send)
    depth = 0
    caller = sys._getframe()
    while caller.f_back is not None:
        caller, depth = caller.f_back, depth + 1
    refused: RelayError | None = None
    try:
        call_deeper(sys.getrecursionlimit() - depth - 120, lambda: decode_send(frame.payload))
    except RelayError as error:
        refused = error
    assert refused is None or refused.details == {"field": "payload"}  # later Pythons count their own stack and C's apart
    assert refused is not None or sys.version_info >= (3, 12)


# --- whatever comes ----------------------------------------------------------------------------------------------


def take(frame: bytes) -> ClientFrame | BadFrame:
    try:
        return decode_client_frame(frame)
    except BadFrame as error:
        bad = error
    assert bad.malformed or bad.details.keys() & {"field", "type"}
    return bad


@given(st.binary(max_size=80))
def test_any_bytes_are_answered(data: bytes) -> None:
    take(data)
    take(b"{" + data + b"}")


@given(st.dictionaries(st.sampled_from(["v", "type", "id", "ts", "payload", "to", "from"]), json_values))
def test_any_object_is_answered(value: dict[str, Any]) -> None:
    bad = take(as_bytes(value))
    assert isinstance(bad, BadFrame)
    assert not bad.malformed


@given(st.sampled_from(sorted(CLIENT_PAYLOADS)), st.data())
def test_any_payload_is_answered(kind: str, data: st.DataObject) -> None:
    keys = st.sampled_from([*CLIENT_PAYLOADS[kind], "x"])
    payload = dict(CLIENT_PAYLOADS[kind]) | data.draw(st.dictionaries(keys, json_values, max_size=3))
    take(as_bytes(envelope(kind, payload)))


@given(st.sampled_from(sorted(CLIENT_PAYLOADS)), st.integers(0, 10_000), st.binary(min_size=1, max_size=3))
def test_any_damage_to_a_good_frame_is_answered(kind: str, place: int, damage: bytes) -> None:
    good = as_bytes(envelope(kind, CLIENT_PAYLOADS[kind]))
    place %= len(good)
    take(good[:place] + damage + good[place + len(damage) :])
    take(good[:place])


@given(spellings(json_objects), spellings(json_objects))
def test_what_is_taken_is_json_to_everyone(payload: tuple[Any, bytes], meta: tuple[Any, bytes]) -> None:
    frame = take(b'{"v":1,"type":"SEND","id":"a","ts":1,"payload":%s , "payload_meta" :%s}' % (payload[1], meta[1]))
    assert isinstance(frame, Send)
    assert json.loads(bytes(frame.payload)) == payload[0]
    assert json.loads(bytes(frame.payload_meta)) == meta[0]
    assert bytes(memoryview(frame.payload)) == payload[1]


@pytest.mark.parametrize("kind", DAEMON_PAYLOADS)
def test_the_client_names_wrong_fields_too(kind: str) -> None:
    with pytest.raises(BadFrame) as caught:
        decode_daemon_frame(as_bytes(envelope(kind, DAEMON_PAYLOADS[kind], ts="now")))
    assert caught.value.details == {"field": "ts"}
    assert caught.value.type == kind
