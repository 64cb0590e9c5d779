"""The demonstration's game is whole, and its checks find what they are there to find."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_relay.cli.demo.evidence import Arrival, Crash, Evidence, compare, judge
from agent_relay.cli.demo.game import GAME, NAMES, OPENING, Saying, all_sayings, script_of
from agent_relay.cli.demo.reports import Report, Reports
from agent_relay.cli.demo.show import as_json, holds, show_summary
from agent_relay.cli.demo.stage import Stage
from agent_relay.cli.demo.transcript import Transcript
from agent_relay.cli.demo.view import View
from agent_relay.cli.output.screen import Screen
from agent_relay.protocol.short_ids import short_id
from agent_relay.sdk.views import MessageView
from agent_relay.terminal.backends.tmux_program import Tmux
from agent_relay.terminal.backends.tmux_server import TmuxServer

# --- the game --------------------------------------------------------------------------------------------------------


def test_every_turn_is_reached_by_what_is_said_and_nothing_is_said_twice() -> None:
    told = {("Alice", OPENING), *((name, saying.text) for saying in all_sayings() for name in saying.to)}
    reached = set()
    for name, text in told:
        turn = next((turn for turn in script_of(name, 1.0).turns if re.search(turn.when, text)), None)
        if turn is not None:
            reached.add((name, turn.when))
    assert reached == {(name, turn.when) for name, turns in GAME.items() for turn in turns}
    assert len({(saying.sender, saying.text) for saying in all_sayings()}) == len(all_sayings())
    assert {name for saying in all_sayings() for name in saying.to} == set(NAMES)


# --- the judgement ---------------------------------------------------------------------------------------------------

PRINTED = {"Alice": [Saying("Alice", ("Bob", "Carol"), "one"), Saying("Alice", ("Bob",), "two")], "Bob": [], "Carol": []}


def stored(number: int, text: str, *to: str) -> dict[str, Any]:
    return {
        "message_id": f"m{number}", "from": "Alice", "payload": {"body": text}, "recipients": [{"name": name} for name in to],
        "ts": 1_000, "to": list(to),
    }  # fmt: skip


def took(name: str, number: int, text: str) -> Report:
    return Report(1.0, name, "entered", f"Relay message from Alice [{short_id(f'm{number}')}]: {text}")


STORED = [stored(1, "one", "Bob", "Carol"), stored(2, "two", "Bob")]
TAKEN = [took("Bob", 1, "one"), took("Carol", 1, "one"), took("Bob", 2, "two")]


def test_all_is_well() -> None:
    verdict = judge(PRINTED, STORED, TAKEN)
    assert verdict.holds
    assert (verdict.accepted, verdict.delivered) == (2, 3)
    assert compare(PRINTED, STORED) == []


def test_a_line_that_was_not_sent_is_lost() -> None:
    assert judge(PRINTED, STORED[:1], TAKEN[:2]).lost == 1
    assert compare(PRINTED, STORED[:1]) == ["Alice printed 'two' and sent None"]


def test_a_line_that_was_sent_twice_is_found_though_its_id_is_another() -> None:
    verdict = judge(PRINTED, [*STORED, stored(3, "two", "Bob")], [*TAKEN, took("Bob", 3, "two")])
    assert (verdict.holds, verdict.unexpected) == (False, 1)
    assert compare(PRINTED, [*STORED, stored(3, "two", "Bob")]) == ["Alice printed None and sent 'two'"]


def test_words_that_changed_on_the_way_are_found() -> None:
    changed = [stored(1, "o ne", "Bob", "Carol"), STORED[1]]
    verdict = judge(PRINTED, changed, TAKEN)
    assert (verdict.holds, verdict.lost, verdict.unexpected) == (False, 2, 2)


def test_what_was_typed_in_twice_or_in_the_wrong_order_is_found() -> None:
    assert judge(PRINTED, STORED, [*TAKEN, TAKEN[0]]).doubled == 1
    assert judge(PRINTED, STORED, [TAKEN[2], TAKEN[0], TAKEN[1]]).out_of_order == 1


# --- the reports -----------------------------------------------------------------------------------------------------


def test_reports_are_read_as_they_are_written_and_give_the_time_from_print_to_screen(tmp_path: Path) -> None:
    def line(t: float, event: str, text: str) -> str:
        return json.dumps({"t": t, "event": event, "text": text}) + "\n"

    alice, bob = tmp_path / "alice", tmp_path / "bob"
    reports = Reports({"Alice": alice, "Bob": bob})
    assert reports.read() == []
    message = "Relay message from Alice [0123abcd]: one"
    alice.write_text(line(10.0, "said", "->relay:Bob one"))
    whole = line(10.25, "shown", message) + line(10.5, "entered", message)
    bob.write_text(whole[:-5])
    assert [report.event for report in reports.read()] == ["said", "shown"]
    with bob.open("a") as file:
        file.write(whole[-5:])
    (taken,) = reports.read()
    assert taken.message == ("Alice", "0123abcd", "one")
    assert reports.latency_s(taken) == pytest.approx(0.25)
    assert reports.printed("Alice") == [Saying("Alice", ("Bob",), "one")]
    reports.close()


# --- the summary -----------------------------------------------------------------------------------------------------


def evidence(**changes: Any) -> Evidence:
    trail = [{"at": 1_004, "event": "acknowledged", "to": "Bob", "detail": ""}]
    good = Evidence(
        verdict=judge(PRINTED, STORED, TAKEN), differences=[], arrivals=[Arrival("Alice", "Bob", "one", 0.2)], open_s=2.0,
        keys="1", crash=Crash(1.5, 2), explained=MessageView(STORED[0], trail),
    )  # fmt: skip
    return dataclasses.replace(good, **changes)


def shown(found: Evidence) -> str:
    stream = io.StringIO()
    show_summary(Screen(stream), found, 30.0)
    return stream.getvalue()


def test_the_summary_says_what_was_found() -> None:
    text = shown(evidence())
    assert "Every message arrived once and in order" in text
    for part in ("3 of 3, of 2 messages", "200 ms minimum", "typed 0 keys", "1.5 s; 2 messages", "acknowledged by Bob"):
        assert part in text
    assert "WRONG" not in text


def test_a_key_that_the_relay_typed_into_the_dialog_breaks_the_promise() -> None:
    found = evidence(keys="R1")
    assert not holds(found)
    assert "WRONG  the dialog" in shown(found)
    assert "typed 1 key into it" in shown(found)
    assert as_json(found, 30.0)["holds"] is False


def test_a_loss_is_shown_with_the_line_it_befell() -> None:
    found = evidence(verdict=judge(PRINTED, STORED[:1], TAKEN[:2]), differences=compare(PRINTED, STORED[:1]))
    assert not holds(found)
    assert "The promise was broken" in shown(found)
    assert "Alice printed 'two' and sent None" in shown(found)


def test_a_view_that_is_gone_keeps_neither_the_story_nor_the_end_from_going_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    master, slave = os.openpty()
    person_master, person_slave = os.openpty()
    with open(person_slave, "rb", buffering=0) as keyboard:
        monkeypatch.setattr(sys, "stdin", keyboard)
        tmux = Tmux("/bin/true", (3, 3))
        stage = cast("Stage", SimpleNamespace(root=tmp_path, environ=dict(os.environ)))
        view = View(stage, tmux, TmuxServer(tmux, str(tmp_path / "agents.sock")))
        view.story = open(slave, "w", encoding="utf-8")  # noqa: SIM115 - closed by the view
        transcript = Transcript(Screen(io.StringIO()), silent=False)
        transcript.turn_to(view.story)
        os.close(master)
        transcript.event("Alice", "is there")
        view.close()
        assert view.story is None
    os.close(person_master)
