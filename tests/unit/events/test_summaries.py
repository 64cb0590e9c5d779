"""Events of a session → its summary."""

from __future__ import annotations

from agent_relay.events.codec import build_event
from agent_relay.events.prices import Prices
from agent_relay.events.summaries import SessionCount
from agent_relay.events.types import AgentState, SessionSummary
from tests.unit.events.examples import EXAMPLES


def count(*events: tuple[str, dict[str, object]]) -> SessionCount:
    found = SessionCount(Prices())
    for kind, fields in events:
        found.add(build_event(kind, EXAMPLES[kind] | fields, ""))
    return found


def test_everything_is_counted_once() -> None:
    item, command, tokens = ("item.started", {}), ("command.executed", {}), ("tokens.used", {"usageId": "u"})
    files = [("file.operation", {"operation": operation, "filePath": path}) for operation, path in
             (("read", "r"), ("edit", "a"), ("create", "a"), ("delete", "b"))]  # fmt: skip
    counted = count(item, item, command, tokens, tokens, *files)
    counted.add(AgentState(state="idle"))
    assert counted.finish(5_000) == SessionSummary(
        duration=5_000, item_count=2, files_modified=2, commands_run=1, total_tokens=10, estimated_cost=0.5
    )


def test_usages_without_an_id_are_all_counted() -> None:
    assert count(("tokens.used", {}), ("tokens.used", {})).finish(0).total_tokens == 20


def test_what_nobody_knows_is_absent() -> None:
    assert count().finish(7) == SessionSummary(duration=7)
    assert count(("item.started", {})).finish(7) == SessionSummary(duration=7, item_count=1, files_modified=0, commands_run=0)
    assert count(("file.operation", {"operation": "read"})).finish(7) == SessionSummary(duration=7, files_modified=0)
    assert count(("tokens.used", {"estimatedCostUsd": None})).finish(7) == SessionSummary(duration=7, total_tokens=10)
