"""The demonstration's count finds what it is there to find."""

from __future__ import annotations

from agent_relay.cli.demo.evidence import Arrivals


def fill(*arrivals: tuple[str, str]) -> Arrivals:
    ledger = Arrivals()
    for message_id in ("m1", "m2"):
        ledger.note_sent(message_id, "Alice", ["Bob"])
    ledger.note_sent("m3", "Carol", ["Alice", "Bob"])
    for message_id, recipient in arrivals:
        ledger.note_arrived(message_id, "Carol" if message_id == "m3" else "Alice", recipient)
    return ledger


ALL = (("m1", "Bob"), ("m3", "Bob"), ("m2", "Bob"), ("m3", "Alice"))


def test_all_is_well() -> None:
    verdict = fill(*ALL).judge()
    assert verdict.holds
    assert (verdict.accepted, verdict.expected, verdict.delivered) == (3, 4, 4)


def test_a_loss_is_found() -> None:
    verdict = fill(*ALL[:3]).judge()
    assert (verdict.holds, verdict.lost, verdict.delivered) == (False, 1, 3)


def test_a_double_is_found() -> None:
    verdict = fill(*ALL, ("m2", "Bob")).judge()
    assert (verdict.holds, verdict.doubled, verdict.lost) == (False, 1, 0)


def test_a_wrong_order_is_found() -> None:
    verdict = fill(("m2", "Bob"), ("m1", "Bob"), ("m3", "Bob"), ("m3", "Alice")).judge()
    assert (verdict.holds, verdict.out_of_order, verdict.lost) == (False, 1, 0)


def test_what_nobody_sent_there_is_found() -> None:
    verdict = fill(*ALL, ("m1", "Alice")).judge()
    assert (verdict.holds, verdict.unexpected) == (False, 1)
