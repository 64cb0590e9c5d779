"""Questions that an agent was given and has not answered: which one an answer of its own belongs to."""

from __future__ import annotations

from collections import OrderedDict

from agent_relay.protocol.names import fold_name
from agent_relay.sdk.messages import Message

_MOST = 500  # beyond that the oldest are forgotten; their askers have long given up


class OpenQuestions:
    def __init__(self) -> None:
        self._by_id: OrderedDict[str, Message] = OrderedDict()  # the oldest first

    def add(self, message: Message) -> None:
        self._by_id.setdefault(message.id, message)
        if len(self._by_id) > _MOST:
            self._by_id.popitem(last=False)

    def of(self, asker: str) -> Message | None:
        """The oldest that this agent asked."""
        return next((each for each in self._by_id.values() if fold_name(each.from_) == fold_name(asker)), None)

    def find(self, correlation: str | None, message_id: str | None) -> Message | None:
        """By what an answer says of it."""
        if correlation is not None:
            return next((each for each in self._by_id.values() if each.correlation_id == correlation), None)
        return self._by_id.get(message_id or "")

    def close(self, message_id: str) -> None:
        self._by_id.pop(message_id, None)
