"""Compare-and-append to the shared log, one record at a time.

Every record names the sequence it must follow (`Nats-Expected-Last-Sequence`), so the log refuses whoever has lost the seat.
An append without an answer is sent again, byte for byte, until it is known what became of it: the server recognises its
`Nats-Msg-Id`, or says that something else follows `after`; then that record is read, and it is ours or another's.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial

import msgspec

from agent_relay.cluster.figures import Figures
from agent_relay.cluster.jetstream import API, NO_MESSAGE, WRONG_LAST_SEQUENCE, Answer, Names, StreamNames, read_answer
from agent_relay.cluster.records import FORMAT, FORMAT_HEADER
from agent_relay.ports.cluster import AppendDone, Appended, NotNext, Wire, WireMessage

ASK_AGAIN_MS = 250  # after an answer that says nothing; one that does not come at all has taken its time already


class _Append:
    """The record under way."""

    def __init__(self, record: bytes, after: int, message_id: str, done: AppendDone) -> None:
        self.record = record
        self.after = after
        self.message_id = message_id
        self.is_sent = False
        self.done = done
        self.headers = {
            "Nats-Msg-Id": message_id,
            "Nats-Expected-Last-Sequence": str(after),
            FORMAT_HEADER: FORMAT,
        }


class LogAppender:
    """`mark` names this life of the daemon: no two have the same. `later` calls after some milliseconds; `complain` hears of a
    server that refuses."""

    def __init__(
        self, wire: Wire, names: Names | StreamNames, mark: str, figures: Figures,
        later: Callable[[int, Callable[[], None]], None], complain: Callable[[Answer], None],
    ) -> None:  # fmt: skip
        self._wire = wire
        self._names = names
        self._mark = mark
        self._figures = figures
        self._later = later
        self._complain = complain
        self._appending: _Append | None = None
        self._appends = 0

    def append(self, record: bytes, after: int, done: AppendDone) -> None:
        assert self._appending is None, "one record at a time"
        self._appends += 1  # one that was given up may still arrive, and is another one
        self._appending = _Append(record, after, f"{self._mark}-{after}-{self._appends}", done)
        self._send(self._appending)

    def give_up(self) -> None:
        self._appending = None

    def _send(self, append: _Append) -> None:
        if append is self._appending:
            self._figures.records_resent += append.is_sent
            append.is_sent = True
            self._wire.ask(self._names.log, append.record, partial(self._answered, append), append.headers)

    def _answered(self, append: _Append, message: WireMessage | None) -> None:
        if append is not self._appending:
            return
        answer = read_answer(message)
        if answer is None:
            self._later(0 if message is None else ASK_AGAIN_MS, partial(self._send, append))
        elif answer.error is not None and answer.error.err_code == WRONG_LAST_SEQUENCE:
            self._look(append)
        elif answer.error is not None:
            self._complain(answer)
            self._later(ASK_AGAIN_MS, partial(self._send, append))
        elif answer.seq == append.after + 1:
            self._settle(append, Appended(answer.seq))
        else:  # a duplicate of something else, which our ids do not allow, or a server that is not telling the truth
            self._look(append)

    def _look(self, append: _Append) -> None:
        """Asks for the record that follows `after`: ours, or another host's."""
        if append is self._appending:
            request = msgspec.json.encode({"seq": append.after + 1})
            self._wire.ask(f"{API}.STREAM.MSG.GET.{self._names.stream}", request, partial(self._looked, append))

    def _looked(self, append: _Append, message: WireMessage | None) -> None:
        if append is not self._appending:
            return
        answer = read_answer(message)
        if answer is None:
            self._later(0 if message is None else ASK_AGAIN_MS, partial(self._look, append))
        elif answer.message is not None:
            ours = f"Nats-Msg-Id: {append.message_id}\r\n".encode() in base64.b64decode(answer.message.get("hdrs") or "")
            self._settle(append, Appended(append.after + 1) if ours else NotNext(append.after + 1))
        else:
            # Nothing is there: the log ends before `after`, or that record is gone. It is asked again: a leader that is cut off
            # answers so for a while, and if records are really lost the follower finds out.
            if answer.error is not None and answer.error.err_code != NO_MESSAGE:
                self._complain(answer)
            self._later(ASK_AGAIN_MS, partial(self._send, append))

    def _settle(self, append: _Append, outcome: Appended | NotNext) -> None:
        self._appending = None
        append.done(outcome)
