"""The checker itself: for each rule histories that break it and are caught, and beside them what looks alike and is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.chaos.history import History
from tests.chaos.rules import RULES, check

Story = Callable[[History], None]


def send(history: History, ref: str = "A-1", to: tuple[str, ...] = ("B",), *, stored: bool = True, recipients: int = 1) -> None:
    history.sent("A", ref, to, ttl_ms=1_000_000)
    if stored:
        history.stored("A", ref, f"msg_{ref}", recipients)


def arrive(
    history: History, ref: str = "A-1", seq: int = 1, *, who: str = "B", link: int = 1, attempt: int = 1,
    prev_seq: int | None = None, ack: bool = True, shared: bool = False, message_id: str = "",
) -> None:  # fmt: skip
    message_id = message_id or f"msg_{ref}"
    history.arrived(
        who, ref, "A", link=link, message_id=message_id, delivery_id=f"d_{message_id}_{who}_{seq}", seq=seq, attempt=attempt,
        prev_seq=prev_seq, shared=shared,
    )  # fmt: skip
    if ack:
        history.answered(who, f"d_{message_id}_{who}_{seq}", "ack")


def tell(history: History, ref: str = "A-1", who: str = "B", told: str = "delivered") -> None:
    history.outcome("A", ref, f"msg_{ref}", who, told)


def speak(history: History) -> None:
    """The recipient says something, and is answered: the daemon has read what it said before."""
    history.sent("B", "B-1", ("*",))
    history.stored("B", "B-1", "msg_B-1", 0)


def whole(history: History) -> None:
    """A message that was sent, stored, read, acknowledged, and told of."""
    history.connected("B", 1)
    send(history)
    arrive(history)
    tell(history)


# --- what is right ----------------------------------------------------------------------------------------------------------


def one_message(history: History) -> None:
    whole(history)
    history.settled()


def a_repetition_after_a_lost_answer(history: History) -> None:
    send(history, stored=False)
    send(history)
    history.stored("A", "A-1", "msg_A-1", 1)
    arrive(history)
    tell(history)
    tell(history)
    history.settled()


def a_refusal_that_is_tried_again(history: History) -> None:
    send(history, stored=False)
    history.refused("A", "A-1", "SERVICE_UNAVAILABLE")
    send(history, "A-2")
    arrive(history, "A-2", 1)
    tell(history, "A-2")
    send(history)
    arrive(history, "A-1", 2)
    tell(history)
    history.settled()


def an_expired_message_that_was_passed_over(history: History) -> None:
    history.connected("B", 1)
    for ref in ("A-1", "A-2", "A-3"):
        send(history, ref)
    arrive(history, "A-1", 1)
    tell(history, "A-1")
    tell(history, "A-2", told="DELIVERY_TIMEOUT")
    arrive(history, "A-3", 3, prev_seq=1)
    tell(history, "A-3")
    history.settled()


def a_redelivery_after_a_crash(history: History) -> None:
    history.connected("B", 1)
    send(history)
    arrive(history)
    history.fault("kill")
    history.fault("kill", ends=True)
    history.connected("B", 2)
    arrive(history, link=2, attempt=2)
    tell(history)
    history.settled()


def a_resume_that_asks_for_old_ones(history: History) -> None:
    whole(history)
    speak(history)
    assert history.now is not None
    history.now += 10
    history.claimed("B", "A", "", 0)
    history.connected("B", 2)
    arrive(history, link=2, attempt=1)
    history.settled()


def an_acknowledgement_that_nobody_has_read_yet(history: History) -> None:
    whole(history)
    assert history.now is not None
    history.now += 10
    history.connected("B", 2)
    arrive(history, link=2, attempt=2)
    history.settled()


def a_resume_that_acknowledges(history: History) -> None:
    history.connected("B", 1)
    send(history)
    arrive(history, ack=False)
    history.claimed("B", "A", "", 1)
    tell(history)
    history.settled()


def a_broadcast_to_two(history: History) -> None:
    for number in (1, 2):
        send(history, f"A-{number}", ("*",), recipients=2)
        for who in ("B", "C"):
            arrive(history, f"A-{number}", number, who=who, shared=True)
            tell(history, f"A-{number}", who)
    history.settled()


def a_suspension_that_nobody_noticed(history: History) -> None:
    history.connected("B", 1)
    history.fault("suspend")
    history.wrote("B", 1)
    history.fault("suspend", ends=True)


def a_client_that_was_silent_in_a_suspension(history: History) -> None:
    history.connected("B", 1)
    history.fault("suspend")
    history.fault("suspend", ends=True)
    history.cut("B", 1, "")


def a_message_with_its_event(history: History) -> None:
    whole(history)
    history.event(1, "agent.state")
    history.event(2, "message.exchanged", "msg_A-1")
    history.settled()


def a_gap_where_events_are_missing(history: History) -> None:
    whole(history)
    history.event(1, "agent.state")
    history.event(7, "stream.gap")
    history.settled()


def messages_that_went_with_the_files(history: History) -> None:
    send(history)
    history.destroyed("deleted")
    send(history, "A-2")
    arrive(history, "A-2", 1)
    tell(history, "A-2")
    history.locked_out("B", "bad_token")
    history.settled()


RIGHT: list[Story] = [
    one_message, a_repetition_after_a_lost_answer, a_refusal_that_is_tried_again, an_expired_message_that_was_passed_over,
    a_redelivery_after_a_crash, a_resume_that_asks_for_old_ones,
    an_acknowledgement_that_nobody_has_read_yet, a_resume_that_acknowledges, a_broadcast_to_two,
    a_suspension_that_nobody_noticed, a_client_that_was_silent_in_a_suspension, a_message_with_its_event,
    a_gap_where_events_are_missing, messages_that_went_with_the_files,
]  # fmt: skip


@pytest.mark.parametrize("story", RIGHT, ids=lambda story: story.__name__)
def test_what_is_right_passes(story: Story) -> None:
    history = History(now=0.0)
    story(history)
    assert check(history) == []


# --- what is wrong ------------------------------------------------------------------------------------------------------------


def stored_as_two(history: History) -> None:
    send(history)
    history.sent("A", "A-1", ("B",))
    history.stored("A", "A-1", "msg_other", 1)


def stored_then_refused(history: History) -> None:
    send(history)
    history.sent("A", "A-1", ("B",))
    history.refused("A", "A-1", "SERVICE_UNAVAILABLE")


def answered_twice(history: History) -> None:
    send(history)
    history.stored("A", "A-1", "msg_A-1", 1)


def never_answered(history: History) -> None:
    send(history, stored=False)
    history.settled()


def refused_and_delivered(history: History) -> None:
    send(history, stored=False)
    history.refused("A", "A-1", "SERVICE_UNAVAILABLE")
    arrive(history)


def came_to_another(history: History) -> None:
    send(history)
    arrive(history, who="C")


def came_to_too_many(history: History) -> None:
    send(history, to=("*",), recipients=1)
    arrive(history, who="B")
    arrive(history, who="C")


def came_from_nowhere(history: History) -> None:
    arrive(history)


def came_twice_under_other_numbers(history: History) -> None:
    send(history)
    arrive(history, seq=1)
    arrive(history, seq=2)


def attempts_began_anew(history: History) -> None:
    send(history)
    arrive(history, attempt=2, ack=False)
    arrive(history, attempt=2)


def delivered_then_dead(history: History) -> None:
    whole(history)
    tell(history, told="DELIVERY_TIMEOUT")


def rejected_then_delivered(history: History) -> None:
    send(history)
    arrive(history, ack=False)
    history.answered("B", "d_msg_A-1_B_1", "reject")
    tell(history, told="REJECTED")
    tell(history)


def delivered_told_twice(history: History) -> None:
    whole(history)
    tell(history)


def delivered_and_never_read(history: History) -> None:
    send(history)
    history.claimed("B", "A", "", 5)
    tell(history)


def delivered_before_it_was_acknowledged(history: History) -> None:
    send(history)
    arrive(history, ack=False)
    tell(history)
    history.answered("B", "d_msg_A-1_B_1", "ack")


def rejected_by_nobody(history: History) -> None:
    send(history)
    arrive(history)
    tell(history, told="REJECTED")


def came_after_its_death(history: History) -> None:
    history.connected("B", 1)
    send(history)
    tell(history, told="DELIVERY_TIMEOUT")
    history.connected("B", 2)
    arrive(history, link=2)


def acknowledged_and_came_again(history: History) -> None:
    whole(history)
    speak(history)
    assert history.now is not None
    history.now += 10
    history.connected("B", 2)
    arrive(history, link=2, attempt=2)


def acknowledged_and_dead(history: History) -> None:
    history.connected("B", 1)
    send(history)
    arrive(history)
    speak(history)
    assert history.now is not None
    history.now += 10
    tell(history, told="DELIVERY_TIMEOUT")


def stored_and_forgotten(history: History) -> None:
    send(history)
    history.settled()


def forgotten_for_one_of_two(history: History) -> None:
    send(history, to=("*",), recipients=2)
    arrive(history)
    tell(history)
    history.settled()


def no_rest(history: History) -> None:
    history.unsettled("not everything came to rest")


def two_messages_of_one_number(history: History) -> None:
    for ref in ("A-1", "A-2"):
        send(history, ref)
        arrive(history, ref, 1)


def numbers_went_down(history: History) -> None:
    for ref in ("A-1", "A-2"):
        send(history, ref)
    arrive(history, "A-1", 2, link=1)
    arrive(history, "A-2", 1, link=1)


def a_hidden_gap(history: History) -> None:
    for ref in ("A-1", "A-2"):
        send(history, ref)
    arrive(history, "A-1", 1)
    arrive(history, "A-2", 3)


def the_second_came_first(history: History) -> None:
    for ref in ("A-1", "A-2"):
        send(history, ref)
    arrive(history, "A-2", 1)
    arrive(history, "A-1", 2)


def broadcasts_changed_places(history: History) -> None:
    for ref in ("A-1", "A-2"):
        send(history, ref, ("*",), recipients=2)
    arrive(history, "A-1", 1, shared=True)
    arrive(history, "A-2", 2, shared=True)
    arrive(history, "A-2", 2, who="C", shared=True)
    arrive(history, "A-1", 3, who="C", shared=True)


def cut_off_on_waking(history: History) -> None:
    history.connected("B", 1)
    history.fault("suspend")
    history.wrote("B", 1)
    history.fault("suspend", ends=True)
    history.cut("B", 1, "")


def a_good_token_refused(history: History) -> None:
    history.locked_out("B", "bad_token")


def two_daemons(history: History) -> None:
    history.started_twice("with another state directory")


def a_number_that_nobody_knows(history: History) -> None:
    whole(history)
    send(history, "A-2")
    arrive(history, "A-2", 3, prev_seq=1)
    tell(history, "A-2")
    history.settled()


def no_event(history: History) -> None:
    whole(history)
    history.event(1, "agent.state")


def two_events(history: History) -> None:
    whole(history)
    history.event(1, "message.exchanged", "msg_A-1")
    history.event(2, "message.exchanged", "msg_A-1")


def a_hole_in_the_events(history: History) -> None:
    history.event(1, "agent.state")
    history.event(3, "agent.state")


def lost_after_the_files_were_deleted(history: History) -> None:
    history.destroyed("deleted")
    send(history)
    history.settled()


WRONG: dict[str, list[Story]] = {
    "answers": [stored_as_two, stored_then_refused, answered_twice, never_answered],
    "refusals": [refused_and_delivered],
    "routing": [came_to_another, came_to_too_many, came_from_nowhere],
    "once": [came_twice_under_other_numbers],
    "attempts": [attempts_began_anew],
    "receipts": [delivered_then_dead, rejected_then_delivered, delivered_told_twice],
    "read": [delivered_and_never_read, delivered_before_it_was_acknowledged, rejected_by_nobody],
    "dead": [came_after_its_death],
    "durable": [acknowledged_and_came_again, acknowledged_and_dead],
    "owed": [stored_and_forgotten, forgotten_for_one_of_two, no_rest, lost_after_the_files_were_deleted],
    "numbers": [two_messages_of_one_number],
    "gaps": [a_number_that_nobody_knows],
    "order": [numbers_went_down, a_hidden_gap, the_second_came_first],
    "broadcasts": [broadcasts_changed_places],
    "cut": [cut_off_on_waking],
    "locked out": [a_good_token_refused],
    "alone": [two_daemons],
    "events": [no_event, two_events, a_hole_in_the_events],
}


@pytest.mark.parametrize(
    ("rule", "story"), [(rule, story) for rule, stories in WRONG.items() for story in stories],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)  # fmt: skip
def test_what_is_wrong_is_caught(rule: str, story: Story) -> None:
    history = History(now=0.0)
    story(history)
    assert rule in {breach.rule for breach in check(history)}


def test_every_rule_has_been_seen_to_bite() -> None:
    assert set(WRONG) == set(RULES)
