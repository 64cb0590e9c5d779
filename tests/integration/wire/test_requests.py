"""Questions about the relay itself: LIST_AGENTS, HISTORY, CONTROL, and connections that only look on."""

from __future__ import annotations

import pytest

from .relay import Relay, bodies, expect_fatal


def test_list_agents_says_who_is_there_and_who_was(relay: Relay) -> None:
    bob = relay.join("Bob", cli="codex")
    away = relay.offline()
    relay.join("Alice").send_stored(away, "waits")
    bob_listed, away_listed = relay.agent(bob.name), relay.agent(away)
    assert bob_listed is not None
    assert away_listed is not None
    assert (bob_listed["connected"], bob_listed["cli"], bob_listed["queue_depth"]) == (True, "codex", 0)
    assert (away_listed["connected"], away_listed["queue_depth"]) == (False, 1)


def test_list_agents_counts_what_is_on_the_wire(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob", capabilities={"max_inflight": 2})
    for _ in range(5):
        alice.send_stored(bob.name, "x")
    bob.deliveries(2, ack=False)
    listed = relay.agent(bob.name)
    assert listed is not None
    assert (listed["inflight"], listed["queue_depth"]) == (2, 3)


def test_an_observer_looks_on_and_takes_no_part(relay: Relay) -> None:
    alice = relay.join("Alice")
    observer = relay.connect()
    observer.hello(alice.name + "-watch", mode="observer")
    assert relay.agent(alice.name + "-watch") is None
    assert alice.send_stored("*", "everyone")["recipients"] == 0
    alice.refused(alice.send(alice.name + "-watch", "x"), "AGENT_NOT_FOUND")
    observer.refused(observer.send(alice.name, "x"), "PERMISSION_DENIED")
    assert observer.request("LIST_AGENTS", {})["server"]
    assert observer.request("HISTORY", {"with": alice.name})["messages"] is not None
    observer.expect_none("DELIVER", seconds=0)
    alice.expect_none("DELIVER", seconds=0)


def test_an_observer_disturbs_no_agent_of_its_name(relay: Relay) -> None:
    bob = relay.join("Bob")
    observer = relay.connect()
    observer.hello(bob.name, mode="observer")
    relay.join().send_stored(bob.name, "for the agent")
    assert bodies(bob.deliveries(1)) == ["for the agent"]
    observer.expect_none("DELIVER", seconds=0)


@pytest.mark.parametrize(("kind", "payload"), [("SUBSCRIBE", {"topic": "a"}), ("CHANNEL_JOIN", {"channel": "#a"})])
def test_an_observer_cannot_join_anything(relay: Relay, kind: str, payload: dict[str, str]) -> None:
    observer = relay.connect()
    observer.hello(relay.name("watch"), mode="observer")
    answer = observer.answer(observer.say(kind, payload))
    assert answer["type"] in ("NACK", "ERROR")
    assert answer["payload"]["code"] == "PERMISSION_DENIED"


def test_an_observer_needs_a_good_name_too(relay: Relay) -> None:
    observer = relay.connect()
    observer.write_frame(observer.hello_frame("not a name", mode="observer"))
    expect_fatal(observer, "INVALID_TARGET")


def test_history_finds_what_was_stored_newest_first(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob", auto_ack=True), relay.join("Carol", auto_ack=True)
    for number in range(5):
        alice.send_stored(bob.name, f"haystack {number}", payload={"thread": f"t{number % 2}"})
    alice.send_stored(carol.name, "needle in there", topic="search")
    between = relay.history(**{"from": alice.name, "to": bob.name})
    assert bodies(between) == [f"haystack {number}" for number in (4, 3, 2, 1, 0)]
    assert bodies(relay.history(**{"with": carol.name})) == ["needle in there"]
    assert bodies(relay.history(thread="t1", **{"with": alice.name})) == ["haystack 3", "haystack 1"]
    assert bodies(relay.history(search="needle", **{"from": alice.name})) == ["needle in there"]
    assert bodies(relay.history(limit=2, **{"from": alice.name})) == ["needle in there", "haystack 4"]


def test_history_goes_on_page_by_page(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob", auto_ack=True)
    for number in range(7):
        alice.send_stored(bob.name, str(number))
    seen, cursor = [], None
    while True:
        query = {"from": alice.name, "limit": 3, **({"cursor": cursor} if cursor else {})}
        page = alice.request("HISTORY", query)
        assert len(page["messages"]) <= 3
        seen += bodies(page["messages"])
        cursor = page.get("next_cursor")
        if not cursor:
            break
    assert seen == ["6", "5", "4", "3", "2", "1", "0"]


def test_one_message_is_shown_with_its_trail(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    message_id = alice.send_stored(bob.name, "whole life")["message_id"]
    bob.deliveries(1)
    bob.flush()
    shown = alice.request("HISTORY", {"view": "message", "id": message_id})
    assert bodies(shown["messages"]) == ["whole life"]
    assert shown["trail"]


def test_an_unknown_command_is_refused(relay: Relay) -> None:
    client = relay.join()
    answer = client.answer(client.say("CONTROL", {"command": "self_destruct"}))
    assert answer["type"] in ("NACK", "ERROR")
    client.flush()
