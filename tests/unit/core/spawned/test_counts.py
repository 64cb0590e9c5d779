"""Counts of sessions: of those the daemon began, whole or not known."""

from __future__ import annotations

from agent_relay.core.spawned.counts import SessionCounts
from agent_relay.events.types import ItemStarted, SessionSummary
from agent_relay.ports.agents import SessionRow

ITEM = ItemStarted(session_id="ses_1", item_id="i", item_type="plan", started_at=1)


def row(id_: str = "ses_1") -> SessionRow:
    return SessionRow(id_, "Bob", "claude", "", "pty", "Alice", 1_000, ended_at=1_400)


def test_a_session_is_counted_from_its_beginning_to_its_end() -> None:
    counts = SessionCounts()
    counts.begin("ses_1")
    counts.note("ses_1", ITEM)
    counts.note("ses_other", ITEM)
    counts.recall("ses_1", ITEM)  # it was told already
    assert counts.finish(row()) == SessionSummary(duration=400, item_count=1, files_modified=0, commands_run=0)
    assert counts.finish(row()) == SessionSummary(duration=400)
    assert counts.finish(row("ses_other")) == SessionSummary(duration=400)


def test_a_session_of_an_earlier_daemon_is_known_once_its_past_is() -> None:
    counts = SessionCounts()
    counts.begin("ses_1", is_whole=False)
    counts.begin("ses_2", is_whole=False)
    counts.note("ses_1", ITEM)
    assert counts.partial == {"ses_1", "ses_2"}
    assert counts.finish(row()) == SessionSummary(duration=400)
    counts.note("ses_2", ITEM)
    counts.recall("ses_2", ITEM)
    counts.complete()
    assert counts.finish(row("ses_2")).item_count == 2
    counts.begin("ses_3", is_whole=False)
    counts.drop("ses_3")
    assert not counts.partial
