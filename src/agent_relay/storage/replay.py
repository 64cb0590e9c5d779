"""Messages that a resume has missed, found by going back from the newest one."""

from __future__ import annotations

from agent_relay.ports.store import MessageRow
from agent_relay.protocol.names import fold_name


class Replay:
    """Of one recipient, what came after these sequence numbers, by topic and sender. In a stream they ascend with the message
    numbers, so a resume costs what was missed, not what there ever was."""

    def __init__(self, recipient: str, after: dict[tuple[str, str], int]) -> None:
        self._recipient = fold_name(recipient)
        self._after = {(topic, fold_name(sender)): seq for (topic, sender), seq in after.items()}
        self._unfinished = set(self._after)  # streams that have not reached their beginning
        self._found: list[MessageRow] = []

    def look_at(self, message: MessageRow) -> bool:
        """Whether older ones may be missing, too."""
        stream = (message.topic, fold_name(message.sender))
        seq = next((seq for name, seq in message.recipients if fold_name(name) == self._recipient), None)
        if seq is not None and stream in self._after:
            if seq > self._after[stream]:
                self._found.append(message)
            if seq <= self._after[stream] + 1:
                self._unfinished.discard(stream)
        return bool(self._unfinished)

    @property
    def found(self) -> list[MessageRow]:
        """By ascending number."""
        return self._found[::-1]
