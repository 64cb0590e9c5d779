"""A daemon with a planted fault, to see that chaos finds it: `python -P planted.py FAULT daemon's arguments …`.

It runs in the daemon's process, so it alone here knows the project from inside.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def believe_everything() -> None:
    """Records do not say what they must follow, and every answer is taken for a yes; nobody's `alive` is heard at the seat."""
    from agent_relay.cluster.log_appender import LogAppender, _Append
    from agent_relay.cluster.seat import Seat, SeatState
    from agent_relay.ports.cluster import Appended

    begin, answered, heard = _Append.__init__, LogAppender._answered, Seat._heard_alive

    def without_expectation(self: _Append, *words: Any) -> None:
        begin(self, *words)
        if self.record[:1] == b"B":  # claims stay as they are: without a seat nothing is said at all
            del self.headers["Nats-Expected-Last-Sequence"]

    def believing(self: LogAppender, append: _Append, message: Any) -> None:
        if append is self._appending and append.record[:1] == b"B" and message is not None and not message.status:
            self._settle(append, Appended(append.after + 1))
        else:
            answered(self, append, message)

    def deaf(self: Seat, message: Any) -> None:
        if self.state is not SeatState.SEATED:
            heard(self, message)

    _Append.__init__ = without_expectation  # type: ignore[method-assign]
    LogAppender._answered = believing  # type: ignore[method-assign]
    Seat._heard_alive = deaf  # type: ignore[method-assign]


def answer_early() -> None:
    """`stored` is told before the log has confirmed it."""
    from agent_relay.cluster.store import ClusterStore

    write = ClusterStore.write

    def hasty(self: ClusterStore, batch: Any, done: Any) -> None:
        write(self, batch, lambda _error: None)
        self._copy.fetch([], lambda _page: done(None))  # later, as everything is answered

    ClusterStore.write = hasty  # type: ignore[method-assign]


def forget_ids() -> None:
    """A new seat does not know which ids its agents have used."""
    from agent_relay.core.agents import DedupWindow

    def forgetful(self: DedupWindow, ids: dict[str, int], first_number: int) -> None:
        del ids, first_number
        self.is_complete = True

    DedupWindow.complete = forgetful  # type: ignore[method-assign]


PLANTED: dict[str, Callable[[], None]] = {"believe": believe_everything, "early": answer_early, "ids": forget_ids}

if __name__ == "__main__":
    PLANTED[sys.argv.pop(1)]()
    from agent_relay.daemon.main import main

    sys.exit(main())
