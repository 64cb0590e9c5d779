"""What the clients saw, in the order they saw it: the only thing the checker knows.

All clients of a run live in one process and write into one history. So if one entry caused another, it stands before it:
a recipient's ACK stands before the receipt that its sender gets for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Entry(NamedTuple):
    at: float  # seconds; only differences mean anything
    kind: str  # the name of the method of History that made it
    who: str  # the client
    what: dict[str, Any]


@dataclass
class History:
    entries: list[Entry] = field(default_factory=list)
    now: float | None = None  # a clock turned by hand, for tests of the rules
    trigger: Callable[[Entry], bool] | None = None  # called with each entry, at once, until it returns True

    def _add(self, kind: str, who: str, **what: Any) -> None:
        entry = Entry(time.monotonic() if self.now is None else self.now, kind, who, what)
        self.entries.append(entry)
        if self.trigger is not None and self.trigger(entry):
            self.trigger = None

    # --- senders --------------------------------------------------------------------------------------------------------

    def sent(self, who: str, ref: str, to: tuple[str, ...], *, ttl_ms: int | None = None, repeats: bool = True) -> None:
        """A SEND was written, or a POST; once more for each repetition. `ref` is the id that the sender gave it. `to` has
        names, or one of `*`, a channel and a topic. `repeats`: its outcomes can be asked for by a repetition."""
        self._add("sent", who, ref=ref, to=to, ttl_ms=ttl_ms, repeats=repeats)

    def stored(self, who: str, ref: str, message_id: str, recipients: int) -> None:
        self._add("stored", who, ref=ref, message_id=message_id, recipients=recipients)

    def refused(self, who: str, ref: str, code: str) -> None:
        """NACK: nothing was sent."""
        self._add("refused", who, ref=ref, code=code)

    def outcome(self, who: str, ref: str, message_id: str, recipient: str, told: str) -> None:
        """A receipt about one recipient: `delivered`, or the code of a NACK."""
        self._add("outcome", who, ref=ref, message_id=message_id, recipient=recipient, told=told)

    # --- recipients -----------------------------------------------------------------------------------------------------

    def arrived(
        self, who: str, ref: str, sender: str, *, link: int, message_id: str, delivery_id: str = "", topic: str = "",
        seq: int | None = None, prev_seq: int | None = None, attempt: int = 1, shared: bool = False,
    ) -> None:  # fmt: skip
        """A DELIVER, each time it comes. `link` counts the recipient's connections; `shared`: it went to `*`. Over ARC there
        are no numbers and no deliveries' ids."""
        self._add(
            "arrived", who, ref=ref, sender=sender, link=link, message_id=message_id, delivery_id=delivery_id, topic=topic,
            seq=seq, prev_seq=prev_seq, attempt=attempt, shared=shared,
        )  # fmt: skip

    def answered(self, who: str, delivery_id: str, answer: str) -> None:
        """The recipient wrote `ack`, `reject` or `busy` about it."""
        self._add("answered", who, delivery_id=delivery_id, answer=answer)

    def claimed(self, who: str, sender: str, topic: str, last_seq: int) -> None:
        """A RESUME said: so far have I come in this stream."""
        self._add("claimed", who, sender=sender, topic=topic, last_seq=last_seq)

    # --- connections and the daemon -------------------------------------------------------------------------------------

    def connected(self, who: str, link: int) -> None:
        """It said HELLO or RESUME: whatever comes on this connection was sent after that."""
        self._add("connected", who, link=link)

    def welcomed(self, who: str, link: int) -> None:
        self._add("welcomed", who, link=link)

    def turned_away(self, who: str, code: str, said: str, where: str) -> None:
        """Its greeting was answered with an ERROR."""
        self._add("turned_away", who, code=code, said=said, where=where)

    def wrote(self, who: str, link: int) -> None:
        """Bytes that a suspended daemon has not read yet."""
        self._add("wrote", who, link=link)

    def cut(self, who: str, link: int, said: str) -> None:
        """The daemon ended the connection; `said` is the reason of its BYE, if there was one."""
        self._add("cut", who, link=link, said=said)

    def locked_out(self, who: str, reason: str) -> None:
        """A token that had been given out was refused."""
        self._add("locked_out", who, reason=reason)

    def fault(self, name: str, *, ends: bool = False) -> None:
        """It begins, or is over: a daemon that was killed accepts again, a disk has room again."""
        self._add("fault", name, ends=ends)

    def destroyed(self, name: str) -> None:
        """Files were deleted or damaged: what was sent before may be gone, and numbers may begin anew."""
        self._add("destroyed", name)

    def started_twice(self, how: str) -> None:
        """A second daemon started beside the first, on the same database."""
        self._add("started_twice", how)

    def event(self, seq: int, kind: str, message_id: str = "") -> None:
        """One of the recorded events, as they stand at the end."""
        self._add("event", "", seq=seq, type=kind, message_id=message_id)

    def settled(self) -> None:
        """No more faults, everybody was connected, and all questions were asked: nothing is owed any more."""
        self._add("settled", "")

    def unsettled(self, why: str) -> None:
        """It did not come to rest by its deadline."""
        self._add("unsettled", "", why=why)
