"""Wire contract, section 7: RESUME, SYNC, and the short form of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from agent_relay.ports.store import StoreError
from agent_relay.storage.sqlite.store import SqliteStore
from agent_relay.testing.raw_client import Frame, RawClient, encode

from .conftest import StartRelay
from .contract import is_id
from .relay import Relay, bodies, expect_fatal, seqs


def exchange(relay: Relay, count: int, acked: int) -> tuple[RawClient, RawClient]:
    """Alice sends so many, Bob acknowledges the first few and is cut off."""
    alice, bob = relay.join("Alice"), relay.join("Bob")
    for number in range(1, count + 1):
        alice.send_stored(bob.name, str(number))
    found = bob.deliveries(count, ack=False)
    for deliver in found[:acked]:
        bob.ack(deliver)
    bob.flush()
    relay.cut(bob)
    return alice, bob


def sync_then_deliveries(client: RawClient, count: int) -> tuple[dict[str, Any], list[Frame]]:
    """SYNC must be the first frame, the DELIVERs follow it."""
    first = client.next_frame()
    assert first["type"] == "SYNC", first
    payload: dict[str, Any] = first["payload"]
    return payload, client.deliveries(count)


def resume_frame(bob: RawClient, streams: Any) -> dict[str, Any]:
    payload = {"agent": bob.name, "session_id": bob.welcome["session_id"], "resume_token": bob.token, "streams": streams}
    return {"v": 2, "type": "RESUME", "id": "resume-1", "ts": 1, "payload": payload}


# --- SYNC ----------------------------------------------------------------------------------------------------------


def test_sync_goes_on_with_the_session_and_says_where_the_streams_are(relay: Relay) -> None:
    alice, bob = exchange(relay, count=5, acked=3)
    again = relay.connect()
    again.write_frame(resume_frame(bob, [{"topic": "", "peer": alice.name, "last_seq": 3}]))
    sync, found = sync_then_deliveries(again, 2)
    assert sync["session_id"] == bob.welcome["session_id"]
    assert is_id(sync["session_id"], "ses_")
    assert sync["resume_token"] != bob.token
    assert sync["reply_to"] == "resume-1"
    (stream,) = sync["streams"]
    assert (stream.get("topic", ""), stream["peer"], stream["last_seq"], stream["server_last_seq"]) == ("", alice.name, 3, 5)
    assert seqs(found) == [4, 5]


@pytest.mark.parametrize("form", ["map", "list"])
@pytest.mark.parametrize("last_seq", [0, 2, 3, 4, 6])
def test_everything_after_last_seq_follows_in_order(relay: Relay, form: str, last_seq: int) -> None:
    """Also what was acknowledged already, and not what the client says it has seen."""
    alice, bob = exchange(relay, count=6, acked=3)
    streams: Any = {"": {"last_seq": last_seq}}
    if form == "list":
        streams = [{"topic": "", "peer": alice.name, "last_seq": last_seq}]
    again = relay.connect()
    again.resume(bob.name, bob.token, streams, session_id=bob.welcome["session_id"])
    alice.send_stored(bob.name, "live")
    found = again.deliveries(6 - last_seq + 1)
    assert seqs(found) == list(range(last_seq + 1, 8))
    assert bodies(found) == [str(number) for number in range(last_seq + 1, 7)] + ["live"]
    again.expect_none("DELIVER")


def test_a_stream_not_named_resumes_after_the_last_acknowledged_message(relay: Relay) -> None:
    alice, carol, bob = relay.join("Alice"), relay.join("Carol"), relay.join("Bob")
    for number in range(1, 4):
        alice.send_stored(bob.name, f"plain {number}")
        alice.send_stored(bob.name, f"topic {number}", topic="work")
        carol.send_stored(bob.name, f"carol {number}")
    found = bob.deliveries(9, ack=False)
    for deliver in found:
        if deliver["delivery"]["seq"] == 1:
            bob.ack(deliver)
    bob.flush()
    relay.cut(bob)
    again = relay.connect()
    sync = again.resume(bob.name, bob.token, [{"topic": "work", "peer": alice.name, "last_seq": 2}])
    places = {(stream.get("topic", ""), stream["peer"]): stream["last_seq"] for stream in sync["streams"]}
    assert places == {("", alice.name): 1, ("work", alice.name): 2, ("", carol.name): 1}
    found = again.deliveries(5)
    assert sorted(bodies(found)) == ["carol 2", "carol 3", "plain 2", "plain 3", "topic 3"]
    for sender, topic in ((alice.name, None), (alice.name, "work"), (carol.name, None)):
        numbers = seqs([f for f in found if f["from"] == sender and f.get("topic") == topic])
        assert numbers == sorted(numbers)
    again.expect_none("DELIVER")


def test_a_topic_with_several_peers_is_replayed_and_acknowledges_nothing(relay: Relay) -> None:
    """The map form names no peer, and numbers count per peer."""
    alice, carol, bob = relay.join("Alice"), relay.join("Carol"), relay.join("Bob")
    for sender in (alice, carol):
        for number in range(1, 4):
            sender.send_stored(bob.name, f"{sender.name} {number}")
    bob.deliveries(6, ack=False)
    relay.cut(bob)
    again = relay.connect()
    again.resume(bob.name, bob.token, {"": {"last_seq": 3}})
    assert len(again.deliveries(6)) == 6


def test_what_last_seq_covers_counts_as_acknowledged(relay: Relay) -> None:
    alice, bob = exchange(relay, count=4, acked=0)
    again = relay.connect()
    again.resume(bob.name, bob.token, [{"topic": "", "peer": alice.name, "last_seq": 3}])
    assert seqs(again.deliveries(1)) == [4]
    again.flush()
    relay.cut(again)
    third = relay.rejoin(bob.name, token=again.token)
    third.expect_none("DELIVER")


def test_a_last_seq_from_the_future_acknowledges_no_future_message(relay: Relay) -> None:
    alice, bob = exchange(relay, count=2, acked=2)
    again = relay.connect()
    again.resume(bob.name, bob.token, [{"topic": "", "peer": alice.name, "last_seq": 1000}])
    alice.send_stored(bob.name, "third")
    (deliver,) = again.deliveries(1)
    assert (deliver["payload"]["body"], deliver["delivery"]["seq"]) == ("third", 3)


def test_replay_comes_before_live_traffic_while_others_keep_sending(relay: Relay) -> None:
    alice, bob = exchange(relay, count=40, acked=20)
    again = relay.connect()
    live = [alice.message(bob.name, str(number)) for number in range(41, 81)]
    again.write_frame(resume_frame(bob, {"": {"last_seq": 10}}))
    alice.write(b"".join(map(encode, live)))
    _, found = sync_then_deliveries(again, 70)
    assert seqs(found) == list(range(11, 81))
    assert bodies(found) == [str(number) for number in range(11, 81)]


def test_a_stream_nobody_knows_is_ignored(relay: Relay) -> None:
    _, bob = exchange(relay, count=2, acked=1)
    again = relay.connect()
    again.resume(bob.name, bob.token, [{"topic": "never", "peer": "nobody-known", "last_seq": 7}])
    assert seqs(again.deliveries(1)) == [2]


def test_resume_keeps_what_was_agreed_in_the_handshake(relay: Relay) -> None:
    alice, bob = exchange(relay, count=1, acked=1)
    again = relay.connect()
    again.resume(bob.name, bob.token)
    assert again.send_stored(alice.name, "x")["recipients"] == 1  # the ack capability
    alice.send_stored(bob.name, "again")
    again.deliveries(1, ack=False)
    relay.cut(again)
    third = relay.rejoin(bob.name, token=again.token)
    assert bodies(third.deliveries(1)) == ["again"]


def test_resume_takes_over_a_live_connection(relay: Relay) -> None:
    bob = relay.join("Bob")
    again = relay.connect()
    again.resume(bob.name, bob.token, session_id=bob.welcome["session_id"])
    assert bob.expect("BYE")["payload"]["reason"] == "superseded"
    bob.wait_closed()
    relay.join().send_stored(bob.name, "x")
    again.deliveries(1)


# --- the short form ------------------------------------------------------------------------------------------------


def test_hello_with_a_token_is_the_short_form(relay: Relay) -> None:
    alice, bob = exchange(relay, count=5, acked=3)
    again = relay.connect()
    hello = again.hello_frame(bob.name, token=bob.token)
    again.write_frame(hello)
    first = again.next_frame()
    assert first["type"] == "WELCOME"
    assert first["payload"]["session_id"] == bob.welcome["session_id"]
    assert seqs(again.deliveries(2)) == [4, 5]
    alice.send_stored(bob.name, "live")
    assert seqs(again.deliveries(1)) == [6]


# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["agent", "resume_token"])
def test_resume_needs_a_name_and_a_token(relay: Relay, field: str) -> None:
    bob = relay.join("Bob")
    frame = resume_frame(bob, [])
    del frame["payload"][field]
    client = relay.connect()
    client.write_frame(frame)
    assert expect_fatal(client, "INVALID_FORMAT")["field"] == f"payload.{field}"
    bob.flush()


@pytest.mark.parametrize("streams", ["all", 5, {"": 3}, {"": {"last_seq": -1}}, [{"last_seq": "x"}], [5]])
def test_mistyped_streams_are_refused(relay: Relay, streams: Any) -> None:
    bob = relay.join("Bob")
    client = relay.connect()
    client.write_frame(resume_frame(bob, streams))
    assert expect_fatal(client, "INVALID_FORMAT")["field"].startswith("payload.streams")
    bob.flush()


def test_a_wrong_token_resumes_nothing(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    for token in (alice.token, "guess", ""):
        client = relay.connect()
        answer = client.ask_resume(bob.name, token)
        assert (answer["type"], answer["payload"]["code"]) == ("ERROR", "PERMISSION_DENIED")
        assert answer["payload"]["fatal"] is True
        assert answer["payload"]["details"]["reason"] == "bad_token"
        client.wait_closed()
    alice.flush()
    bob.flush()


def prune_everything(path: str) -> int:
    """Removes what retention would have removed long after: through the store's own door, while no daemon runs."""

    async def prune() -> int:
        loop = asyncio.get_running_loop()

        def post(callback: Callable[[], None]) -> None:
            loop.call_soon_threadsafe(callback)

        store = SqliteStore(path, post)
        store.open()
        pruned: asyncio.Future[int | StoreError] = loop.create_future()
        store.prune(int(time.time() * 1000) + 60_000, 1000, pruned.set_result)
        count = await pruned
        store.close()
        assert isinstance(count, int)
        return count

    return asyncio.run(prune())


def test_history_that_is_gone_is_stale_and_a_fresh_hello_is_heard(start_relay: StartRelay) -> None:
    relay = start_relay()
    alice, bob = exchange(relay, count=5, acked=5)
    relay.daemon.terminate()
    assert prune_everything(str(relay.daemon.state_dir / "messages.sqlite")) == 5
    relay.daemon.start()
    client = relay.connect()
    client.write_frame(resume_frame(bob, {"": {"last_seq": 2}}))
    refusal = client.expect("NACK", "SYNC", "ERROR")
    assert refusal["type"] == "NACK", refusal
    payload = refusal["payload"]
    assert payload["nack_id"] == "resume-1"
    assert {payload["code"], *payload["details"].values()} >= {"STALE", "RESUME_TOO_OLD"}
    client.hello(bob.name)
    relay.rejoin(alice.name).send_stored(bob.name, "afresh")
    (deliver,) = client.deliveries(1)
    assert (deliver["payload"]["body"], deliver["delivery"]["seq"]) == ("afresh", 6)
