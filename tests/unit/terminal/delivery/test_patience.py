"""How long it is borne that a text waits, before people see why, and before its sender is told."""

from __future__ import annotations

from agent_relay.protocol.holds import Hold, HoldReason
from agent_relay.terminal.delivery.injection import Done, Wait
from agent_relay.terminal.delivery.typist import HOLD_S, SOON_S, STUCK_S, Patience

TYPING = Wait(0, "a person is typing", hold=HoldReason.TYPING)
PROMPT = Wait(0, "its prompt was not recognised", is_stuck=True, hold=HoldReason.PROMPT)
UNSURE = Wait(0, "its prompt was not recognised", is_stuck=True, is_sure=False, hold=HoldReason.PROMPT)
BRIEF = Wait(0, "the screen is still changing")


def told(*steps: tuple[float, object], was_ready: bool = True) -> list[tuple[str | None, bool]]:
    said: list[tuple[str | None, bool]] = []

    def tell(hold: Hold | None, is_long: bool) -> None:
        said.append((None if hold is None else hold.reason, is_long))

    patience = Patience(tell)
    for t, step in steps:
        patience.note(step, t, was_ready=was_ready)  # type: ignore[arg-type]
    return said


def test_what_is_over_in_a_moment_is_told_to_nobody() -> None:
    assert told((0, TYPING), (HOLD_S - 0.1, TYPING), (HOLD_S, Done("composer"))) == []
    assert told((0, BRIEF), (100, BRIEF)) == []


def test_what_lasts_is_told_once_and_so_is_its_end() -> None:
    assert told((0, TYPING), (HOLD_S, TYPING), (2, TYPING), (STUCK_S * 2, TYPING), (99, Done("composer"))) == [
        ("typing", False),
        (None, False),
    ]


def test_what_may_never_end_is_told_to_the_sender_after_a_while() -> None:
    steps = [(0.0, PROMPT), (HOLD_S, PROMPT), (STUCK_S - 1, PROMPT), (STUCK_S, PROMPT), (STUCK_S + 1, PROMPT)]
    assert told(*steps) == [("prompt", False), ("prompt", True)]


def test_the_sender_is_told_soon_where_it_was_never_ready() -> None:
    steps = [(t / 2, PROMPT) for t in range(200)]
    assert told(*steps[: int(2 * SOON_S)], was_ready=False) == [("prompt", False)]
    assert told(*steps, was_ready=False) == [("prompt", False), ("prompt", True)]


def test_a_program_that_may_be_starting_has_more_time() -> None:
    steps = [(t / 2, UNSURE) for t in range(200)]
    assert told(*steps[: int(2 * STUCK_S)], was_ready=False) == []
    assert told(*steps, was_ready=False) == [("prompt", True)]


def test_what_was_told_is_not_taken_back_by_looking_again() -> None:
    steps = [(t / 2, PROMPT) for t in range(8)] + [(4.0, UNSURE), (4.5, UNSURE)]
    assert told(*steps, was_ready=False) == [("prompt", False), ("prompt", True)]


def test_each_reason_is_told() -> None:
    assert told((0, TYPING), (1, TYPING), (2, PROMPT), (3, PROMPT)) == [("typing", False), ("prompt", False)]


def test_one_that_has_no_word_is_told_by_its_sentence() -> None:
    said: list[Hold | None] = []
    patience = Patience(lambda hold, _: said.append(hold))
    for t in (0.0, HOLD_S):
        patience.note(Wait(0, "nobody has foreseen this", is_stuck=True), t, was_ready=True)
    assert said == [Hold("other", "nobody has foreseen this")]
