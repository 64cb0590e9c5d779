"""The books of the demonstration: what was accepted, what arrived, and whether the two agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Verdict:
    accepted: int
    expected: int  # deliveries: a message to three recipients is three
    delivered: int
    lost: int
    doubled: int
    out_of_order: int
    unexpected: int  # arrived where it was not sent to

    @property
    def holds(self) -> bool:
        return self.delivered == self.expected and not (self.lost or self.doubled or self.out_of_order or self.unexpected)


@dataclass(slots=True)
class Ledger:
    sent: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)  # (message, sender, recipients), as sent
    arrived: dict[str, list[tuple[str, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )  # by recipient: (message, sender)

    def note_sent(self, message_id: str, sender: str, recipients: Sequence[str]) -> None:
        """In the order its sender sent it, once it is known to be accepted."""
        self.sent.append((message_id, sender, tuple(recipients)))

    def note_arrived(self, message_id: str, sender: str, recipient: str) -> None:
        self.arrived[recipient].append((message_id, sender))

    def judge(self) -> Verdict:
        wanted = {(message_id, name) for message_id, _, names in self.sent for name in names}
        got = Counter((message_id, name) for name, arrivals in self.arrived.items() for message_id, _ in arrivals)
        return Verdict(
            accepted=len(self.sent),
            expected=len(wanted),
            delivered=len(wanted & got.keys()),
            lost=len(wanted - got.keys()),
            doubled=sum(number - 1 for number in got.values()),
            out_of_order=self._out_of_order(),
            unexpected=len(got.keys() - wanted),
        )

    def _out_of_order(self) -> int:
        """The number of messages that arrived before one that the same sender had sent them earlier."""
        place = {message_id: number for number, (message_id, _, _) in enumerate(self.sent)}
        wrong = 0
        for arrivals in self.arrived.values():
            newest: dict[str, int] = {}
            for message_id, sender in arrivals:
                number = place.get(message_id, -1)
                wrong += number < newest.get(sender, -1)
                newest[sender] = max(number, newest.get(sender, -1))
        return wrong
