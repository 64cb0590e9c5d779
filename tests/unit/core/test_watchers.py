"""SUBSCRIBE to `$events`: from where one likes, as fast as one reads, and past events by HISTORY."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.ports.connection import FULL_BYTES
from tests.support.harness import HarnessClient, RelayHarness


def observe(relay: RelayHarness, *, events: bool = True) -> HarnessClient:
    client = relay.open()
    client.hello("watcher", mode="observer", capabilities={"events": events})
    client.welcome = client.payload("WELCOME")
    return client


def subscribe(client: HarnessClient, **asked: Any) -> tuple[str, dict[str, Any]]:
    id_ = client.say("SUBSCRIBE", {"topic": "$events", **asked})
    return id_, client.payload("ACK")


def taken(client: HarnessClient, subscription: str | None = None) -> list[dict[str, Any]]:
    frames = [frame["payload"] for frame in client.take("AGENT_EVENT")]
    assert all(payload["type"] == payload["event"]["type"] for payload in frames)
    return [payload["event"] for payload in frames if subscription in {None, payload["subscription"]}]


def numbers(client: HarnessClient) -> list[int]:
    return [event["_seq"] for event in taken(client)]


def happen(relay: RelayHarness, client: HarnessClient, count: int, text: str = "x") -> None:
    """So many events, in turns of twenty."""
    for place in range(0, count, 20):
        said = {"type": "item.delta", "fields": {"itemId": "i", "delta": {"type": "text", "content": text}}}
        client.say_frames(*(client.frame("AGENT_EVENT", said) for _ in range(min(20, count - place))))


def test_from_now_on(relay: RelayHarness) -> None:
    alice = relay.connect("Alice")
    happen(relay, alice, 3)
    watcher = observe(relay)
    _, receipt = subscribe(watcher)
    assert receipt["stage"] == "subscribed"
    assert (receipt["topic"], receipt["seq"]) == ("$events", 4)
    happen(relay, alice, 2)
    assert numbers(watcher) == [5, 6]


@pytest.mark.parametrize("after", [0, 2, 4])
def test_after_a_number(relay: RelayHarness, after: int) -> None:
    alice = relay.connect("Alice")
    happen(relay, alice, 3)
    watcher = observe(relay)
    subscribe(watcher, after_seq=after)
    happen(relay, alice, 1)
    assert numbers(watcher) == list(range(after + 1, 6))


def test_since_a_moment(relay: RelayHarness) -> None:
    alice = relay.connect("Alice")
    relay.advance(1_000)
    moment = relay.wall_ms
    happen(relay, alice, 2)
    watcher = observe(relay)
    subscribe(watcher, since=moment)
    assert numbers(watcher) == [2, 3]


def test_agents_and_types(relay: RelayHarness) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    watcher = observe(relay)
    first, _ = subscribe(watcher, types=["message.*"], agent="bob")
    second, _ = subscribe(watcher, session_id=alice.welcome["session_id"])
    alice.send("Bob", "hello")
    alice.send("Alice", "to myself")
    bob.ack(bob.take_one("DELIVER"))
    frames = watcher.take("AGENT_EVENT")
    heard = {id_: [f["payload"]["event"] for f in frames if f["payload"]["subscription"] == id_] for id_ in (first, second)}
    assert [event["type"] for event in heard[first]] == ["message.exchanged", "message.delivered"]
    assert {event["_agentName"] for event in heard[second]} == {"Alice"}
    assert len(heard[second]) == 2


def test_an_agent_may_watch_as_well(relay: RelayHarness) -> None:
    alice = relay.connect("Alice", capabilities={"events": True})
    subscribe(alice, types=["message.exchanged"])
    relay.connect("Bob").send("Alice", "hello")
    assert [event["body"] for event in taken(alice)] == ["hello"]
    assert relay.store.batches[-1].subscriptions == []


def test_without_the_capability_there_is_none(relay: RelayHarness) -> None:
    watcher = observe(relay, events=False)
    watcher.say("SUBSCRIBE", {"topic": "$events"})
    assert watcher.payload("ERROR")["code"] == "FEATURE_UNSUPPORTED"


def test_a_type_there_is_none_of_is_named(relay: RelayHarness) -> None:
    watcher = observe(relay)
    watcher.say("SUBSCRIBE", {"topic": "$events", "types": ["item.started", "nothing"]})
    assert watcher.payload("ERROR")["details"]["field"] == "payload.types"


@pytest.mark.parametrize("wrong", [{"after_seq": -1}, {"after_seq": "1"}, {"types": "item.*"}, {"since": 1.5}])
def test_a_wrong_field_is_named(relay: RelayHarness, wrong: dict[str, Any]) -> None:
    watcher = observe(relay)
    watcher.say("SUBSCRIBE", {"topic": "$events", **wrong})
    assert watcher.payload("ERROR")["details"]["field"] == f"payload.{next(iter(wrong))}"


def test_unsubscribing_ends_one_or_all(relay: RelayHarness) -> None:
    alice, watcher = relay.connect("Alice"), observe(relay)
    first, _ = subscribe(watcher)
    second, _ = subscribe(watcher)
    watcher.say("UNSUBSCRIBE", {"topic": "$events", "subscription": first})
    assert watcher.payload("ACK")["stage"] == "unsubscribed"
    happen(relay, alice, 1)
    assert {frame["payload"]["subscription"] for frame in watcher.take("AGENT_EVENT")} == {second}
    watcher.say("UNSUBSCRIBE", {"topic": "$events"})
    happen(relay, alice, 1)
    assert watcher.take("AGENT_EVENT") == []
    assert relay.events.bus.subscribers == 0


def test_a_lost_connection_frees_its_subscriptions(relay: RelayHarness) -> None:
    watcher = observe(relay)
    subscribe(watcher)
    watcher.drop()
    assert relay.events.bus.subscribers == 0


def test_a_connection_has_so_many_and_no_more(relay: RelayHarness) -> None:
    watcher = observe(relay)
    for _ in range(16):
        subscribe(watcher)
    watcher.say("SUBSCRIBE", {"topic": "$events"})
    assert watcher.payload("ERROR")["code"] == "RATE_LIMITED"


def test_the_same_subscribe_again_begins_anew(relay: RelayHarness) -> None:
    alice, watcher = relay.connect("Alice"), observe(relay)
    for _ in range(2):
        watcher.say("SUBSCRIBE", {"topic": "$events", "after_seq": 0}, id="same")
    assert numbers(watcher) == [1, 1]
    happen(relay, alice, 1)
    assert numbers(watcher) == [2]


def test_one_that_does_not_read_is_left_alone_and_misses_nothing(relay: RelayHarness) -> None:
    """3,000 events are more than wait for anybody: it is cut inside, and goes on after the last it was sent."""
    alice, watcher, quick = relay.connect("Alice"), observe(relay), observe(relay)
    subscribe(watcher)
    subscribe(quick)
    watcher.stall(FULL_BYTES + 1)
    happen(relay, alice, 3_000)
    assert len(numbers(quick)) == 3_000
    assert watcher.take("AGENT_EVENT") == []
    watcher.read_all()
    assert numbers(watcher) == list(range(2, 3_002))
    happen(relay, alice, 1)
    assert numbers(watcher) == [3_002]


def test_an_event_larger_than_a_frame_leaves_a_gap() -> None:
    relay = RelayHarness(max_frame_bytes=2_000)
    alice, watcher = relay.connect("Alice"), observe(relay)
    relay.connect("Bob")
    subscribe(watcher, types=["message.exchanged"])
    alice.send("Bob", "x" * 3_000)
    alice.send("Bob", "y")
    gap, message = taken(watcher)
    assert (gap["type"], gap["lost"], gap["oldest"]) == ("stream.gap", 1, gap["_seq"] + 1)
    assert message["body"] == "y"


def test_a_topic_of_messages_is_another_matter(relay: RelayHarness) -> None:
    alice, bob = relay.connect("Alice", capabilities={"events": True}), relay.connect("Bob")
    bob.say("SUBSCRIBE", {"topic": "events"})
    assert bob.payload("ACK")["stage"] == "subscribed"
    alice.send(None, "x", topic="events")
    assert bob.bodies() == ["x"]


# --- looking back ---------------------------------------------------------------------------------------------------------------


def look_back(client: HarnessClient, **asked: Any) -> dict[str, Any]:
    client.say("HISTORY", {"view": "events", **asked})
    return client.payload("HISTORY_RESULT")


def test_past_events_come_in_pages_oldest_first(relay: RelayHarness) -> None:
    alice, watcher = relay.connect("Alice"), observe(relay)
    happen(relay, alice, 25)
    found: list[int] = []
    cursor = None
    while True:
        page = look_back(watcher, limit=10, **({} if cursor is None else {"cursor": cursor}))
        found += [event["_seq"] for event in page["events"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == list(range(1, 27))


def test_a_page_fits_into_a_frame() -> None:
    relay = RelayHarness(max_frame_bytes=20_000)
    alice, watcher = relay.connect("Alice"), observe(relay)
    happen(relay, alice, 60, text="x" * 800)
    found: list[int] = []
    cursor = None
    while True:
        page = look_back(watcher, limit=500, **({} if cursor is None else {"cursor": cursor}))
        assert sum(len(str(event)) for event in page["events"]) < 22_000
        found += [event["_seq"] for event in page["events"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == list(range(1, 62))


def test_past_events_of_one_agent_and_type(relay: RelayHarness) -> None:
    alice, bob, watcher = relay.connect("Alice"), relay.connect("Bob"), observe(relay)
    alice.send("Bob", "hello")
    happen(relay, bob, 2)
    assert [event["type"] for event in look_back(watcher, types=["message.*"], **{"with": "Bob"})["events"]] == [
        "message.exchanged"
    ]
    session = look_back(watcher, session_id=bob.welcome["session_id"])["events"]
    assert [event["type"] for event in session] == ["agent.state", "item.delta", "item.delta"]


@pytest.mark.parametrize(("asked", "field"), [({"types": ["no"]}, "payload.types"), ({"cursor": "x"}, "payload.cursor")])
def test_a_wrong_question_is_named(relay: RelayHarness, asked: dict[str, Any], field: str) -> None:
    watcher = observe(relay)
    watcher.say("HISTORY", {"view": "events", **asked})
    assert watcher.payload("ERROR")["details"]["field"] == field
