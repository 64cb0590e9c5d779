"""The evidence at the end: the agents' screens on one side, the daemon's store on the other, and whether they agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from agent_relay.cli.demo.game import GUESSES, NAMES, Saying
from agent_relay.cli.demo.reports import Report, Reports
from agent_relay.cli.output.message_view import text_of
from agent_relay.cli.project.link import observe
from agent_relay.protocol.short_ids import short_id
from agent_relay.sdk.locate import Place
from agent_relay.sdk.views import MessageView


@dataclass(frozen=True, slots=True)
class Arrival:
    sender: str
    to: str
    text: str
    latency_s: float | None  # from the sender's screen to the recipient's


@dataclass(frozen=True, slots=True)
class Crash:
    gone_s: float  # how long there was no daemon
    printed: int  # messages that were printed meanwhile


@dataclass(frozen=True, slots=True)
class Evidence:
    verdict: Verdict
    differences: list[str]  # where what was printed is not what was sent
    arrivals: list[Arrival]
    open_s: float  # how long the dialog was open
    keys: str  # all that was typed into it
    crash: Crash
    explained: MessageView  # one message of those around the crash


async def collect(place: Place, reports: Reports, gone: tuple[float, float]) -> Evidence:
    """`gone`: from when to when there was no daemon."""
    async with observe(place) as relay:
        page = await relay.history(limit=1000)
        stored = list(reversed(page.messages))
        through = next((message for message in stored if text_of(message) == GUESSES[1]), stored[-1])
        explained = await relay.message(str(through["message_id"]))
    arrived = [report for report in reports.of("entered") if report.message is not None]
    printed = {name: reports.printed(name) for name in NAMES}
    asked, answered = reports.of("asked")[0], reports.of("answered")[0]
    return Evidence(
        verdict=judge(printed, stored, arrived),
        differences=compare(printed, stored),
        arrivals=[_arrival(report, reports) for report in arrived],
        open_s=answered.t - asked.t,
        keys=reports.keys(),
        crash=Crash(gone[1] - gone[0], sum(gone[0] < report.t < gone[1] for report in reports.printed_messages())),
        explained=explained,
    )


Pair = tuple[Saying | None, dict[str, Any] | None]


def pair_up(printed: dict[str, list[Saying]], stored: list[dict[str, Any]]) -> dict[str, list[Pair]]:
    """By agent: the nth line it printed, and the nth message the daemon has from it."""
    return {
        name: list(zip_longest(sayings, [message for message in stored if message["from"] == name]))
        for name, sayings in printed.items()
    }


def compare(printed: dict[str, list[Saying]], stored: list[dict[str, Any]]) -> list[str]:
    """A sentence for each line that was not sent as it stands."""
    return [
        f"{name} printed {saying.text if saying else None!r} and sent {text_of(message) if message else None!r}"
        for name, pairs in pair_up(printed, stored).items()
        for saying, message in pairs
        if saying is None or message is None or not _is(saying, message)
    ]


def judge(printed: dict[str, list[Saying]], stored: list[dict[str, Any]], arrived: list[Report]) -> Verdict:
    """Holds what arrived against what was printed."""
    ledger = Arrivals()
    ids = {short_id(str(message["message_id"])): str(message["message_id"]) for message in stored}
    for name, pairs in pair_up(printed, stored).items():
        for number, (saying, message) in enumerate(pairs, 1):
            if saying is not None:
                is_sent = message is not None and _is(saying, message)
                ledger.note_sent(str(message["message_id"]) if message and is_sent else f"{name} {number}", name, saying.to)
    for report in arrived:
        assert report.message is not None
        sender, mark, _ = report.message
        ledger.note_arrived(ids.get(mark, mark), sender, report.name)
    return ledger.judge()


def _is(saying: Saying, message: dict[str, Any]) -> bool:
    recipients = sorted(str(one["name"]) for one in message["recipients"])
    return text_of(message) == saying.text and recipients == sorted(saying.to)


def _arrival(report: Report, reports: Reports) -> Arrival:
    assert report.message is not None
    sender, _, text = report.message
    return Arrival(sender, report.name, text, reports.latency_s(report))


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
class Arrivals:
    """The books of the demonstration: what was accepted, what arrived, and whether the two agree."""

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
