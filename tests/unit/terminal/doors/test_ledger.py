"""What was handed over is known again by its mark, its text or its id, and its reading is told once."""

from __future__ import annotations

from agent_relay.terminal.doors.ledger import Handed, HandoverLedger, mark_of
from tests.unit.terminal.doors.heard import Heard, message


def test_a_reading_is_told_once() -> None:
    heard = Heard()
    ledger: HandoverLedger[Handed] = HandoverLedger(heard)
    ledger.add(Handed(message(1)))
    assert message(1).uuid in ledger
    assert ledger.read(message(1).uuid, "transcript") is not None
    assert ledger.read(message(1).uuid, "transcript") is None
    assert heard.of("read") == [(message(1).id, "transcript")]
    assert not ledger


def test_it_is_found_by_its_mark_its_text_or_its_id() -> None:
    ledger: HandoverLedger[Handed] = HandoverLedger(Heard())
    first, second = ledger.add(Handed(message(1))), ledger.add(Handed(message(2)), "theirs")
    assert ledger.find(f"so {mark_of(message(1))} it is") == [first]
    assert ledger.find(f"{message(1).text}\n\n{message(2).text}") == [first, second]
    assert ledger.find("", "theirs") == [second]
    assert ledger.find("", message(1).uuid) == [first]
    assert ledger.find(f"it quotes {mark_of(message(1))}", "theirs") == [second]
    assert ledger.find("nothing of ours") == []


def test_nothing_is_told_after_the_end_and_what_is_left_can_be_taken() -> None:
    heard = Heard()
    ledger: HandoverLedger[Handed] = HandoverLedger(heard)
    for number in (1, 2, 3):
        ledger.add(Handed(message(number)))
    ledger.close()
    ledger.read(message(1).uuid, "transcript")
    assert heard.read == []
    ledger.drop(message(2).uuid)
    assert ledger.take_all() == [message(3)]
    assert not ledger
