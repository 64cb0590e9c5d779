"""Wire contract, sections 3 and 4: names, HELLO, WELCOME, and who is refused."""

from __future__ import annotations

import os
import socket
import stat
from typing import Any

import pytest

from agent_relay.testing.raw_client import CAPABILITIES, RawClient, encode, envelope

from .conftest import StartRelay
from .contract import is_id
from .relay import Relay, bodies, expect_fatal

RESERVED = ("relay", "daemon", "system", "all", "everyone", "spawn", "release", "human")


# --- WELCOME -------------------------------------------------------------------------------------------------------


def test_welcome_says_what_the_session_is_and_what_the_server_can_take(start_relay: StartRelay) -> None:
    relay = start_relay("--heartbeat-ms", "45000", "--queue-capacity", "77", "--max-inflight", "33", "--max-frame-bytes", "65536")
    client = relay.connect()
    client.write_frame(client.hello_frame("Alice"))
    frame = client.next_frame()
    assert frame["type"] == "WELCOME"
    welcome = frame["payload"]
    assert is_id(welcome["session_id"], "ses_")
    assert len(welcome["resume_token"]) >= 43  # 256 bits in url-safe base64
    assert welcome["negotiated_version"] == 2
    server = welcome["server"]
    assert (server["max_frame_bytes"], server["heartbeat_ms"]) == (65536, 45000)
    assert (server["queue_capacity"], server["max_inflight"]) == (77, 33)
    assert server["name"]
    assert server["version"]
    other = relay.join("Bob").welcome
    assert other["session_id"] != welcome["session_id"]
    assert other["resume_token"] != welcome["resume_token"]


def test_capabilities_are_those_both_sides_have(relay: Relay) -> None:
    client = relay.connect()
    asked = {**CAPABILITIES, "channels": False, "telepathy": True, "sync": "yes"}
    client.write_frame(envelope("HELLO", {"agent": relay.name("Picky"), "capabilities": asked}))
    agreed = client.expect("WELCOME")["payload"]["capabilities"]
    assert isinstance(agreed, list)
    assert {"ack", "resume", "backpressure"} <= set(agreed)
    assert not {"channels", "telepathy", "max_inflight"} & set(agreed)
    assert len(agreed) == len(set(agreed))


def test_a_hello_with_nothing_but_a_name_is_enough(relay: Relay) -> None:
    client = relay.connect()
    client.write_frame({**envelope("HELLO", {"agent": relay.name("Plain")}), "v": 1})
    welcome = client.expect("WELCOME")["payload"]
    assert welcome["negotiated_version"] == 1
    assert welcome["capabilities"] == []


def test_meta_is_free(relay: Relay) -> None:
    meta = {"pid": 1, "cwd": "/tmp", "task": "t", "model": "m", "role": "r", "other": {"deep": [None]}}
    client = relay.join(meta=meta, cli="claude")
    listed = relay.agent(client.name)
    assert listed is not None
    assert (listed["name"], listed["connected"], listed["cli"]) == (client.name, True, "claude")


@pytest.mark.parametrize(("asked", "agreed"), [(1, 1), (2, 2), (3, 2), (99, 2), (None, 1)])
def test_the_lower_version_of_the_two_is_spoken(relay: Relay, asked: int | None, agreed: int) -> None:
    client = relay.join(version=asked)
    assert client.welcome["negotiated_version"] == agreed
    client.send_stored(client.name, "works")
    client.deliveries(1)


# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["SEND", "PING", "ACK", "SUBSCRIBE", "BYE", "WELCOME", "TELEPORT"])
def test_the_first_frame_must_be_hello_or_resume(relay: Relay, kind: str) -> None:
    bob = relay.join("Bob")
    client = relay.connect()
    payload = {"body": "too early", "nonce": 1, "ack_id": "x", "topic": "t", "reason": "r"}
    client.write_frame(envelope(kind, payload, to=bob.name))
    expect_fatal(client, "INVALID_FORMAT")
    relay.join().send_stored(bob.name, "marker")
    assert bodies(bob.deliveries(1)) == ["marker"]


@pytest.mark.parametrize("agent", ["missing", None, 5, ["Bob"], {"name": "Bob"}, True])
def test_hello_needs_an_agent(relay: Relay, agent: Any) -> None:
    client = relay.connect()
    hello = client.hello_frame(agent)
    if agent == "missing":
        del hello["payload"]["agent"]
    client.write_frame(hello)
    assert expect_fatal(client, "INVALID_FORMAT")["field"] == "payload.agent"


@pytest.mark.parametrize("version", [0, -1, -1000])
def test_a_version_below_one_is_refused_with_those_supported(relay: Relay, version: int) -> None:
    client = relay.connect()
    client.write_frame(client.hello_frame(relay.name("Old"), version=version))
    supported = expect_fatal(client, "VERSION_MISMATCH")["supported"]
    assert set(supported) == {1, 2}


@pytest.mark.parametrize(
    ("field", "value"), [("version", "two"), ("capabilities", []), ("session", "token"), ("session", {"resume_token": 5})]
)
def test_a_mistyped_hello_is_refused(relay: Relay, field: str, value: Any) -> None:
    client = relay.connect()
    hello = client.hello_frame(relay.name("Odd"))
    hello["payload"][field] = value
    client.write_frame(hello)
    assert expect_fatal(client, "INVALID_FORMAT")["field"].startswith(f"payload.{field}")


def test_a_refused_hello_is_the_last_thing_heard_of_a_connection(relay: Relay) -> None:
    bob = relay.join("Bob")
    client = relay.connect()
    bad, good = client.hello_frame("not a name"), client.hello_frame(relay.name("Fine"))
    client.write(encode(bad) + encode(good) + encode(client.message(bob.name, "smuggled")))
    expect_fatal(client, "INVALID_TARGET")
    relay.join().send_stored(bob.name, "marker")
    assert bodies(bob.deliveries(1)) == ["marker"]


# --- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a", "7", "A_b.c-d", "x" * 64, "0-", "relay2", "human.1", "arc-style-id-3"])
def test_good_names(relay: Relay, name: str) -> None:
    client = relay.rejoin(name)
    client.send_stored(name, "to myself")
    (deliver,) = client.deliveries(1)
    assert (deliver["from"], deliver["to"]) == (name, name)


@pytest.mark.parametrize(
    "name", ["", "x" * 65, "-a", ".a", "_a", "a b", "a\n", "\na", "ä", "a/b", "a:b", "*", "#dev", "a\u0000", "а", "a" * 10_000]
)
def test_bad_names_are_refused(relay: Relay, name: str) -> None:
    client = relay.connect()
    client.write_frame(client.hello_frame(name))
    expect_fatal(client, "INVALID_TARGET")


@pytest.mark.parametrize("name", [*RESERVED, *(name.upper() for name in RESERVED), *(name.title() for name in RESERVED)])
def test_reserved_names_are_refused_in_any_case(relay: Relay, name: str) -> None:
    client = relay.connect()
    client.write_frame(client.hello_frame(name))
    expect_fatal(client, "INVALID_TARGET")


@pytest.mark.parametrize("name", ["http", "HTTP", "policy", "Door", "cli-root", "CLI-x"])
def test_names_of_the_owners_need_the_owners_token(relay: Relay, name: str) -> None:
    for shown in ({}, {"session": {"owner_token": "guess"}}):
        stranger = relay.connect()
        stranger.write_frame(envelope("HELLO", {"agent": name} | shown))
        expect_fatal(stranger, "INVALID_TARGET")
    owner = relay.connect()
    owner.write_frame(envelope("HELLO", {"agent": name, "session": {"owner_token": relay.daemon.api_token}}))
    owner.expect("WELCOME")
    owner.close()


def test_a_name_is_found_in_any_case_and_shown_as_first_registered(relay: Relay) -> None:
    bob = relay.join("Bob")
    alice = relay.join("Alice")
    alice.send_stored(bob.name.upper(), "loud")
    alice.send_stored([bob.name.lower()], "quiet")
    assert [frame["to"] for frame in bob.deliveries(2)] == [bob.name, bob.name]
    relay.cut(bob)
    again = relay.rejoin(bob.name.lower())
    alice.send_stored(bob.name, "back?")
    assert again.deliveries(1)[0]["to"] == bob.name
    again.send_stored(alice.name, "yes")
    assert alice.deliveries(1)[0]["from"] == bob.name
    listed = [found["name"] for found in relay.agents() if found["name"].lower() == bob.name.lower()]
    assert listed == [bob.name]


# --- one connection a name -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [str, str.upper, str.lower])
def test_a_name_in_use_is_refused_and_its_holder_undisturbed(relay: Relay, change: Any) -> None:
    bob = relay.join("Bob")
    for token in (None, "not-a-token", ""):
        intruder = relay.connect()
        intruder.write_frame(intruder.hello_frame(change(bob.name), token=token))
        details = expect_fatal(intruder, "PERMISSION_DENIED")
        if token is None:
            assert details["reason"] == "name_in_use"
    relay.join().send_stored(bob.name, "for the real one")
    assert bodies(bob.deliveries(1)) == ["for the real one"]


def test_another_agents_token_is_refused_and_stays_good_for_its_owner(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    for name in (bob.name, relay.name("Newcomer")):
        thief = relay.connect()
        thief.write_frame(thief.hello_frame(name, token=alice.token))
        assert expect_fatal(thief, "PERMISSION_DENIED")["reason"] == "bad_token"
    alice.flush()
    bob.flush()
    relay.cut(alice)
    assert relay.rejoin(alice.name, token=alice.token).welcome["session_id"] == alice.welcome["session_id"]


def test_the_valid_token_takes_over_a_live_connection(relay: Relay) -> None:
    sender, old = relay.join("Sender"), relay.join("Bob")
    sender.send_stored(old.name, "first")
    (first,) = old.deliveries(1, ack=False)
    new = relay.rejoin(old.name, token=old.token)
    assert new.welcome["session_id"] == old.welcome["session_id"]
    assert old.expect("BYE")["payload"]["reason"] == "superseded"
    old.wait_closed()
    sender.send_stored(new.name, "second")
    found = new.deliveries(2)
    assert bodies(found) == ["first", "second"]
    assert found[0]["id"] == first["id"]
    assert found[0]["delivery"]["attempt"] == 2


def test_a_superseded_connection_cannot_speak_any_more(relay: Relay) -> None:
    bob, old = relay.join("Bob"), relay.join("Alice")
    relay.rejoin(old.name, token=old.token)
    old.write(b"")  # whatever it had not written yet
    old.expect("BYE")
    old.wait_closed()
    relay.join().send_stored(bob.name, "marker")
    assert bodies(bob.deliveries(1)) == ["marker"]


def test_a_name_is_free_again_once_its_connection_is_gone(relay: Relay) -> None:
    bob = relay.join("Bob")
    relay.cut(bob)
    again = relay.rejoin(bob.name)
    relay.leave(again)
    relay.rejoin(bob.name)


def test_the_closing_of_an_old_connection_does_not_unregister_the_new_one(relay: Relay) -> None:
    old = relay.join("Bob")
    new = relay.rejoin(old.name, token=old.token)
    old.close()
    new.flush()
    listed = relay.agent(old.name)
    assert listed is not None
    assert listed["connected"] is True
    relay.join().send_stored(old.name, "x")
    new.deliveries(1)


# --- who may connect at all ----------------------------------------------------------------------------------------

NOBODY = 65534


def test_the_socket_is_open_to_its_owner_alone(relay: Relay) -> None:
    assert stat.S_IMODE(os.stat(relay.daemon.socket).st_mode) == 0o600


def connect_as_nobody(relay: Relay) -> RawClient:
    """A connection of another user, who was let through by the permissions of the files: the daemon's own check remains."""
    daemon = relay.daemon
    for directory in (daemon.directory, daemon.state_dir):
        directory.chmod(0o755)
    os.chmod(daemon.socket, 0o666)
    os.seteuid(NOBODY)
    try:
        return relay.connect()
    finally:
        os.seteuid(0)


two_users = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")


@two_users
def test_a_foreign_user_is_closed_before_any_byte_is_answered(start_relay: StartRelay) -> None:
    client = connect_as_nobody(start_relay())
    client.write_frame(client.hello_frame("Stranger"))
    client.wait_closed()
    assert client.unclaimed == []


@two_users
def test_allowed_uids_may_connect_but_not_as_an_agent_of_another_user(start_relay: StartRelay) -> None:
    """A token is bound to the user as well as to the name."""
    relay = start_relay("--allowed-uids", f"4711,{NOBODY}")
    bob = relay.join("Bob")
    relay.cut(bob)
    connect_as_nobody(relay).hello("Stranger")
    client = connect_as_nobody(relay)
    client.write_frame(client.hello_frame(bob.name))
    expect_fatal(client, "PERMISSION_DENIED")
    client = connect_as_nobody(relay)
    client.write_frame(client.hello_frame(bob.name, token=bob.token))
    assert expect_fatal(client, "PERMISSION_DENIED")["reason"] == "bad_token"
    client = connect_as_nobody(relay)
    client.say("RESUME", {"agent": bob.name, "resume_token": bob.token})
    assert expect_fatal(client, "PERMISSION_DENIED")["reason"] == "bad_token"
    assert relay.rejoin(bob.name, token=bob.token).welcome["session_id"] == bob.welcome["session_id"]


def test_a_connection_that_says_nothing_and_goes_leaves_no_trace(relay: Relay) -> None:
    before = len(relay.agents())
    for _ in range(20):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(relay.daemon.socket)
    relay.join("Bob").flush()
    assert len(relay.agents()) == before + 1
