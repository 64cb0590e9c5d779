"""The progress of a message with each of its recipients, in one word, and its proof."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_relay.ports.store import TrailRow
from agent_relay.protocol.message_states import MessageState
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.reports import read_seen

_STATES = {
    "received": MessageState.RECEIVED, "handed": MessageState.HANDED, "injected": MessageState.DELIVERED,
    "read": MessageState.READ,
}  # fmt: skip
_ORDER = list(MessageState)
_ENDS = {MessageState.DEAD, MessageState.REJECTED, MessageState.UNKNOWN}


def note_refusals(recipients: list[dict[str, Any]], steps: Iterable[TrailRow]) -> None:
    """Streams know that a message is over; its trail knows that it was refused, or, of a copy, that it is no dead letter and came
    too late all the same."""
    ends = {fold_name(step.recipient): step.event for step in steps if step.event in {"rejected", "expired", "removed"}}
    for recipient in recipients:
        end = ends.get(fold_name(recipient["name"]))
        if end is None or recipient["status"] != MessageState.DELIVERED:
            continue
        if end == "rejected":
            recipient["status"] = MessageState.REJECTED.value
        elif recipient.get("copy"):
            recipient["status"] = MessageState.DEAD.value


def add_progress(recipients: list[dict[str, Any]], steps: Iterable[TrailRow]) -> None:
    """Adds `stage`, the same word as `status` or a more exact one, when that was reached and what was seen of it."""
    furthest: dict[str, tuple[MessageState, int, dict[str, str]]] = {}
    for step in steps:
        state = _STATES.get(step.event)
        known = furthest.get(fold_name(step.recipient))
        if state is None or (known is not None and _ORDER.index(known[0]) > _ORDER.index(state)):
            continue
        seen = (known[2] if known is not None else {}) | read_seen(step.detail)  # the door is said once, before the reading
        furthest[fold_name(step.recipient)] = state, step.at, seen
    for recipient in recipients:
        status = MessageState(recipient["status"])
        state, at, seen = furthest.get(fold_name(recipient["name"]), (status, None, {}))
        is_behind = status in _ENDS or _ORDER.index(state) < _ORDER.index(status)
        recipient.update({"stage": (status if is_behind else state).value, "stage_at": at} | seen)
