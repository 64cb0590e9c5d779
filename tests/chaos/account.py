"""The history put in order: for each message what was said about it, and for each recipient what came of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.history import Entry, History

FOREVER = float("inf")


@dataclass
class Arrival:
    place: int  # in the history
    at: float
    link: int
    message_id: str
    delivery_id: str
    seq: int | None
    prev_seq: int | None
    attempt: int


@dataclass
class Told:
    place: int
    at: float
    what: str


@dataclass
class Message:
    sender: str
    ref: str
    to: tuple[str, ...]
    ttl_ms: int | None
    repeats: bool
    first_at: float
    writes: list[int] = field(default_factory=list)  # places
    stored: list[tuple[int, str, int]] = field(default_factory=list)  # place, message id, recipients
    refused: list[tuple[int, str]] = field(default_factory=list)  # place, code
    outcomes: dict[str, list[Told]] = field(default_factory=lambda: defaultdict(list))
    arrivals: dict[str, list[Arrival]] = field(default_factory=lambda: defaultdict(list))

    @property
    def names(self) -> tuple[str, ...] | None:
        """Its recipients, where it was written to agents and not to a group of them."""
        return None if self.to[0][:1] in {"*", "#", "."} else self.to

    @property
    def topic(self) -> str:
        return self.to[0][1:] if self.to[0][:1] == "." else ""

    def __str__(self) -> str:
        return f"{self.ref} to {','.join(self.to)}"


@dataclass
class FirstArrival:
    message: Message
    arrival: Arrival
    shared: bool


@dataclass
class Account:
    entries: list[Entry]
    messages: dict[tuple[str, str], Message] = field(default_factory=dict)
    streams: dict[tuple[str, str, str], list[FirstArrival]] = field(default_factory=lambda: defaultdict(list))
    inboxes: dict[str, list[FirstArrival]] = field(default_factory=lambda: defaultdict(list))  # by recipient
    unknown: list[Entry] = field(default_factory=list)  # arrivals of what nobody sent
    answers: dict[tuple[str, str], list[Told]] = field(default_factory=lambda: defaultdict(list))  # by recipient, delivery id
    claims: dict[str, list[tuple[int, str, str, int]]] = field(default_factory=lambda: defaultdict(list))
    links: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))  # place, number of the connection
    round_trips: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))  # places: sent, answered
    faults: list[tuple[float, float, str]] = field(default_factory=list)  # from, to, name
    events: list[dict[str, Any]] = field(default_factory=list)
    settled: bool = False
    destroyed: bool = False

    def is_calm(self, start: float, end: float) -> bool:
        return not any(begins <= end and over >= start for begins, over, _ in self.faults)


def make_account(history: History) -> Account:
    """What was first sent before files were destroyed is left out: nobody can promise anything about it."""
    account = Account(history.entries)
    beginning = max((place for place, entry in enumerate(history.entries) if entry.kind == "destroyed"), default=-1)
    account.destroyed = beginning >= 0
    old: set[tuple[str, str]] = set()
    open_faults: dict[str, float] = {}
    for place, entry in enumerate(history.entries):
        what, who = entry.what, entry.who
        match entry.kind:
            case "sent" if place < beginning:
                old.add((who, what["ref"]))
            case "sent" | "stored" | "refused" | "outcome" if (who, what["ref"]) not in old:
                _note_sender(account, place, entry)
            case "arrived" if (what["sender"], what["ref"]) not in old:
                _note_arrival(account, place, entry)
            case "answered":
                account.answers[(who, what["delivery_id"])].append(Told(place, entry.at, what["answer"]))
            case "claimed":
                account.claims[who].append((place, what["sender"], what["topic"], what["last_seq"]))
            case "connected":
                account.links[who].append((place, what["link"]))
            case "fault" if not what["ends"]:
                open_faults.setdefault(who, entry.at)
            case "fault":
                account.faults.append((open_faults.pop(who, entry.at), entry.at, who))
            case "event":
                account.events.append(what)
            case "settled":
                account.settled = True
            case _:
                pass
    account.faults += [(begins, FOREVER, name) for name, begins in open_faults.items()]
    return account


def _note_sender(account: Account, place: int, entry: Entry) -> None:
    what, key = entry.what, (entry.who, entry.what["ref"])
    if entry.kind == "sent":
        if key not in account.messages:
            account.messages[key] = Message(entry.who, what["ref"], what["to"], what["ttl_ms"], what["repeats"], entry.at)
        account.messages[key].writes.append(place)
        return
    message = account.messages[key]  # nobody is answered before it has said something
    if entry.kind != "outcome":
        account.round_trips[entry.who].append((message.writes[-1], place))
    if entry.kind == "stored":
        message.stored.append((place, what["message_id"], what["recipients"]))
    elif entry.kind == "refused":
        message.refused.append((place, what["code"]))
    else:
        message.outcomes[what["recipient"]].append(Told(place, entry.at, what["told"]))


def _note_arrival(account: Account, place: int, entry: Entry) -> None:
    what, recipient = entry.what, entry.who
    message = account.messages.get((what["sender"], what["ref"]))
    if message is None:
        account.unknown.append(entry)
        return
    arrival = Arrival(
        place, entry.at, what["link"], what["message_id"], what["delivery_id"], what["seq"], what["prev_seq"], what["attempt"]
    )
    known = message.arrivals[recipient]
    if not any((each.delivery_id, each.seq) == (arrival.delivery_id, arrival.seq) for each in known):
        first = FirstArrival(message, arrival, what["shared"])
        account.inboxes[recipient].append(first)
        if arrival.seq is not None:
            account.streams[(recipient, what["topic"], what["sender"])].append(first)
    known.append(arrival)
