"""HELLO: who gets in, under which name, and what a store that fails leaves behind."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.protocol.states import CloseReason
from agent_relay.version import __version__
from tests.support.harness import UID, HarnessClient, RelayHarness


def greet(relay: RelayHarness, name: Any, uid: int = UID, **options: Any) -> HarnessClient:
    client = relay.open(uid)
    client.hello(name, **options)
    return client


def refusal(client: HarnessClient) -> dict[str, Any]:
    payload = client.payload("ERROR")
    assert payload["fatal"] is True
    assert client.closed is CloseReason.HANDSHAKE_REFUSED
    return payload


def test_welcome_says_who_and_what() -> None:
    relay = RelayHarness(queue_capacity=7, max_inflight=9, heartbeat_ms=123)
    client = relay.open()
    request = client.say("HELLO", {"agent": "Bob", "version": 9, "capabilities": {"ack": True, "shadows": True, "new": True}})
    welcome = client.payload("WELCOME")
    assert welcome["session_id"].startswith("ses_")
    assert (welcome["negotiated_version"], welcome["capabilities"], welcome["reply_to"]) == (2, ["ack", "shadows"], request)
    assert welcome["server"] == {
        "max_frame_bytes": 1_048_576, "heartbeat_ms": 123, "name": "agent-relay", "version": __version__,
        "queue_capacity": 7, "max_inflight": 9,
    }  # fmt: skip


def test_welcome_comes_when_the_session_is_durable_and_not_before() -> None:
    relay = RelayHarness()
    relay.store.hold()
    client = greet(relay, "Bob")
    client.say("PING", {"nonce": 1})
    assert not client.frames
    relay.store.release()
    relay.settle()
    assert [frame["type"] for frame in client.take()] == ["WELCOME", "PONG"]


@pytest.mark.parametrize("name", ["", "a b", "-bob", "x" * 65, "relay", "Human", "ALL"])
def test_a_bad_or_reserved_name_is_refused(name: str) -> None:
    assert refusal(greet(RelayHarness(), name))["code"] == "INVALID_TARGET"


@pytest.mark.parametrize("version", [0, -1])
def test_a_version_nobody_speaks_is_refused(version: int) -> None:
    payload = refusal(greet(RelayHarness(), "Bob", version=version))
    assert (payload["code"], payload["details"]["supported"]) == ("VERSION_MISMATCH", [1, 2])


def test_a_name_in_use_is_refused_in_any_case_and_its_holder_undisturbed() -> None:
    relay = RelayHarness()
    bob = relay.connect("Bob")
    payload = refusal(greet(relay, "bOB"))
    assert (payload["code"], payload["details"]) == ("PERMISSION_DENIED", {"reason": "name_in_use", "name": "Bob"})
    assert not bob.frames
    assert bob.closed is None


def test_a_name_is_kept_for_its_user() -> None:
    relay = RelayHarness()
    relay.connect("Bob").drop()
    assert refusal(greet(relay, "Bob", UID + 1))["details"]["reason"] == "name_in_use"


def test_a_name_that_is_free_again_is_shown_as_first_registered() -> None:
    relay = RelayHarness()
    relay.connect("Bob").drop()
    assert relay.connect("BOB").welcome["agent"] == "Bob"


def test_a_valid_token_takes_over_a_live_connection() -> None:
    relay = RelayHarness()
    old = relay.connect("Bob")
    new = relay.connect("Bob", token=old.token)
    assert old.payload("BYE")["reason"] == "superseded"
    assert old.closed is CloseReason.SUPERSEDED
    relay.connect("Alice").send("Bob")
    assert len(new.bodies()) == 1


def test_what_a_superseded_connection_still_says_is_not_heard() -> None:
    relay = RelayHarness()
    alice, old = relay.connect("Alice"), relay.connect("Bob")
    relay.connect("Bob", token=old.token)
    old.take()
    old.send("Alice", "ghost")
    assert not alice.frames
    assert not old.frames


def test_closing_the_superseded_connection_leaves_the_new_one_alone() -> None:
    relay = RelayHarness()
    alice, old = relay.connect("Alice"), relay.connect("Bob")
    new = relay.connect("Bob", token=old.token)
    old.drop()
    alice.send("Bob", "hello")
    assert new.bodies() == ["hello"]


def test_the_window_is_the_smaller_of_both() -> None:
    relay = RelayHarness(max_inflight=4)
    alice = relay.connect("Alice")
    windows = {"Two": 2, "Many": 100, "Zero": 0, "Words": "two", "True": True}
    readers = {name: relay.connect(name, capabilities={"max_inflight": window}) for name, window in windows.items()}
    for _ in range(6):
        alice.send(list(readers))
    assert {name: len(reader.bodies()) for name, reader in readers.items()} == {
        "Two": 2, "Many": 4, "Zero": 4, "Words": 4, "True": 4,
    }  # fmt: skip


def test_what_an_agent_says_about_itself_is_shown() -> None:
    relay = RelayHarness()
    bob = relay.connect("Bob", cli="claude", meta={"task": "review"})
    bob.say("LIST_AGENTS", {})
    (shown,) = bob.payload("AGENTS")["agents"]
    assert (shown["cli"], shown["meta"]) == ("claude", {"task": "review"})


def test_the_capabilities_an_agent_agreed_on_are_listed() -> None:
    relay = RelayHarness()
    relay.connect("Bob", capabilities={"ack": True, "events": True, "backpressure": False, "teleport": True}).drop()
    alice = relay.connect("Alice", capabilities={"ack": False, "events": False, "backpressure": False})
    alice.say("LIST_AGENTS", {})
    shown = {agent["name"]: agent["capabilities"] for agent in alice.payload("AGENTS")["agents"]}
    assert "teleport" not in shown["Bob"]
    assert {"ack", "events"} <= set(shown["Bob"])
    assert not {"ack", "events", "backpressure"} & set(shown["Alice"])


# --- a store that fails ---------------------------------------------------------------------------------------------


def test_a_hello_that_cannot_be_stored_is_refused_and_the_name_is_free() -> None:
    relay = RelayHarness()
    alice = relay.connect("Alice")
    relay.store.fail_next()
    payload = refusal(greet(relay, "Bob"))
    assert (payload["code"], payload["retryable"]) == ("SERVICE_UNAVAILABLE", True)
    assert payload["retry_after_ms"] > 0
    alice.send("Bob")
    assert alice.payload("NACK")["code"] == "AGENT_NOT_FOUND"
    assert relay.connect("Bob", uid=UID + 1).welcome


def test_a_known_agent_whose_hello_cannot_be_stored_keeps_its_session() -> None:
    relay = RelayHarness()
    bob = relay.connect("Bob")
    bob.say("PING", {"nonce": 1})
    bob.drop()
    relay.advance(200)
    relay.store.fail_next()
    refusal(greet(relay, "Bob"))
    again = relay.connect("Bob", token=bob.token)
    assert again.welcome["session_id"] == bob.welcome["session_id"]


def test_a_token_presented_in_a_hello_that_could_not_be_stored_is_still_good() -> None:
    relay = RelayHarness()
    bob = relay.connect("Bob")
    bob.drop()
    relay.advance(200)
    relay.store.fail_next()
    refusal(greet(relay, "Bob", token=bob.token))
    assert relay.connect("Bob", token=bob.token).welcome["session_id"] == bob.welcome["session_id"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_token_is_refused_only_by_a_daemon_that_can_store(fails: bool) -> None:
    """One that cannot may have lost the seat of its cluster: the token may be one that another host has given out since."""
    relay = RelayHarness()
    relay.connect("Bob").drop()
    relay.advance(200)
    relay.store.hold()
    client = relay.open()
    client.say("RESUME", {"agent": "Bob", "resume_token": "from elsewhere", "streams": []})
    client.say("SEND", {"body": "at once"}, to="Bob")
    assert not client.frames
    if fails:
        relay.store.fail_next()
    relay.store.release()
    relay.settle()
    payload = refusal(client)
    assert payload["code"] == ("SERVICE_UNAVAILABLE" if fails else "PERMISSION_DENIED")
    assert payload.get("details", {}).get("reason") == (None if fails else "bad_token")


def test_nobody_can_write_to_a_name_before_it_is_durable() -> None:
    """Its HELLO may still fail, and with it everything that was accepted for it would be lost."""
    relay = RelayHarness()
    alice = relay.connect("Alice")
    relay.store.hold()
    bob = greet(relay, "Bob")
    alice.send("Bob", "too early")
    relay.store.fail_next()
    relay.store.release()
    relay.settle()
    assert refusal(bob)["code"] == "SERVICE_UNAVAILABLE"
    assert alice.payload("NACK")["code"] == "AGENT_NOT_FOUND"


def test_a_name_whose_first_hello_is_being_stored_is_taken() -> None:
    relay = RelayHarness()
    relay.store.hold()
    first = greet(relay, "Bob")
    second = greet(relay, "bob")
    relay.store.release()
    relay.settle()
    assert refusal(second)["details"]["reason"] == "name_in_use"
    assert first.payload("WELCOME")["agent"] == "Bob"


@pytest.mark.parametrize("fails", [False, True])
def test_a_client_that_leaves_before_its_welcome_leaves_its_name_free(fails: bool) -> None:
    relay = RelayHarness()
    relay.store.hold()
    first = greet(relay, "Bob")
    first.drop()
    second = greet(relay, "Bob")
    if fails:
        relay.store.fail_next()
    relay.store.release()
    relay.settle()
    assert not first.frames
    assert second.payload("WELCOME")["agent"] == "Bob"
    relay.connect("Alice").send("Bob")
    assert len(second.bodies()) == 1


# --- frames before and after -------------------------------------------------------------------------------------


def test_a_second_hello_is_an_error_and_not_the_end() -> None:
    bob = RelayHarness().connect("Bob")
    bob.hello("Bob")
    payload = bob.payload("ERROR")
    assert (payload["code"], payload["fatal"]) == ("INVALID_FORMAT", False)
    assert bob.closed is None


@pytest.mark.parametrize("kind", ["PING", "SEND", "LIST_AGENTS"])
def test_the_first_frame_must_be_a_greeting(kind: str) -> None:
    client = RelayHarness().open()
    client.say(kind, {"body": "x"})
    assert refusal(client)["code"] == "INVALID_FORMAT"


@pytest.mark.parametrize(
    "frame", [b"", b"\xff", b"{", b"[]", b'"x"', b"{}", b'{"v":2,"type":"NEWS","id":"1","ts":1,"payload":{}}']
)
def test_nonsense_instead_of_a_greeting_ends_the_connection(frame: bytes) -> None:
    client = RelayHarness().open()
    client.say_frames(frame)
    assert refusal(client)["code"] == "INVALID_FORMAT"


def test_a_greeting_takes_no_longer_than_it_may() -> None:
    relay = RelayHarness(handshake_timeout_ms=10_000)
    client = relay.open()
    relay.advance(9_900)
    assert client.closed is None
    relay.advance(1_500)
    assert client.closed is CloseReason.HANDSHAKE_TIMEOUT


# --- observers -----------------------------------------------------------------------------------------------------


def test_an_observer_holds_no_name_and_is_sent_nothing() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    observer = relay.connect("Bob", mode="observer")
    alice.send("*")
    alice.send("Bob")
    assert len(bob.bodies()) == 2
    assert not observer.frames
    observer.say("LIST_AGENTS", {})
    assert [agent["name"] for agent in observer.payload("AGENTS")["agents"]] == ["Alice", "Bob"]


@pytest.mark.parametrize(
    ("kind", "payload", "answer"),
    [
        ("SEND", {"body": "x"}, "NACK"),
        ("ACK", {"ack_id": "x"}, "ERROR"),
        ("NACK", {"nack_id": "x", "code": "REJECTED"}, "ERROR"),
        ("SUBSCRIBE", {"topic": "x"}, "ERROR"),
        ("UNSUBSCRIBE", {"topic": "x"}, "ERROR"),
        ("CHANNEL_JOIN", {"channel": "#x"}, "ERROR"),
        ("CHANNEL_LEAVE", {"channel": "#x"}, "ERROR"),
        ("CANCEL", {"correlationId": "x"}, "ERROR"),
    ],
)
def test_an_observer_changes_nothing(kind: str, payload: dict[str, Any], answer: str) -> None:
    relay = RelayHarness()
    relay.connect("Alice")
    observer = relay.connect("watcher", mode="observer")
    observer.say(kind, payload, to="Alice")
    assert observer.payload(answer)["code"] == "PERMISSION_DENIED"
    assert observer.closed is None


def test_an_observer_leaves_nothing_in_the_store() -> None:
    relay = RelayHarness()
    relay.connect("watcher", mode="observer").say("BYE", {})
    relay.advance(1_000)
    assert not relay.store.batches


def test_an_agent_that_could_not_be_registered_leaves_nothing_to_whoever_comes_by_its_name_next() -> None:
    """Also not in the store: after the next start the session that was begun since goes on."""
    relay = RelayHarness()
    relay.store.hold()
    first = relay.open()
    first.hello("Ann")
    first.drop()
    relay.store.fail_next()
    relay.store.release()
    relay.settle()
    second = relay.connect("Ann")
    relay.advance(1_000)
    relay.restart()
    third = relay.connect("Ann", token=second.token)
    assert third.welcome["session_id"] == second.welcome["session_id"]
