"""Wire contract, section 2: the envelope, and how a wrong one is answered."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.testing.raw_client import Frame, RawClient, envelope

from .relay import Relay, bodies

ENVELOPE_FIELDS = ("v", "type", "id", "ts", "payload")


def refusal(client: RawClient, frame: Frame) -> dict[str, Any]:
    """The one ERROR a wrong envelope is answered with; the connection lives."""
    client.write_frame(frame)
    found = client.expect("ERROR", "NACK", "ACK", "PONG")
    assert found["type"] == "ERROR", found
    assert found["payload"]["fatal"] is False
    payload: dict[str, Any] = found["payload"]
    return payload


# --- the five fields -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["SEND", "PING", "SUBSCRIBE"])
@pytest.mark.parametrize("field", ENVELOPE_FIELDS)
def test_a_missing_field_is_named(relay: Relay, field: str, kind: str) -> None:
    client = relay.join()
    frame = envelope(kind, {"body": "x", "nonce": 1, "topic": "a"}, to=client.name)
    request = frame["id"]
    del frame[field]
    payload = refusal(client, frame)
    assert payload["code"] == "INVALID_FORMAT"
    assert payload["details"]["field"] == field
    if field != "id":
        assert payload["reply_to"] == request
    client.flush()
    assert client.unclaimed == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("v", 0), ("v", 3), ("v", -1), ("v", "2"), ("v", None), ("v", 1.5), ("v", True), ("v", [2]),
        ("type", 5), ("type", None), ("type", ["SEND"]), ("type", {}),
        ("id", ""), ("id", "x" * 129), ("id", 7), ("id", None), ("id", ["a"]),
        ("ts", "now"), ("ts", None), ("ts", True), ("ts", {}),
        ("payload", []), ("payload", "x"), ("payload", None), ("payload", 5), ("payload", True),
    ],
)  # fmt: skip
def test_a_mistyped_field_is_named(relay: Relay, field: str, value: Any) -> None:
    client = relay.join()
    payload = refusal(client, {**envelope("SEND", {"body": "x"}, to=client.name), field: value})
    assert payload["code"] == "INVALID_FORMAT"
    assert payload["details"]["field"] == field
    client.flush()
    assert client.unclaimed == []


@pytest.mark.parametrize(
    "request_id", ["x", "x" * 128, "ü" * 128, 'quote " back \\ slash', "line\nbreak\ttab", "\u0000\u001f", "😀", "</script>"]
)
def test_ids_are_any_1_to_128_characters_and_come_back_as_they_were(relay: Relay, request_id: str) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    for _ in range(2):
        alice.send(bob.name, "x", id=request_id, meta={"requires_ack": True})
        assert alice.stored(request_id)["ack_id"] == request_id
    bob.deliveries(1)
    assert alice.delivered(request_id)["ack_id"] == request_id
    alice.send("nobody-of-that-name", "x", id="n" + request_id[:127])
    assert alice.refused("n" + request_id[:127], "AGENT_NOT_FOUND")


def test_both_versions_of_the_envelope_are_understood(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    for version in (1, 2):
        alice.send_stored(bob.name, f"v{version}", v=version)
    assert bodies(bob.deliveries(2)) == ["v1", "v2"]


@pytest.mark.parametrize("ts", [0, 1.5, 1_700_000_000_000, -1, 10**15])
def test_the_senders_clock_is_its_own_affair(relay: Relay, ts: float) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    alice.send_stored(bob.name, "x", ts=ts)
    bob.deliveries(1)


@pytest.mark.parametrize(
    ("kind", "payload", "field"),
    [
        ("ACK", {}, "payload.ack_id"),
        ("ACK", {"ack_id": 5}, "payload.ack_id"),
        ("NACK", {"code": "REJECTED"}, "payload.nack_id"),
        ("NACK", {"nack_id": "d_x"}, "payload.code"),
        ("SUBSCRIBE", {"topic": 5}, "payload.topic"),
        ("CHANNEL_JOIN", {"channel": ["#a"]}, "payload.channel"),
        ("CANCEL", {}, "payload.correlationId"),
        ("CANCEL", {"correlationId": 1}, "payload.correlationId"),
        ("HISTORY", {"limit": "many"}, "payload.limit"),
        ("CONTROL", {}, "payload.command"),
    ],
)
def test_a_wrong_field_of_a_payload_is_named_by_its_path(relay: Relay, kind: str, payload: dict[str, Any], field: str) -> None:
    client = relay.join()
    request = client.say(kind, payload)
    found = client.answer(request)["payload"]
    assert found["code"] == "INVALID_FORMAT"
    assert found["details"]["field"] == field
    client.flush()


# --- a SEND with a valid envelope ----------------------------------------------------------------------------------

WRONG_SENDS: list[tuple[str, dict[str, Any], str]] = [
    # what, fields that go over a good SEND to "Bob", details.field ("" where the contract names none)
    ("no body", {"payload": {}}, "payload.body"),
    ("body a number", {"payload": {"body": 5}}, "payload.body"),
    ("body null", {"payload": {"body": None}}, "payload.body"),
    ("body a list", {"payload": {"body": ["x"]}}, "payload.body"),
    ("kind in capitals", {"payload": {"body": "x", "kind": "Message"}}, "payload.kind"),
    ("kind empty", {"payload": {"body": "x", "kind": ""}}, "payload.kind"),
    ("kind a number", {"payload": {"body": "x", "kind": 5}}, "payload.kind"),
    ("data a list", {"payload": {"body": "x", "data": []}}, "payload.data"),
    ("data a string", {"payload": {"body": "x", "data": "{}"}}, "payload.data"),
    ("thread a number", {"payload": {"body": "x", "thread": 5}}, "payload.thread"),
    ("to a number", {"to": 5}, "to"),
    ("to an object", {"to": {"name": "Bob"}}, "to"),
    ("to a list with a number", {"to": ["Bob", 5]}, "to"),
    ("to an empty list", {"to": []}, ""),
    ("to an empty string", {"to": ""}, ""),
    ("to not a name", {"to": "not a name"}, ""),
    ("to a channel without a name", {"to": "#"}, ""),
    ("topic a number", {"topic": 5}, "topic"),
    ("topic with an empty token", {"topic": "a..b"}, ""),
    ("payload_meta a number", {"payload_meta": 5}, "payload_meta"),
    ("payload_meta a list", {"payload_meta": []}, "payload_meta"),
    ("priority 10", {"payload_meta": {"priority": 10}}, "payload_meta.priority"),
    ("priority -1", {"payload_meta": {"priority": -1}}, "payload_meta.priority"),
    ("priority a word", {"payload_meta": {"priority": "high"}}, "payload_meta.priority"),
    ("ttl_ms negative", {"payload_meta": {"ttl_ms": -5}}, "payload_meta.ttl_ms"),
    ("ttl_ms a word", {"payload_meta": {"ttl_ms": "1h"}}, "payload_meta.ttl_ms"),
    ("requires_ack a word", {"payload_meta": {"requires_ack": "yes"}}, "payload_meta.requires_ack"),
    ("reply_to a number", {"payload_meta": {"reply_to": 5}}, "payload_meta.reply_to"),
    ("checksum a number", {"payload_meta": {"checksum": 5}}, "payload_meta.checksum"),
    ("sync a number", {"payload_meta": {"sync": 5}}, "payload_meta.sync"),
    ("timeoutMs negative", {"payload_meta": {"sync": {"timeoutMs": -1}}}, "payload_meta.sync.timeoutMs"),
    ("blocking a word", {"payload_meta": {"sync": {"blocking": "yes"}}}, "payload_meta.sync.blocking"),
    ("correlationId a number", {"payload_meta": {"sync": {"correlationId": 5}}}, "payload_meta.sync.correlationId"),
]


@pytest.mark.parametrize(("fields", "named"), [row[1:] for row in WRONG_SENDS], ids=[row[0] for row in WRONG_SENDS])
def test_a_wrong_send_is_answered_by_one_nack(relay: Relay, fields: dict[str, Any], named: str) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request = alice.write_frame({**alice.message(bob.name, "wrong"), **fields})
    answer = alice.expect("ACK", "NACK", "ERROR")
    assert answer["type"] == "NACK", answer
    assert answer["payload"]["nack_id"] == request
    assert answer["payload"]["code"] in ("INVALID_FORMAT", "INVALID_TARGET"), answer
    if named:
        assert answer["payload"]["code"] == "INVALID_FORMAT"
        assert answer["payload"]["details"]["field"] == named
    alice.send_stored(bob.name, "marker")
    assert bodies(bob.deliveries(1)) == ["marker"]
    alice.flush()
    assert alice.unclaimed == []


def test_a_send_to_nobody_at_all_is_refused(relay: Relay) -> None:
    client = relay.join()
    request = client.write_frame(envelope("SEND", {"body": "x"}))
    assert client.answer(request)["type"] == "NACK"


# --- from ----------------------------------------------------------------------------------------------------------


def test_a_foreign_from_is_refused_and_nothing_is_routed(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    for pretended in (carol.name, "nobody-we-know", "relay", ""):
        request = alice.write_frame({**alice.message(bob.name, "forged"), "from": pretended})
        alice.refused(request, "PERMISSION_DENIED")
    alice.send_stored(bob.name, "marker")
    assert bodies(bob.deliveries(1)) == ["marker"]
    assert carol.unclaimed == []


def test_a_foreign_from_is_refused_in_other_requests_too(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request = alice.write_frame({**envelope("SUBSCRIBE", {"topic": "news"}), "from": bob.name})
    alice.refused(request, "PERMISSION_DENIED")
    assert relay.join().send_stored(None, "x", topic="news")["recipients"] == 0


def test_the_own_name_or_none_is_fine_and_the_daemon_sets_from(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    alice.stored(alice.write_frame({**alice.message(bob.name, "named"), "from": alice.name}))
    alice.send_stored(bob.name, "unnamed")
    assert [frame["from"] for frame in bob.deliveries(2)] == [alice.name, alice.name]


# --- types ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["TELEPORT", "send", "", "SEND ", "x" * 100])
def test_an_unknown_type_is_refused_by_name_and_the_connection_lives(relay: Relay, kind: str) -> None:
    client = relay.join()
    frame = envelope(kind, {"body": "x"}, to=client.name)
    payload = refusal(client, frame)
    assert payload["code"] == "FEATURE_UNSUPPORTED"
    assert payload["details"]["type"] == kind
    assert payload["reply_to"] == frame["id"]
    client.send_stored(client.name, "alive")


def test_types_only_the_daemon_says_are_refused_from_a_client(relay: Relay) -> None:
    client, bob = relay.join(), relay.join("Bob")
    for kind in ("WELCOME", "DELIVER", "SYNC", "BUSY", "AGENTS", "HISTORY_RESULT"):
        refusal(client, envelope(kind, {"body": "x"}, to=bob.name))
    client.send_stored(bob.name, "alive")
    assert bodies(bob.deliveries(1)) == ["alive"]


def test_a_second_hello_does_not_change_who_is_speaking(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    other = relay.name("Other")
    request = alice.write_frame(alice.hello_frame(other))
    assert alice.expect("ERROR", "WELCOME")["payload"]["reply_to"] == request
    assert relay.agent(other) is None
    relay.join("Carol").send_stored(bob.name, "still working")
    assert bodies(bob.deliveries(1)) == ["still working"]


# --- replies -------------------------------------------------------------------------------------------------------


def test_replies_name_the_request(relay: Relay) -> None:
    client = relay.connect()
    hello = client.hello_frame(relay.name("Asker"))
    client.write_frame(hello)
    assert client.expect("WELCOME")["payload"]["reply_to"] == hello["id"]
    for kind, answer in (("LIST_AGENTS", "AGENTS"), ("HISTORY", "HISTORY_RESULT"), ("NONSENSE", "ERROR")):
        request = client.say(kind, {})
        assert client.expect(answer)["payload"]["reply_to"] == request
    for kind, payload in (
        ("SUBSCRIBE", {"topic": "a.b"}),
        ("UNSUBSCRIBE", {"topic": "a.b"}),
        ("CHANNEL_JOIN", {"channel": "#replies"}),
        ("CHANNEL_LEAVE", {"channel": "#replies"}),
    ):
        request = client.say(kind, payload)
        assert client.expect("ACK")["payload"]["ack_id"] == request
