"""What a server under load must be spoken to with: the interface between the load engine and a protocol.

The engine moves bytes and keeps the clock. A dialect opens connections, encodes all messages beforehand, counts
answers and deliveries in what arrives (cheaply, while the clock runs), and afterwards checks every recorded byte.
"""

from __future__ import annotations

import socket
from array import array
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

BODY_BYTES = 200
_COUNTER = "{:04d}.{:09d}."


class FailedRunError(Exception):
    """A promise was broken or the load could not be held: the run has no result."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The messages of one sender, in order; every message has as many recipients as there are names."""

    number: int
    sender: str
    recipients: tuple[str, ...]
    messages: int
    broadcast: bool = False

    def body(self, index: int) -> str:
        return _COUNTER.format(self.number, index).ljust(BODY_BYTES, "x")


class Scan(NamedTuple):
    """What a piece of the incoming bytes held; `consumed` ends with the last whole frame."""

    frames: int  # answers, or deliveries
    pongs: int
    consumed: int
    reply: bytes  # what must be written back: acknowledgements, PONGs


@dataclass(slots=True)
class Findings:
    """The result of checking a connection's recorded bytes after the clock has stopped."""

    problems: list[str] = field(default_factory=list)
    order: array[int] = field(default_factory=lambda: array("q"))  # the message index of each answer or delivery, as it came
    digest: str = ""  # of the server's ids of the messages, in the order of the stream

    def note(self, problem: str) -> None:
        if len(self.problems) < 5:  # the first few say what is wrong; thousands would say no more
            self.problems.append(problem)


class Dialect(Protocol):
    """Must be picklable: it travels to the worker processes."""

    @property
    def ping(self) -> bytes:
        """A request that is answered after everything before it; empty where there is none."""

    def open_sender(self, name: str, /) -> socket.socket: ...

    def open_receiver(self, name: str, /) -> socket.socket: ...

    def encode_messages(self, stream: Stream) -> bytes:
        """All messages of the stream in order, every frame of the same length."""

    def scan_answers(self, buffer: bytes) -> Scan: ...

    def scan_deliveries(self, buffer: bytes) -> Scan: ...

    def check_answers(self, data: bytes, stream: Stream) -> Findings: ...

    def check_deliveries(self, data: bytes, stream: Stream) -> Findings: ...


def check_counts(findings: Findings, stream: Stream, what: str) -> None:
    """Exactly once: each index of the stream appears, and none appears twice."""
    seen = set(findings.order)
    doubled = len(findings.order) - len(seen)
    missing = stream.messages - len(seen)
    if doubled:
        findings.note(f"{doubled} of the messages of {stream.sender} were {what} more than once")
    if missing:
        findings.note(f"{missing} of the {stream.messages} messages of {stream.sender} were never {what}")
