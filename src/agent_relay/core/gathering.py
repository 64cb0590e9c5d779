"""Whether the next batch waits a moment for more: in a steady stream, where one for each message costs several times as much.

A batch costs the same whether it holds one message or ten: a transaction, a flush of the disk, two threads that wake each
other. A flood needs no help, for whatever comes during one write is the next batch. In a steady stream messages come one by
one, each just too late for the batch before. There a batch waits, less than a millisecond.

Nobody waits without need. A message that comes alone is stored at once, and so are the first ones of a burst. So is a batch
that is large enough already. And where waiting brings nothing, because everybody waits for an answer before sending more, it
is left out, for longer each time.
"""

from __future__ import annotations

_CLOSE_MS = 2  # batches that begin so soon after one another are a stream
_SLOW_MS = 1  # since a batch began: a write that takes longer has gathered enough by itself
_SUSTAINED = 8  # in a row: fewer are a burst, which is soon over
_ENOUGH = 16  # messages: what a batch costs is next to nothing for each of them
_LONGER = 4  # times, each time that waiting was in vain
_LONGEST_REST = 4_096  # batches that begin at once before it is tried again: a second of a steady stream


class Gathering:
    def __init__(self) -> None:
        self._began_ms = -1_000  # the last batch
        self._in_a_row = 0  # batches, each close to the one before
        self._held: int | None = None  # how many there were when waiting began; None: nobody waits
        self._is_released = False
        self._rest = 0  # batches to come that do not wait
        self._next_rest = 1

    def holds(self, size: int, now_ms: int) -> bool:
        """Whether a batch of this size, which could begin now, waits for more: until `release`, or until time has passed."""
        since_ms = now_ms - self._began_ms
        if self._held is not None:
            return not self._is_released and size < _ENOUGH and since_ms <= _CLOSE_MS
        if self._in_a_row < _SUSTAINED or self._rest or size >= _ENOUGH or since_ms > _SLOW_MS:
            return False
        self._held = size
        return True

    @property
    def is_holding(self) -> bool:
        return self._held is not None and not self._is_released

    def release(self) -> None:
        """It has waited long enough."""
        self._is_released = True

    def began(self, size: int, now_ms: int) -> None:
        self._in_a_row = self._in_a_row + 1 if now_ms - self._began_ms <= _CLOSE_MS else 0
        self._began_ms = now_ms
        if self._held is None:
            self._rest = max(self._rest - 1, 0)
        elif size > self._held:
            self._next_rest = 1
        else:
            self._rest, self._next_rest = self._next_rest, min(_LONGER * self._next_rest, _LONGEST_REST)
        self._held, self._is_released = None, False
