"""Every type of the contract is there, under its exact name."""

from __future__ import annotations

import pytest

from agent_relay.events.types import EVENT_TYPES, REPORTABLE, Event, type_of
from tests.unit.events.examples import EXAMPLES

ARES = {
    "session.started", "session.ended", "item.started", "item.delta", "item.completed", "permission.requested",
    "permission.resolved", "question.requested", "question.resolved", "message.exchanged", "agent.spawned", "agent.released",
    "consensus.proposed", "consensus.resolved", "tokens.used", "file.operation", "command.executed",
}  # fmt: skip
OURS = {
    "message.delivered", "agent.state", "consensus.vote", "budget.exceeded", "loop.detected", "access.denied", "stream.gap",
    "pattern.started", "pattern.progress", "pattern.ended",
}  # fmt: skip


def test_the_seventeen_types_and_ours() -> None:
    assert len(ARES) == 17
    assert set(EVENT_TYPES) == ARES | OURS == set(EXAMPLES)


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_an_event_is_frozen_and_knows_its_type(kind: str) -> None:
    struct = EVENT_TYPES[kind]
    assert issubclass(struct, Event)
    assert struct.__struct_config__.frozen
    assert str(struct.__struct_config__.tag) == kind


def test_a_wrapper_speaks_of_what_its_agent_does_and_of_nothing_else() -> None:
    assert set(EVENT_TYPES) >= REPORTABLE
    assert not {kind for kind in REPORTABLE if kind.startswith(("session.", "agent.", "message.", "consensus.", "stream."))}


def test_the_type_of_an_event_is_its_tag() -> None:
    assert type_of(EVENT_TYPES["stream.gap"](oldest=1)) == "stream.gap"  # type: ignore[call-arg]
