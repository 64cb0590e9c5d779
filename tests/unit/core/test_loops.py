"""Agents that only answer each other are slowed, then held; new input lets them go on; nothing else is touched."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest

from tests.support.harness import HarnessClient, RelayHarness

GUARDED = {"control": True}


def wrapped(relay: RelayHarness, *names: str) -> list[HarnessClient]:
    """Agents the relay runs. The first is started last, so that the newest input is its own."""
    return [relay.connect(name, capabilities=GUARDED) for name in reversed(names)][::-1]


def hop(sender: HarnessClient, recipient: HarnessClient, body: str = "x") -> bool:
    """One message, read by its recipient if it arrives at once."""
    sender.send(recipient.name, body)
    found = recipient.take("DELIVER")
    for deliver in found:
        recipient.ack(deliver)
    return bool(found)


def go_round(clients: list[HarnessClient], hops: int) -> HarnessClient:
    """So many messages, each the answer to the one before; returns whose turn it is now."""
    turns = cycle(clients)
    speaker = next(turns)
    for number in range(1, hops + 1):
        listener = next(turns)
        assert hop(speaker, listener, f"{number}"), f"hop {number} did not arrive"
        speaker = listener
    return speaker


def read_all(relay: RelayHarness, client: HarnessClient) -> list[str]:
    bodies = []
    for deliver in client.take("DELIVER"):
        bodies.append(deliver["payload"]["body"])
        client.ack(deliver)
    return bodies


def loop_of(relay: RelayHarness, name: str) -> Any:
    return next(agent.loop for agent in relay.relay.queries.agents() if agent.name == name)


def type_to(client: HarnessClient) -> None:
    """A person types to the agent, and its wrapper reports it."""
    client.say("AGENT_EVENT", {"type": "agent.input"})


# --- slowing and holding -----------------------------------------------------------------------------------------------


def test_two_agents_that_answer_each_other_are_slowed_more_and_more() -> None:
    relay = RelayHarness(loop_slow_after=4, loop_hold_after=0)
    a, b = wrapped(relay, "A", "B")
    speaker = go_round([a, b], 3)
    waits = []
    for _ in range(10):
        listener = a if speaker is b else b
        assert not hop(speaker, listener)
        waited = 0
        while not (found := listener.take("DELIVER")):
            relay.advance(50)
            waited += 50
        waits.append(waited)
        listener.ack(found[0])
        speaker = listener
    assert waits == [2_000, 3_000, 4_500, 6_750, 10_150, 15_200, 22_800, 30_000, 30_000, 30_000]


def test_then_they_are_held_for_as_long_as_nothing_new_comes() -> None:
    relay = RelayHarness(loop_slow_after=0, loop_hold_after=6)
    a, b = wrapped(relay, "A", "B")
    speaker = go_round([a, b], 5)
    assert speaker is b
    assert not hop(b, a, "sixth")
    relay.advance(3_600_000)
    assert a.take("DELIVER") == []
    type_to(a)
    assert read_all(relay, a) == ["sixth"]
    go_round([a, b], 5)  # and the count begins anew


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_ring_of_any_size_counts_as_one_chain(size: int) -> None:
    relay = RelayHarness(loop_slow_after=0, loop_hold_after=11)
    ring = wrapped(relay, *(f"R{number}" for number in range(size)))
    speaker = go_round(ring, 10)
    listener = ring[(ring.index(speaker) + 1) % size]
    assert not hop(speaker, listener)


@pytest.mark.parametrize("setting", ["loop_slow_after", "loop_hold_after"])
def test_zero_switches_either_off(setting: str) -> None:
    relay = RelayHarness(**({"loop_slow_after": 3, "loop_hold_after": 3} | {setting: 0}))
    a, b = wrapped(relay, "A", "B")
    speaker = go_round([a, b], 2)
    assert not hop(speaker, b if speaker is a else a)
    assert loop_of(relay, "A")["stage"] == ("held" if setting == "loop_slow_after" else "slowed")


def test_both_off_means_that_nobody_is_guarded() -> None:
    relay = RelayHarness(loop_slow_after=0, loop_hold_after=0)
    go_round(wrapped(relay, "A", "B"), 200)
    assert relay.relay.registry.agents["a"].loop is None


# --- what is no loop ---------------------------------------------------------------------------------------------------


def test_programs_that_are_not_run_by_the_relay_are_never_guarded() -> None:
    relay = RelayHarness(loop_slow_after=2, loop_hold_after=3)
    go_round([relay.connect("A"), relay.connect("B")], 100)
    go_round([relay.connect("C"), *wrapped(relay, "D")], 100)  # every message of C's is new input to D


def test_a_lead_with_many_workers_counts_the_way_and_not_the_messages() -> None:
    relay = RelayHarness(loop_slow_after=5, loop_hold_after=0)
    lead, *workers = wrapped(relay, "Lead", *(f"W{number}" for number in range(20)))
    for worker in workers:
        assert hop(lead, worker, "do this")
    for worker in workers:
        for _ in range(5):
            assert hop(worker, lead, "progress")
    for worker in workers:
        assert hop(lead, worker, "well done")  # three hops from the beginning, after 120 messages


def test_notes_that_nobody_has_read_are_no_answers() -> None:
    relay = RelayHarness(loop_slow_after=3, loop_hold_after=0)
    a, b = wrapped(relay, "A", "B")
    for _ in range(50):
        a.send("B", "still busy")
        b.send("A", "so am I")
    assert len(a.take("DELIVER")) == len(b.take("DELIVER")) == 50


def test_the_same_send_twice_is_one_hop() -> None:
    relay = RelayHarness(loop_slow_after=0, loop_hold_after=3)
    a, b = wrapped(relay, "A", "B")
    frame = a.message("B", "once")
    a.say_frames(frame, frame)
    a.say_frames(frame)
    b.ack(b.take_one("DELIVER"))
    assert hop(b, a)
    assert not hop(a, b)


# --- new input ---------------------------------------------------------------------------------------------------------


def held_ring(**limits: int) -> tuple[RelayHarness, list[HarnessClient]]:
    """A → B → C → A … and the ninth message, to A, is held."""
    relay = RelayHarness(**({"loop_slow_after": 6, "loop_hold_after": 9} | limits))
    ring = wrapped(relay, "A", "B", "C")
    speaker = go_round(ring, 5)
    for _ in range(3):
        listener = ring[(ring.index(speaker) + 1) % 3]
        assert not hop(speaker, listener)
        relay.advance(10_000)
        assert read_all(relay, listener)
        speaker = listener
    assert speaker is ring[2]
    assert not hop(ring[2], ring[0], "ninth")
    relay.advance(100_000)
    assert ring[0].take("DELIVER") == []
    for client in ring:
        client.take()
    return relay, ring


@pytest.mark.parametrize("member", [0, 1, 2])
def test_typing_to_any_member_of_the_ring_opens_all_of_it(member: int) -> None:
    relay, ring = held_ring()
    type_to(ring[member])
    assert read_all(relay, ring[0]) == ["ninth"]
    assert [loop_of(relay, client.name) for client in ring] == [None, None, None]
    assert len(relay.log.named("loop_opened")) == 1
    go_round(ring, 5)


@pytest.mark.parametrize("member", [0, 1, 2])
def test_so_does_a_message_from_outside_which_comes_after_what_was_held(member: int) -> None:
    relay, ring = held_ring()
    person = relay.connect("Person")
    person.send(ring[member].name, "news")
    assert read_all(relay, ring[0]) == (["ninth", "news"] if member == 0 else ["ninth"])
    read_all(relay, ring[member])
    go_round(ring, 5)


def test_so_does_new_input_that_another_agent_passes_on() -> None:
    relay, ring = held_ring()
    (lead,) = wrapped(relay, "Lead")
    type_to(lead)
    lead.send("B", "the person says so")
    assert read_all(relay, ring[0]) == ["ninth"]
    assert read_all(relay, ring[1]) == ["the person says so"]


@pytest.mark.parametrize("command", ["resume", "input"])
def test_so_does_a_person_who_lets_an_agent_go_on(command: str) -> None:
    relay, ring = held_ring()
    relay.connect("Person").say("CONTROL", {"command": command, "agent": "B", "text": "go on"})
    assert read_all(relay, ring[0]) == ["ninth"]


def test_so_does_an_agent_that_is_started_anew() -> None:
    relay, ring = held_ring()
    ring[1].drop()
    assert ring[0].take("DELIVER") == []
    wrapped(relay, "B")
    assert read_all(relay, ring[0]) == ["ninth"]


def test_one_that_only_comes_back_is_held_as_before() -> None:
    relay, ring = held_ring()
    ring[0].drop()
    again = relay.open()
    again.hello("A", token=ring[0].token, capabilities=GUARDED)
    assert again.take("DELIVER") == []
    type_to(again)
    assert read_all(relay, again) == ["ninth"]


def test_new_input_that_waits_before_a_held_message_is_not_held_with_it() -> None:
    relay = RelayHarness(loop_slow_after=0, loop_hold_after=3)
    a, b = wrapped(relay, "A", "B")
    go_round([a, b], 2)
    b.drop()
    relay.connect("Person").send("B", "news")
    a.send("B", "third")
    again = relay.open()
    again.hello("B", token=b.token, capabilities=GUARDED)
    assert read_all(relay, again) == ["news", "third"]


def test_typing_to_one_of_them_in_time_starts_the_count_anew_for_both() -> None:
    relay = RelayHarness(loop_slow_after=0, loop_hold_after=10)
    pair = wrapped(relay, "A", "B")
    for _ in range(5):
        go_round(pair, 8)
        type_to(pair[0])


def test_a_member_that_has_heard_of_another_loop_meanwhile_still_opens_the_first() -> None:
    relay = RelayHarness(loop_slow_after=3, loop_hold_after=6)
    c, d, a, b = wrapped(relay, "C", "D", "A", "B")  # the chain of C and D is the newer one
    for ring, held in (([a, b], "held"), ([c, d], "slow")):
        speaker = go_round(ring, 2)
        for _ in range(3 if held == "held" else 2):
            listener = ring[1] if speaker is ring[0] else ring[0]
            speaker.send(listener.name)
            relay.advance(5_000)
            assert read_all(relay, listener)
            speaker = listener
    b.send("A", "sixth")
    a.take("DELIVER")
    assert not hop(c, b)
    relay.advance(10_000)
    assert read_all(relay, b)  # so B has left its own ring for the newer chain
    assert a.take("DELIVER") == []
    type_to(b)
    assert read_all(relay, a) == ["sixth"]


def test_new_input_counts_when_it_is_read_as_well() -> None:
    relay = RelayHarness(loop_slow_after=0, loop_hold_after=4)
    a, b = wrapped(relay, "A", "B")
    relay.connect("Person").send("A", "news")
    unread = a.take_one("DELIVER")
    go_round([a, b], 3)
    assert not hop(b, a, "fourth")
    a.ack(unread)
    assert read_all(relay, a) == ["fourth"]


def test_an_old_message_that_is_shown_again_is_no_new_input() -> None:
    relay = RelayHarness(loop_slow_after=0, loop_hold_after=3)
    a, b = wrapped(relay, "A", "B")
    relay.connect("Person").send("B", "long ago")
    assert read_all(relay, b) == ["long ago"]
    type_to(a)
    go_round([a, b], 2)
    assert not hop(a, b, "third")
    b.drop()
    again = relay.open()
    again.resume("B", b.token, [{"topic": "", "peer": "Person", "last_seq": 0}])
    assert again.bodies() == ["long ago"]
    assert loop_of(relay, "B")["stage"] == "held"


def test_whoever_hears_of_a_newer_chain_goes_on_counting_in_it() -> None:
    relay = RelayHarness(loop_slow_after=3, loop_hold_after=4)
    c, d, b, e = wrapped(relay, "C", "D", "B", "E")
    speaker = go_round([c, d], 2)
    assert not hop(speaker, b)
    relay.advance(2_000)
    assert read_all(relay, b)
    assert not hop(b, e)
    assert relay.log.named("loop_detected")[-1]["stage"] == "held"


# --- what waits behind -------------------------------------------------------------------------------------------------


def test_everything_behind_a_held_message_waits_in_order_and_within_capacity() -> None:
    relay = RelayHarness(loop_slow_after=0, loop_hold_after=3, queue_capacity=4)
    a, b, c = wrapped(relay, "A", "B", "C")
    speaker = go_round([a, b], 2)
    assert speaker is a
    a.take()
    for number in range(4):
        a.send("B", f"held {number}", meta={"priority": 9 - number})
    assert len(a.stored()) == 4
    assert next(agent for agent in relay.relay.queries.agents() if agent.name == "B").queue_depth == 4
    a.send("B", "too much")
    assert a.payload("NACK")["code"] == "QUEUE_FULL"
    assert b.take("DELIVER") == []
    type_to(b)
    assert read_all(relay, b) == [f"held {number}" for number in range(4)]
    assert hop(c, b)


def test_a_held_message_ends_with_its_time() -> None:
    relay = RelayHarness(loop_slow_after=0, loop_hold_after=3)
    a, b = wrapped(relay, "A", "B")
    go_round([a, b], 2)
    a.send("B", "short", meta={"ttl_ms": 5_000})
    relay.advance(6_000)
    assert a.payload("NACK")["code"] == "DELIVERY_TIMEOUT"
    type_to(b)
    assert b.take("DELIVER") == []


def test_one_that_was_slowed_and_then_lost_on_the_wire_does_not_wait_twice() -> None:
    relay = RelayHarness(loop_slow_after=3, loop_hold_after=0)
    a, b = wrapped(relay, "A", "B")
    go_round([a, b], 2)
    assert not hop(a, b, "slow")
    relay.advance(2_000)
    assert b.bodies() == ["slow"]
    b.drop()
    again = relay.open()
    again.hello("B", token=b.token, capabilities=GUARDED)
    assert again.bodies() == ["slow"]


def test_after_a_restart_of_the_daemon_counts_begin_anew() -> None:
    relay, ring = held_ring()
    relay.advance(1_000)
    relay.restart()
    again = relay.open()
    again.hello("A", token=ring[0].token, capabilities=GUARDED)
    assert again.bodies() == ["ninth"]


# --- saying so ---------------------------------------------------------------------------------------------------------


def test_the_members_are_told_once_when_it_is_slowed_and_once_when_it_is_held() -> None:
    relay = RelayHarness(loop_slow_after=3, loop_hold_after=5)
    ring = wrapped(relay, "A", "B")
    bystander = wrapped(relay, "C")[0]
    speaker = go_round(ring, 2)
    for _ in range(2):
        listener = ring[1] if speaker is ring[0] else ring[0]
        speaker.send(listener.name)
        relay.advance(10_000)
        read_all(relay, listener)
        speaker = listener
    for _ in range(3):
        speaker.send("B")
    for client in ring:
        slowed, held = [frame["payload"] for frame in client.take("AGENT_EVENT")]
        assert (slowed["type"], held["type"]) == ("loop.detected", "loop.detected")
        text = slowed["fields"].pop("text")
        assert slowed["fields"] == {"agents": ["A", "B"], "hops": 3, "stage": "slowed"}
        assert text.startswith("A and B have answered each other 3 times without new input.")
        assert "more slowly" in text
        text = held["fields"].pop("text")
        assert held["fields"] == {"agents": ["A", "B"], "hops": 5, "stage": "held"}
        assert "wait" in text
        assert "resume" not in text  # an agent must not learn here how to go on without anybody
    assert bystander.take("AGENT_EVENT") == []
    assert [note["stage"] for note in relay.log.named("loop_detected")] == ["slowed", "held"]
    assert loop_of(relay, "A") == {"stage": "held", "hops": 5, "agents": ["A", "B"]}
    assert loop_of(relay, "C") is None


def test_who_only_began_the_chain_is_no_part_of_the_ring() -> None:
    relay = RelayHarness(loop_slow_after=0, loop_hold_after=25)
    lead, a, b = wrapped(relay, "Lead", "A", "B")
    assert hop(lead, a)
    speaker = go_round([a, b], 23)
    assert not hop(speaker, a)
    assert relay.log.named("loop_detected")[0]["agents"] == ["A", "B"]
    type_to(lead)
    assert a.take("DELIVER") == []


def test_one_that_is_told_as_well_and_never_speaks_waits_and_goes_on_with_the_ring() -> None:
    relay = RelayHarness(loop_slow_after=0, loop_hold_after=3)
    a, b, silent = wrapped(relay, "A", "B", "Silent")
    go_round([a, b], 2)
    a.send(["B", "Silent"], "third")
    assert silent.take("DELIVER") == []
    assert loop_of(relay, "Silent") == {"stage": "held", "hops": 3, "agents": ["A", "B"]}
    assert silent.take("AGENT_EVENT") == []
    type_to(b)
    assert read_all(relay, silent) == ["third"]
    assert loop_of(relay, "Silent") is None


def test_two_rings_of_one_chain_are_both_told() -> None:
    relay = RelayHarness(loop_slow_after=0, loop_hold_after=24)
    lead, a, b, c, d = wrapped(relay, "Lead", "A", "B", "C", "D")
    type_to(lead)
    for pair in ((a, b), (c, d)):
        assert hop(lead, pair[0])
        speaker = go_round(list(pair), 22)
        assert not hop(speaker, pair[1])
        assert len(pair[0].take("AGENT_EVENT")) == len(pair[1].take("AGENT_EVENT")) == 1


@pytest.mark.parametrize(("limits", "hold", "detail"), [
    ({"loop_slow_after": 3, "loop_hold_after": 0}, "loop_slowed", "loop guard: 3 answers in a row, messages are slowed"),
    ({"loop_slow_after": 0, "loop_hold_after": 3}, "loop_guard", "loop guard: 3 answers in a row"),
])  # fmt: skip
def test_the_trail_says_why_a_message_waits(limits: dict[str, int], hold: str, detail: str) -> None:
    relay = RelayHarness(**limits)
    a, b = wrapped(relay, "A", "B")
    go_round([a, b], 2)
    a.take()
    a.send("B", "third")
    (receipt,) = a.stored()
    a.say("HISTORY", {"view": "message", "id": receipt["message_id"]})
    trail = a.payload("HISTORY_RESULT")["trail"]
    assert [(step["event"], step["to"], step["hold"], step["detail"]) for step in trail] == [("waits", "B", hold, detail)]


def test_an_agent_that_comes_back_without_a_wrapper_is_guarded_no_more() -> None:
    relay, ring = held_ring()
    ring[0].drop()
    plain = relay.open()
    plain.hello("A", token=ring[0].token)
    assert plain.bodies() == ["ninth"]
    assert loop_of(relay, "A") is None


def test_a_chain_without_an_end_is_slowed_and_never_breaks_the_count() -> None:
    relay = RelayHarness(loop_slow_after=1, loop_hold_after=0)
    a, b = wrapped(relay, "A", "B")
    standing = relay.relay.registry.agents["a"].loop
    assert standing is not None
    standing.hops = 10_000
    assert not hop(a, b)
    relay.advance(30_000)
    assert read_all(relay, b)
