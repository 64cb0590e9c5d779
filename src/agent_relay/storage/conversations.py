"""Conversations: counted once over all messages, and from then on only over those that are new."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from agent_relay.ports.store import Conversation
from agent_relay.protocol.names import BROADCAST, CHANNEL_MARK, fold_name

Kind = Literal["pair", "channel", "all", "group", "topic", "thread"]
Group = tuple[str, str, str, str | None, int, int]  # sender, target, topic, thread, how many, the newest one's number


class Tally:
    def __init__(self) -> None:
        self._counts: dict[tuple[Kind, str], tuple[str, int, int]] = {}  # as spelled, how many, the newest
        self.reached = 0  # the newest message that is counted

    def add(self, groups: Iterable[Group]) -> None:
        for sender, target, topic, thread, count, last in groups:
            self._count(*_address(sender, target, topic), count, last)
            if thread is not None:
                self._count("thread", thread, thread, count, last)
            self.reached = max(self.reached, last)

    def _count(self, kind: Kind, key: str, spelled: str, count: int, last: int) -> None:
        known, before, newest = self._counts.get((kind, key), (spelled, 0, 0))
        self._counts[kind, key] = known, before + count, max(newest, last)

    def newest(self, limit: int) -> list[Conversation]:
        found = [Conversation(kind, spelled, count, last) for (kind, _), (spelled, count, last) in self._counts.items()]
        # A message in a thread is the newest of two conversations.
        return sorted(found, key=lambda each: (-each.last, each.kind == "thread", each.key))[: max(limit, 0)]


def _address(sender: str, target: str, topic: str) -> tuple[Kind, str, str]:
    """The kind, what it is compared by, and what it is called."""
    if not target:
        return "topic", topic, topic
    if target == BROADCAST:
        return "all", target, target
    if target.startswith(CHANNEL_MARK):
        return "channel", target, target
    if "," in target:
        return "group", target, target
    names = sorted((sender, target), key=fold_name)
    return "pair", ",".join(map(fold_name, names)), ",".join(names)
