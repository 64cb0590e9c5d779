"""Types, with a star at their end; whose event it is, or who it is from or to; which session."""

from __future__ import annotations

import pytest

from agent_relay.events.filter import EventFilter, make_filter
from agent_relay.events.record import Record
from agent_relay.protocol.errors import ErrorCode, RelayError


def make(type_: str = "item.delta", agent: str = "", session: str = "", sender: str = "", to: str = "") -> Record:
    return Record(1, 1, type_, agent, session, sender, to, b"{}")


def test_without_a_wish_everything_matches() -> None:
    assert make_filter() == EventFilter()
    assert make_filter().matches(make())


def test_types_and_groups_of_types() -> None:
    wanted = make_filter(["item.*", "tokens.used"])
    assert wanted.types == {"item.started", "item.delta", "item.completed", "tokens.used"}
    assert wanted.matches(make("item.delta"))
    assert not wanted.matches(make("agent.state"))
    assert make_filter(["*"]).matches(make("agent.state"))


@pytest.mark.parametrize("name", ["item", "item.nothing", "it*", "", "nothing.*", ".*"])
def test_a_type_there_is_none_of_is_an_error(name: str) -> None:
    with pytest.raises(RelayError) as refusal:
        make_filter([name], field="payload.types")
    assert refusal.value.code is ErrorCode.INVALID_FORMAT
    assert refusal.value.details["field"] == "payload.types"


@pytest.mark.parametrize(
    ("record", "is_his"),
    [
        (make(agent="Bob"), True),
        (make(sender="BOB"), True),
        (make(to="bob"), True),
        (make(to="Alice,Bob"), True),
        (make(to="Bobby"), False),
        (make(to="*"), False),
        (make(agent="Alice"), False),
    ],
)
def test_an_agents_events_are_its_own_and_those_from_and_to_it(record: Record, is_his: bool) -> None:
    assert EventFilter(agent="Bob").matches(record) is is_his


def test_a_sessions_events() -> None:
    assert EventFilter(session_id="s").matches(make(session="s"))
    assert not EventFilter(session_id="s").matches(make(session="t"))


def test_a_gap_concerns_everybody() -> None:
    assert EventFilter(frozenset({"item.delta"}), "Bob", "s").matches(make("stream.gap"))
