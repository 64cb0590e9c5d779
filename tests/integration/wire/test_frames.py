"""Wire contract, section 1: frames on the Unix socket."""

from __future__ import annotations

import json
import struct
import time

import pytest

from agent_relay.testing.raw_client import DEADLINE_SECONDS, RawClient, encode, envelope

from .conftest import StartRelay
from .relay import Relay, bodies, expect_fatal, seqs

MAX_FRAME_BYTES = 1_048_576
DELIVER_HEADROOM_BYTES = 4_096

MALFORMED = {
    "empty": b"",
    "not UTF-8": b'{"v":2,"type":"\xff\xfe"}',
    "not JSON": b"hello",
    "half of an object": b'{"v":2,"type":"PING"',
    "two objects": b'{"v":2}{"v":2}',
    "NaN": b'{"v":2,"type":"PING","id":"x","ts":NaN,"payload":{}}',
    "an array": b"[]",
    "a string": b'"HELLO"',
    "a number": b"5",
    "null": b"null",
    "true": b"true",
}
malformed = pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())


def sized_message(to: str, frame_bytes: int) -> bytes:
    """A SEND frame whose JSON is exactly so long."""
    message = envelope("SEND", {"body": ""}, to=to)
    missing = frame_bytes - len(json.dumps(message).encode())
    message["payload"]["body"] = "x" * missing
    body = json.dumps(message).encode()
    assert len(body) == frame_bytes
    return encode(body)


def expect_format_error(client: RawClient) -> None:
    payload = client.expect("ERROR")["payload"]
    assert payload["code"] == "INVALID_FORMAT"
    assert payload["fatal"] is False


# --- the size limit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [MAX_FRAME_BYTES + 1, 2**31, 2**32 - 1])
def test_an_oversize_frame_is_refused_from_its_header_alone(relay: Relay, length: int) -> None:
    client = relay.join()
    client.write(struct.pack(">I", length))
    expect_fatal(client, "MESSAGE_TOO_LARGE")


def test_an_oversize_frame_is_refused_before_the_handshake_too(relay: Relay) -> None:
    client = relay.connect()
    client.write(struct.pack(">I", MAX_FRAME_BYTES + 1))
    expect_fatal(client, "MESSAGE_TOO_LARGE")


def test_nothing_after_an_oversize_header_is_read_as_a_frame(relay: Relay) -> None:
    bob = relay.join("Bob")
    client = relay.join()
    hidden = encode(client.message(bob.name, "from inside the refused body"))
    client.write(struct.pack(">I", MAX_FRAME_BYTES + 1) + hidden * 20)
    expect_fatal(client, "MESSAGE_TOO_LARGE")
    relay.join().send_stored(bob.name, "marker")
    assert bodies(bob.deliveries(1)) == ["marker"]


def test_the_frames_before_an_oversize_one_are_handled(relay: Relay) -> None:
    bob = relay.join("Bob")
    client = relay.join()
    message = client.message(bob.name, "just before")
    client.write(encode(message) + struct.pack(">I", MAX_FRAME_BYTES + 1))
    assert bodies(bob.deliveries(1)) == ["just before"]
    client.wait_closed()


def test_a_frame_of_exactly_the_limit_is_accepted_and_its_deliver_fits_a_client(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("B" * 50)
    frame = sized_message(bob.name, MAX_FRAME_BYTES)
    alice.write(frame)
    assert alice.expect("ACK", "NACK", "ERROR")["type"] == "ACK"
    (deliver,) = bob.deliveries(1)
    assert deliver["payload"]["body"].strip("x") == ""
    assert bob.largest_frame_bytes <= MAX_FRAME_BYTES + DELIVER_HEADROOM_BYTES


def test_the_limit_is_the_one_the_daemon_was_started_with(start_relay: StartRelay) -> None:
    relay = start_relay("--max-frame-bytes", "4096")
    alice, bob = relay.join("Alice"), relay.join("Bob")
    assert alice.welcome["server"]["max_frame_bytes"] == 4096
    alice.write(sized_message(bob.name, 4096))
    bob.deliveries(1)
    alice.write(sized_message(bob.name, 4097))
    alice.expect("ACK")
    expect_fatal(alice, "MESSAGE_TOO_LARGE")


# --- malformed frames ----------------------------------------------------------------------------------------------


@malformed
def test_a_malformed_frame_before_the_handshake_ends_the_connection(relay: Relay, body: bytes) -> None:
    client = relay.connect()
    client.write(encode(body))
    expect_fatal(client, "INVALID_FORMAT")


def test_a_malformed_frame_after_the_handshake_does_not(relay: Relay) -> None:
    bob = relay.join("Bob")
    client = relay.join()
    for body in MALFORMED.values():
        client.write(encode(body))
        expect_format_error(client)
        client.send_stored(bob.name, "still here")
    assert bodies(bob.deliveries(len(MALFORMED))) == ["still here"] * len(MALFORMED)


def test_bytes_that_are_not_utf_8_deep_inside_a_payload_are_refused(relay: Relay) -> None:
    """The payload is forwarded as it came, so it has to be checked although nobody looks at it."""
    alice, bob = relay.join("Alice"), relay.join("Bob")
    frame = json.dumps(alice.message(bob.name, "x", payload={"data": {"deep": ["@@"]}})).encode()
    alice.write(encode(frame.replace(b"@@", b"\xc3\x28")))
    expect_format_error(alice)
    alice.send_stored(bob.name, "marker")
    assert bodies(bob.deliveries(1)) == ["marker"]


def test_the_twentieth_malformed_frame_in_a_row_ends_the_connection(relay: Relay) -> None:
    client = relay.join()
    for _ in range(19):
        client.write(encode(b"nonsense"))
        expect_format_error(client)
    client.flush()
    for _ in range(19):
        client.write(encode(b"nonsense"))
        expect_format_error(client)
    client.write(encode(b"nonsense"))
    client.wait_closed()


def test_the_count_of_malformed_frames_starts_again_after_a_good_one(relay: Relay) -> None:
    client = relay.join()
    for _ in range(3):
        client.write(encode(b"nonsense") * 19)
        client.flush()
    assert len(client.listen(0, "ERROR")) == 57


def test_objects_with_a_wrong_envelope_do_not_count_as_malformed(relay: Relay) -> None:
    client = relay.join()
    client.write(encode({"v": 2, "type": "PING"}) * 40)
    client.flush()
    assert len(client.listen(0, "ERROR")) == 40


def test_deep_nesting_is_answered_and_survived(relay: Relay) -> None:
    bob = relay.join("Bob")
    client = relay.join()
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        depth = 100_000
        nested = opening * depth + b"1" + closing * depth
        for head in (b'{"v":2,"type":"SEND","id":"deep","ts":1,"to":"nobody-there","payload":{"body":"x","data":', b""):
            client.write(encode(head + nested + (b"}}" if head else b"")))
            assert client.expect("ERROR", "NACK")["payload"]["code"] in ("INVALID_FORMAT", "AGENT_NOT_FOUND")
    client.send_stored(bob.name, "alive")
    assert bodies(bob.deliveries(1)) == ["alive"]


# --- cutting -------------------------------------------------------------------------------------------------------


def test_frames_may_arrive_byte_by_byte(relay: Relay) -> None:
    bob = relay.join("Bob")
    client = relay.connect()
    client.name = relay.name("Drip")
    for byte in encode(client.hello_frame(client.name)):
        client.write(bytes([byte]))
    client.expect("WELCOME")
    for byte in encode(client.message(bob.name, "größer als ein Byte")):
        client.write(bytes([byte]))
    assert bodies(bob.deliveries(1)) == ["größer als ein Byte"]


def test_many_frames_may_arrive_in_one_write(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob", auto_ack=True)
    messages = [alice.message(bob.name, str(number)) for number in range(500)]
    alice.write(b"".join(map(encode, messages)))
    for message in messages:
        alice.stored(message["id"])
    found = bob.deliveries(500)
    assert bodies(found) == [str(number) for number in range(500)]
    assert seqs(found) == list(range(1, 501))


def test_the_handshake_and_the_first_messages_may_arrive_in_one_write(relay: Relay) -> None:
    bob = relay.join("Bob")
    client = relay.connect()
    hello = client.hello_frame(relay.name("Hasty"))
    message = client.message(bob.name, "in one breath")
    client.write(encode(hello) + encode(message))
    assert client.next_frame()["type"] == "WELCOME"
    client.stored(message["id"])
    assert bodies(bob.deliveries(1)) == ["in one breath"]


# --- frames that stop halfway --------------------------------------------------------------------------------------


def test_half_a_frame_waits_and_disturbs_nobody(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    frame = encode(alice.message(bob.name, "in two parts"))
    alice.write(frame[:37])
    carol.send_stored(bob.name, "meanwhile")
    assert bodies(bob.deliveries(1)) == ["meanwhile"]
    alice.write(frame[37:])
    assert bodies(bob.deliveries(1)) == ["in two parts"]


def test_a_connection_without_a_complete_hello_is_closed_in_time(start_relay: StartRelay) -> None:
    relay = start_relay("--handshake-timeout-ms", "600")
    silent, half, dripping, good = (relay.connect() for _ in range(4))
    good.hello("Good")
    half.write(encode(half.hello_frame("Half"))[:-1])
    bytes_left = encode(dripping.hello_frame("Drip"))
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not dripping.ended and time.monotonic() < deadline:  # bytes that keep coming do not buy more time
        dripping.write(bytes_left[:1])
        bytes_left = bytes_left[1:] or b" "
        dripping.listen(0.02)
    for client in (silent, half, dripping):
        client.wait_closed()
        assert [frame["type"] for frame in client.unclaimed if frame["type"] not in ("ERROR", "BYE")] == []
    good.flush()
    assert relay.agent("Half") is None


def test_a_half_frame_after_the_handshake_is_not_a_matter_of_the_handshake(start_relay: StartRelay) -> None:
    relay = start_relay("--handshake-timeout-ms", "300")
    alice, bob, canary = relay.join("Alice"), relay.join("Bob"), relay.connect()
    frame = encode(alice.message(bob.name, "late half"))
    alice.write(frame[:10])
    canary.wait_closed()  # connected after Alice and said nothing: her time would be over as well
    alice.write(frame[10:])
    assert bodies(bob.deliveries(1)) == ["late half"]


# --- forward compatibility -----------------------------------------------------------------------------------------


def test_unknown_fields_are_ignored_everywhere(relay: Relay) -> None:
    alice = relay.connect()
    name = relay.name("Alice")
    hello = alice.hello_frame(name, capabilities={"telepathy": True, "levels": {"a": 1}}, mood="good")
    alice.write_frame({**hello, "hop_count": 3})
    alice.expect("WELCOME")
    bob = relay.join("Bob")
    meta = {"requires_ack": True, "colour": "red"}
    request = alice.send(bob.name, "x", meta=meta, payload={"tone": [1, 2]}, trace={"a": None})
    alice.stored(request)
    deliver = bob.expect("DELIVER")
    assert deliver["payload"] == {"body": "x", "tone": [1, 2]}
    assert deliver["payload_meta"] == meta
    bob.say("ACK", {"ack_id": deliver["id"], "seq": 1, "feeling": "fine"}, extra=True)
    assert alice.delivered(request)["by"] == bob.name
    alice.say("PING", {"nonce": "n", "more": 1}, extra=[])
    assert alice.expect("PONG")["payload"]["nonce"] == "n"
