"""Wire contract, section 4: resume tokens — rotated, bound, hashed, revoked when one comes back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_relay.testing.raw_client import RawClient, encode, envelope

from .conftest import StartRelay
from .relay import Relay, bodies, expect_fatal, pass_time

Return = Callable[[Relay, str, str], RawClient]


def by_hello(relay: Relay, name: str, token: str) -> RawClient:
    return relay.rejoin(name, token=token)


def by_resume(relay: Relay, name: str, token: str) -> RawClient:
    client = relay.connect()
    client.resume(name, token)
    return client


both_ways = pytest.mark.parametrize("come_back", [by_hello, by_resume])


def frame_for(kind: Return, client: RawClient, name: str, token: str) -> bytes:
    if kind is by_hello:
        return encode(client.hello_frame(name, token=token))
    return encode(envelope("RESUME", {"agent": name, "resume_token": token}))


def test_a_token_is_256_bits_of_text_no_two_alike(relay: Relay) -> None:
    tokens = {relay.join().token for _ in range(20)}
    assert len(tokens) == 20
    assert all(len(token) >= 43 and token.isascii() and token.isprintable() for token in tokens)


def test_tokens_are_stored_hashed(start_relay: StartRelay) -> None:
    relay = start_relay()
    client = relay.join()
    tokens = [client.token]
    client = relay.rejoin(client.name, token=client.token)
    tokens.append(client.token)
    client.flush()
    relay.daemon.terminate()
    files = [path for path in relay.daemon.directory.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) > 0
    for path in files:
        content = path.read_bytes()
        assert not any(token.encode() in content for token in tokens), path


@both_ways
def test_every_welcome_and_sync_brings_a_new_token_for_the_same_session(relay: Relay, come_back: Return) -> None:
    client = relay.join()
    session, seen = client.welcome["session_id"], {client.token}
    for _ in range(4):
        relay.cut(client)
        client = come_back(relay, client.name, client.token)
        assert client.welcome["session_id"] == session
        assert client.token not in seen
        seen.add(client.token)
        client.flush()


@both_ways
def test_the_old_token_holds_until_the_client_has_shown_the_new_one(relay: Relay, come_back: Return) -> None:
    first = relay.join()
    first.flush()
    for _ in range(3):  # the answer with the new token is lost again and again
        lost = come_back(relay, first.name, first.token)
        relay.cut(lost)
    back = come_back(relay, first.name, first.token)
    assert back.welcome["session_id"] == first.welcome["session_id"]


@both_ways
def test_the_new_token_is_good_although_nothing_was_said_with_it(relay: Relay, come_back: Return) -> None:
    first = relay.join()
    first.flush()
    second = come_back(relay, first.name, first.token)
    relay.cut(second)
    third = come_back(relay, first.name, second.token)
    assert third.welcome["session_id"] == first.welcome["session_id"]


@both_ways
def test_a_token_that_was_rotated_away_revokes_the_session(relay: Relay, come_back: Return) -> None:
    first = relay.join("Bob")
    first.flush()
    holder = relay.rejoin(first.name, token=first.token)
    holder.flush()
    thief = relay.connect()
    thief.write(frame_for(come_back, thief, first.name, first.token))
    assert expect_fatal(thief, "PERMISSION_DENIED")["reason"] == "token_reused"
    assert holder.expect("BYE")["payload"]["reason"] == "revoked"
    holder.wait_closed()
    # The session is over for everybody: its newest token opens nothing either.
    late = relay.connect()
    answer = late.greet(first.name, token=holder.token)
    assert answer["type"] == "ERROR" or answer["payload"]["session_id"] != first.welcome["session_id"]


def test_a_revoked_agent_can_start_anew_and_keeps_its_messages(relay: Relay) -> None:
    first = relay.join("Bob")
    first.flush()
    holder = relay.rejoin(first.name, token=first.token)
    holder.flush()
    thief = relay.connect()
    thief.write(frame_for(by_hello, thief, first.name, first.token))
    thief.wait_closed()
    holder.wait_closed()
    relay.wait_offline(first.name)
    relay.join().send_stored(first.name, "kept")
    anew = relay.rejoin(first.name)
    assert anew.welcome["session_id"] != first.welcome["session_id"]
    assert bodies(anew.deliveries(1)) == ["kept"]


def test_a_replay_is_noticed_while_nobody_is_connected(relay: Relay) -> None:
    first = relay.join("Bob")
    relay.cut(first)
    second = relay.rejoin(first.name, token=first.token)
    second.flush()
    relay.cut(second)
    thief = relay.connect()
    thief.write(frame_for(by_hello, thief, first.name, first.token))
    assert expect_fatal(thief, "PERMISSION_DENIED")["reason"] == "token_reused"


def test_any_frame_shows_that_the_new_token_arrived(relay: Relay) -> None:
    for kind, payload in (("PONG", {"nonce": 1}), ("ACK", {"ack_id": "d_none"}), ("SUBSCRIBE", {"topic": "t"}), ("BYE", {})):
        first = relay.join("Bob")
        relay.cut(first)
        second = relay.rejoin(first.name, token=first.token)
        second.say(kind, payload)
        if kind == "BYE":
            second.wait_closed()
        else:
            relay.cut(second)
        relay.wait_offline(first.name)
        thief = relay.connect()
        thief.write(frame_for(by_hello, thief, first.name, first.token))
        assert expect_fatal(thief, "PERMISSION_DENIED")["reason"] == "token_reused", kind


def test_a_token_opens_its_name_in_any_case(relay: Relay) -> None:
    first = relay.join("Bob")
    relay.cut(first)
    assert relay.rejoin(first.name.upper(), token=first.token).welcome["session_id"] == first.welcome["session_id"]


@both_ways
def test_an_expired_token_is_refused_and_a_fresh_hello_is_heard(start_relay: StartRelay, come_back: Return) -> None:
    relay = start_relay("--resume-ttl", "300")
    first, sender = relay.join("Bob"), relay.join("Sender")
    relay.cut(first)
    sender.send_stored(first.name, "waits")
    pass_time(0.6)
    late = relay.connect()
    late.write(frame_for(come_back, late, first.name, first.token))
    refusal = late.expect("NACK", "ERROR", "WELCOME", "SYNC")
    assert (refusal["type"], refusal["payload"]["code"]) == ("NACK", "RESUME_TOO_OLD")
    welcome = late.hello(first.name)
    assert welcome["session_id"] != first.welcome["session_id"]
    assert bodies(late.deliveries(1)) == ["waits"]


def test_a_session_does_not_age_while_it_is_connected(start_relay: StartRelay) -> None:
    relay = start_relay("--resume-ttl", "800")
    first = relay.join("Bob")
    first.flush()
    pass_time(1.0)
    again = relay.rejoin(first.name, token=first.token)
    assert again.welcome["session_id"] == first.welcome["session_id"]


def test_tokens_survive_the_death_of_the_daemon(start_relay: StartRelay) -> None:
    relay = start_relay()
    first = relay.join("Bob")
    spent = first.token
    first.flush()
    second = relay.rejoin("bob" + first.name[3:], token=spent)
    second.flush()
    relay.daemon.restart()
    third = relay.rejoin(first.name, token=second.token)
    assert third.welcome["session_id"] == first.welcome["session_id"]
    third.flush()
    pass_time(0.4)  # that the new token was seen is written soon, not at once
    relay.daemon.restart()
    thief = relay.connect()
    thief.write(frame_for(by_hello, thief, first.name, second.token))
    assert expect_fatal(thief, "PERMISSION_DENIED")["reason"] == "token_reused"


def test_a_token_not_shown_yet_does_not_lock_anybody_out_after_the_death_of_the_daemon(start_relay: StartRelay) -> None:
    relay = start_relay()
    first = relay.join("Bob")
    first.flush()
    unseen = relay.rejoin(first.name, token=first.token)
    relay.daemon.restart()
    assert relay.rejoin(first.name, token=first.token).welcome["session_id"] == first.welcome["session_id"]
    assert unseen.token != first.token
