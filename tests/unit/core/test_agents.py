"""An agent and its row, the ids it has used, and what it is told when it comes back."""

from __future__ import annotations

from agent_relay.core.agents import Agent, DedupWindow, Traits, restore_agent
from agent_relay.protocol.ulid import first_number_at
from tests.support.harness import START_WALL_MS, HarnessClient, RelayHarness


def make_agent() -> Agent:
    agent = Agent("Bob", 1_000, 77, 10)
    agent.cli = "claude"
    agent.last_seen_at = 99
    agent.session_id = "ses_x"
    agent.token_hash = "h1"
    agent.previous_token_hash = "h0"
    agent.traits = Traits(meta={"task": "ünïcode", "n": 1}, capabilities=["ack"], version=2, max_inflight=3)
    return agent


def test_a_row_restores_the_agent() -> None:
    agent = make_agent()
    restored = restore_agent(agent.row(), 10)
    assert restored.row() == agent.row()
    assert restored.traits == agent.traits
    assert (restored.key, restored.connected) == ("bob", False)


def test_a_stream_is_one_per_sender_and_topic_whatever_the_case() -> None:
    agent, sender = make_agent(), Agent("Alice", 1_000, 0, 10)
    plain, news = agent.stream_from(sender, ""), agent.stream_from(sender, "news")
    assert plain is not news
    assert agent.stream_from(Agent("ALICE", 1_000, 0, 10), "") is plain
    assert (plain.sender, plain.recipient, news.topic) == ("Alice", "Bob", "news")


def test_two_agents_share_nothing() -> None:
    first, second = Agent("A", 0, 0, 10), Agent("B", 0, 0, 10)
    first.traits.meta["x"] = 1
    first.subscriptions.add("t")
    first.notices.append(("ACK", {}))
    assert (second.traits.meta, second.subscriptions, second.notices) == ({}, set(), [])


HOUR_MS = 3_600_000


def test_a_message_is_found_until_it_is_too_old() -> None:
    window, number = DedupWindow(10), first_number_at(START_WALL_MS)
    window.younger["a"] = number
    assert window.find("a", START_WALL_MS) == number
    assert window.find("a", START_WALL_MS + 1) is None
    assert window.find("b", 0) is None


def test_at_least_the_capacity_is_remembered_and_at_most_twice_that() -> None:
    window, first = DedupWindow(100), first_number_at(START_WALL_MS)
    for count in range(1_000):
        window.younger[str(count)] = first + count
        window.let_go()
        assert len(window) <= 200
        for recent in range(max(0, count - 99), count + 1, 7):
            assert window.find(str(recent), 0) == first + recent
    assert window.find("500", 0) is None


def test_the_same_send_again_gets_the_same_answer_and_is_not_delivered_again() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    for _ in range(3):
        alice.send("Bob", "once", id="same")
    first, *again = alice.stored()
    assert again == [first | {"duplicate": True}] * 2
    assert bob.bodies() == ["once"]


def test_a_duplicate_in_flight_is_answered_once_each_when_the_first_is_durable() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    relay.store.hold()
    for _ in range(3):
        alice.send("Bob", "once", id="same")
    assert not alice.frames
    relay.store.release()
    relay.settle()
    first, *again = alice.stored()
    assert "duplicate" not in first
    assert again == [first | {"duplicate": True}] * 2
    assert bob.bodies() == ["once"]


def test_a_duplicate_in_flight_of_a_send_that_fails_is_refused_as_often_as_it_was_sent() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    relay.store.hold()
    alice.send("Bob", id="same")
    alice.send("Bob", id="same")
    relay.store.fail_next()
    relay.store.release()
    relay.settle()
    refusals = alice.take()
    assert [(frame["type"], frame["payload"]["nack_id"]) for frame in refusals] == [("NACK", "same")] * 2
    alice.send("Bob", "now", id="same")
    assert len(alice.stored()) == 1
    assert bob.bodies() == ["now"]


def test_a_duplicate_from_the_next_connection_is_answered_there() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    relay.store.hold()
    alice.send("Bob", id="same")
    alice.drop()
    again = relay.open()
    again.hello("Alice", token=alice.token)
    relay.store.step_held()  # the message becomes durable; its sender is on a connection that is not open yet
    relay.relay.turn_ended()
    relay.store.release()
    relay.settle()
    again.send("Bob", id="same")
    (answer,) = again.stored()
    assert answer["duplicate"] is True
    assert len(bob.bodies()) == 1


def test_another_sender_may_use_the_same_id() -> None:
    relay = RelayHarness()
    alice, bob, carol = relay.connect("Alice"), relay.connect("Bob"), relay.connect("Carol")
    alice.send("Carol", "from Alice", id="same")
    bob.send("Carol", "from Bob", id="same")
    assert carol.bodies() == ["from Alice", "from Bob"]


def test_an_id_may_be_used_anew_after_the_window() -> None:
    relay = RelayHarness(dedup_window_ms=HOUR_MS)
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob", "first", id="same")
    relay.advance(HOUR_MS)
    alice.send("Bob", "second", id="same")
    relay.advance(1)
    alice.send("Bob", "third", id="same")
    assert bob.bodies()[0] == "first"
    assert ["duplicate" in answer for answer in alice.stored()] == [False, True, False]


def test_a_restart_remembers_the_answers_word_for_word() -> None:
    relay = RelayHarness(queue_capacity=1)
    alice = relay.connect("Alice")
    relay.connect("Bob", max_inflight=1)
    relay.connect("Carol").drop()
    alice.send(["Bob", "Carol"], "both", id="both")
    alice.send("Bob", "waits")
    alice.send("*", "all", id="all")
    answers = [answer for answer in alice.stored() if answer["ack_id"] in {"both", "all"}]
    assert [answers[0]["queued"], answers[1]["skipped"]] == [1, ["Bob"]]
    relay.restart()
    again = relay.connect("Alice", token=alice.token)
    again.send(["Bob", "Carol"], "both", id="both")
    again.send("*", "all", id="all")
    assert again.stored() == [answer | {"duplicate": True} for answer in answers]
    assert relay.store.stats().messages == 3


def test_a_duplicate_that_asks_for_a_receipt_is_told_again_what_became_of_it() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob", id="same", meta={"requires_ack": True})
    bob.ack(bob.take_one("DELIVER"))
    (receipt,) = alice.delivered()
    alice.send("Bob", id="same", meta={"requires_ack": True})
    assert alice.delivered() == [receipt]


def acknowledge_all(client: HarnessClient) -> None:
    for deliver in client.take("DELIVER"):
        client.ack(deliver)


def test_receipts_wait_for_their_sender() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    for number in range(3):
        alice.send("Bob", id=f"m{number}", meta={"requires_ack": True})
    alice.drop()
    acknowledge_all(bob)
    again = relay.connect("Alice", token=alice.token)
    assert [receipt["ack_id"] for receipt in again.delivered()] == ["m0", "m1", "m2"]
    assert not relay.connect("Alice", token=again.token).delivered()


def test_a_fresh_session_is_not_told_what_concerned_the_one_before() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob", meta={"requires_ack": True})
    alice.drop()
    acknowledge_all(bob)
    assert not relay.connect("Alice").delivered()


def test_no_more_than_the_capacity_is_kept() -> None:
    relay = RelayHarness(notice_capacity=2)
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    for number in range(5):
        alice.send("Bob", id=f"m{number}", meta={"requires_ack": True})
    alice.drop()
    acknowledge_all(bob)
    again = relay.connect("Alice", token=alice.token)
    assert [receipt["ack_id"] for receipt in again.delivered()] == ["m0", "m1"]


def test_a_notice_comes_after_welcome_and_before_messages() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob", meta={"requires_ack": True})
    alice.drop()
    acknowledge_all(bob)
    bob.send("Alice")
    again = relay.open()
    again.hello("Alice", token=alice.token)
    assert [frame["type"] for frame in again.take()] == ["WELCOME", "ACK", "DELIVER"]
