"""Resume tokens: rotated, good until the next one is known to have arrived, and a copy shows."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.core.tokens import TokenVerdict, hash_token
from tests.support.harness import UID, HarnessClient, RelayHarness

DAY_MS = 86_400_000


def greet(relay: RelayHarness, token: str | None, *, name: str = "Bob", uid: int = UID, how: str = "HELLO") -> HarnessClient:
    """HELLO or RESUME with this token, whatever is answered."""
    client = relay.open(uid)
    if how == "HELLO":
        client.hello(name, token=token)
    else:
        client.resume(name, token or "")
    welcome = client.take("WELCOME", "SYNC")
    client.welcome = welcome[0]["payload"] if welcome else {}
    return client


def refusal(client: HarnessClient) -> dict[str, Any]:
    payload = client.payload("ERROR")
    assert payload["fatal"] is True
    assert client.closed is not None
    return payload


HOW = pytest.mark.parametrize("how", ["HELLO", "RESUME"])


def test_only_the_hash_is_kept() -> None:
    relay = RelayHarness()
    bob = relay.connect("Bob")
    (row,) = [row for batch in relay.store.batches for row in batch.agents]
    assert row.token_hash == hash_token(bob.token)
    assert bob.token.encode() not in repr(relay.store.batches).encode()


def test_a_token_that_is_no_text_of_utf_8_has_a_hash_too() -> None:
    assert len(hash_token("\udcff")) == 64


@HOW
def test_every_greeting_rotates_and_keeps_the_session(how: str) -> None:
    relay = RelayHarness()
    bob = relay.connect("Bob")
    tokens, session = [bob.token], bob.welcome["session_id"]
    for _ in range(3):
        bob.drop()
        bob = greet(relay, tokens[-1], how=how)
        assert bob.welcome["session_id"] == session
        tokens.append(bob.token)
    assert len(set(tokens)) == 4


@HOW
def test_the_old_token_is_good_until_a_frame_shows_the_new_one_arrived(how: str) -> None:
    relay = RelayHarness()
    first = relay.connect("Bob")
    for _ in range(3):  # each time the WELCOME is lost with its connection
        again = greet(relay, first.token, how=how)
        assert again.welcome
        again.drop()
    last = greet(relay, first.token, how=how)
    last.say("PING", {"nonce": 1})
    last.drop()
    assert refusal(greet(relay, first.token, how=how))["details"]["reason"] == "token_reused"


def test_frames_sent_before_welcome_show_nothing() -> None:
    relay = RelayHarness()
    bob = relay.connect("Bob")
    bob.drop()
    eager = relay.open()
    hello = eager.frame("HELLO", {"agent": "Bob", "version": 2, "session": {"resume_token": bob.token}})
    eager.say_frames(hello, eager.frame("PING", {"nonce": 1}))
    assert [frame["type"] for frame in eager.take()] == ["WELCOME", "PONG"]
    eager.drop()
    assert greet(relay, bob.token).welcome


@HOW
def test_a_replayed_token_revokes_the_session_and_says_so_to_the_live_holder(how: str) -> None:
    relay = RelayHarness()
    first = relay.connect("Bob")
    first.drop()
    holder = greet(relay, first.token)
    holder.say("PING", {"nonce": 1})
    thief = greet(relay, first.token, how=how)
    assert refusal(thief)["details"]["reason"] == "token_reused"
    assert holder.payload("BYE")["reason"] == "revoked"
    assert holder.closed is not None
    assert [fields["agent"] for fields in relay.log.named("session_revoked")] == ["Bob"]
    # neither of them resumes it; a HELLO without a token starts anew, in a new session
    fresh = greet(relay, holder.token)
    assert fresh.welcome["session_id"] != holder.welcome["session_id"]


def test_a_revocation_survives_a_restart() -> None:
    relay = RelayHarness()
    first = relay.connect("Bob")
    holder = greet(relay, first.token)
    holder.say("PING", {"nonce": 1})
    greet(relay, first.token)
    relay.advance(200)
    relay.restart()
    again = greet(relay, holder.token)
    assert again.welcome["session_id"] != holder.welcome["session_id"]


def test_a_spent_token_is_known_after_a_restart() -> None:
    relay = RelayHarness()
    first = relay.connect("Bob")
    holder = greet(relay, first.token)
    holder.say("PING", {"nonce": 1})
    relay.advance(200)
    relay.restart()
    assert refusal(greet(relay, first.token))["details"]["reason"] == "token_reused"


def test_both_tokens_are_good_after_a_crash_before_the_new_one_was_shown() -> None:
    relay = RelayHarness()
    first = relay.connect("Bob")
    second = greet(relay, first.token)
    relay.restart()
    assert greet(relay, first.token).welcome["session_id"] == first.welcome["session_id"]
    relay.restart()
    assert greet(relay, second.token).welcome["session_id"] != ""


@HOW
def test_an_expired_token_is_refused_and_a_fresh_hello_is_heard_on_the_same_connection(how: str) -> None:
    relay = RelayHarness(resume_ttl_ms=DAY_MS)
    bob = relay.connect("Bob")
    bob.drop()
    relay.advance(DAY_MS + 1)
    client = greet(relay, bob.token, how=how)
    assert client.payload("NACK")["code"] == "RESUME_TOO_OLD"
    assert client.closed is None
    client.hello("Bob")
    assert client.payload("WELCOME")["session_id"] != bob.welcome["session_id"]


@HOW
def test_a_token_is_good_to_the_last_millisecond(how: str) -> None:
    relay = RelayHarness(resume_ttl_ms=DAY_MS)
    bob = relay.connect("Bob")
    bob.drop()
    relay.advance(DAY_MS)
    assert greet(relay, bob.token, how=how).welcome


def test_a_session_does_not_age_while_it_is_connected_nor_because_the_daemon_was_killed_then() -> None:
    relay = RelayHarness(resume_ttl_ms=DAY_MS)
    bob = relay.connect("Bob")
    relay.advance(3 * DAY_MS)
    relay.restart(wall_ms_later=1_000)
    assert greet(relay, bob.token).welcome["session_id"] == bob.welcome["session_id"]


@HOW
@pytest.mark.parametrize("is_connected", [True, False])
def test_another_agent_s_token_is_refused(how: str, is_connected: bool) -> None:
    relay = RelayHarness()
    bob, carol = relay.connect("Bob"), relay.connect("Carol")
    if not is_connected:
        bob.drop()
    assert refusal(greet(relay, carol.token, how=how))["details"]["reason"] == "bad_token"
    assert carol.closed is None
    assert bob.closed is None


def test_another_agent_s_token_opens_no_new_name() -> None:
    relay = RelayHarness()
    carol = relay.connect("Carol")
    assert refusal(greet(relay, carol.token, name="Newcomer"))["details"]["reason"] == "bad_token"


@HOW
def test_a_token_is_bound_to_its_user(how: str) -> None:
    relay = RelayHarness()
    bob = relay.connect("Bob")
    bob.drop()
    assert refusal(greet(relay, bob.token, uid=UID + 1, how=how))["details"]["reason"] == "bad_token"
    assert greet(relay, bob.token, how=how).welcome


def test_a_token_nobody_knows_is_no_token_in_hello_and_refused_in_resume() -> None:
    relay = RelayHarness()
    bob = relay.connect("Bob")
    assert refusal(greet(relay, "made-up"))["details"]["reason"] == "name_in_use"
    bob.drop()
    assert refusal(greet(relay, "made-up", how="RESUME"))["details"]["reason"] == "bad_token"
    assert greet(relay, "made-up").welcome["session_id"] != bob.welcome["session_id"]


def test_a_token_taken_over_by_a_fresh_hello_resumes_nothing() -> None:
    relay = RelayHarness()
    bob = relay.connect("Bob")
    bob.drop()
    fresh = relay.connect("Bob")
    fresh.drop()
    assert greet(relay, bob.token).welcome["session_id"] not in {bob.welcome["session_id"], fresh.welcome["session_id"]}


def test_spent_tokens_are_forgotten_when_no_session_could_be_that_old() -> None:
    relay = RelayHarness(resume_ttl_ms=3_600_000)
    first = relay.connect("Bob")
    second = greet(relay, first.token)
    second.say("PING", {"nonce": 1})
    bob = relay.relay.registry.agents["bob"]
    assert relay.relay.tokens.judge(bob, first.token, UID) is TokenVerdict.REPLAYED
    relay.advance(3_600_000 + 20_000)
    assert relay.relay.tokens.judge(bob, first.token, UID) is TokenVerdict.UNKNOWN
