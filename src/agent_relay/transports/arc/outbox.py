"""The frames that wait to be written to one peer: whole frames, given to the system a piece at a time.

Nothing is given to the transport before the system has taken what it was given last, so what can still be dropped is dropped at
the boundary of a frame, and whatever is said after that can be read.
"""

from __future__ import annotations

import asyncio

PIECE_BYTES = 256 * 1024  # at most about this much is with the transport and cannot be taken back


class Outbox:
    __slots__ = ("_frames", "_given_at", "_transport", "_waiting_bytes", "is_stalled")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        # pause_writing says that something is left, resume_writing that all is gone. A socket pauses above the mark, TLS at it:
        # with 0 it would pause with nothing left, and nothing would ever resume it.
        is_tls = transport.get_extra_info("ssl_object") is not None
        transport.set_write_buffer_limits(high=1 if is_tls else 0, low=0)
        self._frames: list[bytes] = []  # one or several in each
        self._waiting_bytes = 0
        self._given_at = 0  # when the piece that the system has not taken yet was given to it
        self.is_stalled = False

    @property
    def unsent_bytes(self) -> int:
        return self._waiting_bytes + self._transport.get_write_buffer_size()

    def put(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._waiting_bytes += len(frame)

    def flush(self, now_ms: int) -> None:
        """Writes as much as the system takes."""
        frames, transport = self._frames, self._transport
        while frames and not self.is_stalled:
            if len(frames) == 1 or self._waiting_bytes <= PIECE_BYTES:
                piece = frames[0] if len(frames) == 1 else b"".join(frames)
                frames.clear()
            else:
                piece = self._take_piece()
            self._waiting_bytes -= len(piece)
            self._given_at = now_ms
            transport.write(piece)
            self.is_stalled = transport.get_write_buffer_size() > 0

    def _take_piece(self) -> bytes:
        count = size = 0
        while count < len(self._frames) and size < PIECE_BYTES:
            size += len(self._frames[count])
            count += 1
        taken = self._frames[:count]
        del self._frames[:count]
        return b"".join(taken)

    def stalled_ms(self, now_ms: int) -> int:
        """The time for which the system has not taken the last piece."""
        return now_ms - self._given_at if self.is_stalled else 0

    def drop(self) -> None:
        """Drops what the transport has not been given yet."""
        self._frames.clear()
        self._waiting_bytes = 0
