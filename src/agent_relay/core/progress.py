"""How far a message has come with each of its recipients, in one word, and what proves it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_relay.ports.store import TrailRow
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.reports import read_seen

_STAGES = {"received": "delivered", "handed": "injected", "injected": "injected", "read": "read"}
_RANKS = {"delivered": 1, "injected": 2, "read": 3}
_BY_STATUS = {"dead": "dead", "done": "delivered"}  # where nothing was noted of it alone


def add_progress(recipients: list[dict[str, Any]], steps: Iterable[TrailRow]) -> None:
    """Adds `stage`, when that was reached and what was seen of it to each of a message's recipients."""
    furthest: dict[str, tuple[str, int, dict[str, str]]] = {}
    for step in steps:
        stage = _STAGES.get(step.event)
        known = furthest.get(fold_name(step.recipient))
        if stage is None or (known is not None and _RANKS[known[0]] > _RANKS[stage]):
            continue
        seen = (known[2] if known is not None else {}) | read_seen(step.detail)  # the door is said once, before the reading
        furthest[fold_name(step.recipient)] = stage, step.at, seen
    for recipient in recipients:
        stage, at, seen = furthest.get(fold_name(recipient["name"]), ("stored", None, {}))
        if recipient["status"] == "dead" or (stage == "stored" and recipient["status"] in _BY_STATUS):
            stage = _BY_STATUS[recipient["status"]]
        recipient.update({"stage": stage, "stage_at": at} | seen)
