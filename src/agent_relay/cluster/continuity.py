"""Whether the log still is the one that this host's copy was made from, and goes on where the copy ends.

JetStream numbers records and trusts its disks. A server that was restored from an older backup, or a stream that was deleted and
made again, has other records under the numbers that a copy knows. So before a copy follows the log, its last record is looked up
there and compared, byte by byte, with the one that was kept.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from enum import Enum, auto

import msgspec

from agent_relay.cluster.jetstream import API, NO_MESSAGE, NO_STREAM, Answer, Names, StreamNames, read_answer
from agent_relay.ports.cluster import Wire, WireMessage


class Standing(Enum):
    UNKNOWN = auto()  # nobody has answered yet
    CONTINUES = auto()
    ABSENT = auto()  # there is no such log
    BEHIND = auto()  # the log begins after what the copy needs next
    REGRESSED = auto()  # the log ends before the copy does
    DIVERGED = auto()  # the log has another record in the place of the copy's last one


class Found(msgspec.Struct, frozen=True):
    standing: Standing
    first: int = 0  # of the log
    last: int = 0
    refusal: Answer | None = None


class Continuity:
    """`find` has the record that was kept of a sequence, or None."""

    def __init__(self, wire: Wire, names: Names | StreamNames, find: Callable[[int], bytes | None]) -> None:
        self._wire = wire
        self._names = names
        self._find = find

    def check(self, position: int, done: Callable[[Found], None]) -> None:
        """`done` is called once."""

        def answered(message: WireMessage | None) -> None:
            answer = read_answer(message)
            if answer is not None and answer.error is not None and answer.error.err_code == NO_STREAM:
                done(Found(Standing.ABSENT))
            elif answer is None or answer.state is None:
                done(Found(Standing.UNKNOWN, refusal=answer))
            else:
                self._compare(position, answer.state.first_seq, answer.state.last_seq, done)

        self._wire.ask(f"{API}.STREAM.INFO.{self._names.stream}", b"", answered)

    def _compare(self, position: int, first: int, last: int, done: Callable[[Found], None]) -> None:
        if last < position:
            done(Found(Standing.REGRESSED, first, last))
        elif max(first, 1) > position + 1:
            done(Found(Standing.BEHIND, first, last))
        elif position < max(first, 1) or (ours := self._find(position)) is None:  # nothing to compare with
            done(Found(Standing.CONTINUES, first, last))
        else:
            self._look_up(position, ours, Found(Standing.CONTINUES, first, last), done)

    def _look_up(self, position: int, ours: bytes, good: Found, done: Callable[[Found], None]) -> None:
        def answered(message: WireMessage | None) -> None:
            answer = read_answer(message)
            if answer is None:
                done(Found(Standing.UNKNOWN))
            elif answer.message is not None:
                standing = good.standing if read_data(answer.message) == ours else Standing.DIVERGED
                done(Found(standing, good.first, good.last))
            elif answer.error is not None and answer.error.err_code == NO_MESSAGE:  # too old by now, or this server is behind
                done(Found(Standing.UNKNOWN))
            else:
                done(Found(Standing.UNKNOWN, refusal=answer))

        request = msgspec.json.encode({"seq": position})
        self._wire.ask(f"{API}.STREAM.MSG.GET.{self._names.stream}", request, answered)


def read_data(message: dict[str, object]) -> bytes:
    """The content of a stored record, as the API gives it."""
    try:
        return base64.b64decode(str(message.get("data") or ""), validate=True)
    except binascii.Error:
        return b""
