"""Messages that one client was given and has not shown to have read.

A client answers a ping after everything that came before it. So a ping follows each burst of messages, and its pong, known by its
content, says that all of them were read. A client may answer the last of several pings only, which says the same of the others.
"""

from __future__ import annotations

_MOST = 4_096  # messages; then nothing more is given until something was read, and waits in the mailbox
_MOST_BYTES = 16 * 1024 * 1024  # the same; more than the system's buffers of a connection hold
_MOST_PINGS = 4  # unanswered at once: one that is slow to answer is not asked about every burst


class Unread:
    __slots__ = ("_asked", "_given", "_given_bytes", "_pings", "_read", "_read_bytes")

    def __init__(self) -> None:
        self._given = self._given_bytes = 0
        self._asked = 0  # of those given, how many came before the last ping
        self._read = self._read_bytes = 0
        self._pings: list[tuple[int, int]] = []  # that are not answered: how much was given before each

    def gave(self, count: int, size_bytes: int) -> None:
        self._given += count
        self._given_bytes += size_bytes

    @property
    def is_too_much(self) -> bool:
        return self._given - self._read >= _MOST or self._given_bytes - self._read_bytes >= _MOST_BYTES

    @property
    def should_ask(self) -> bool:
        return self._given > self._asked and len(self._pings) < _MOST_PINGS

    def ask(self) -> bytes:
        """The content of the next ping."""
        self._asked = self._given
        self._pings.append((self._given, self._given_bytes))
        return b"%d" % self._given

    def answered(self, content: bytes) -> int:
        """A pong came: how many messages more were read. None by one that answers no ping of ours."""
        for place, (given, given_bytes) in enumerate(self._pings):
            if content == b"%d" % given:
                del self._pings[: place + 1]
                count = given - self._read
                self._read, self._read_bytes = given, given_bytes
                return count
        return 0
