"""Frames: a 4-byte big-endian length, then that many bytes of JSON.

The decoder owns no socket: bytes go in as they come, whole frames come out. A length over the limit is refused
from the header alone; not a byte of such a body is kept, and nothing after it is read as a frame.
"""

from __future__ import annotations

from struct import Struct

DEFAULT_MAX_FRAME_BYTES = 1_048_576
DELIVER_HEADROOM_BYTES = 4_096  # a DELIVER is larger than the SEND it came from; clients accept this much more
HEADER_BYTES = 4

_LENGTH = Struct(">I")
_read_length = _LENGTH.unpack_from
encode_length = _LENGTH.pack


def encode_frame(body: bytes) -> bytes:
    return encode_length(len(body)) + body


class FrameDecoder:
    """`feed` it what arrived; it returns the frames that are whole now, in order.

    `oversize_bytes` is set once a header announces more than the limit, and the decoder is deaf from then on.
    """

    __slots__ = ("_needed", "_partial", "max_frame_bytes", "oversize_bytes")

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.oversize_bytes: int | None = None
        self._partial = bytearray()  # the beginning of a frame that has not arrived whole
        self._needed = 0  # how long `_partial` must get before looking at it again is worth anything

    def feed(self, chunk: bytes) -> list[bytes]:
        if self.oversize_bytes is not None:
            return []
        if self._partial:
            self._partial += chunk
            if len(self._partial) < self._needed:
                return []  # a frame that drips in byte by byte costs one append a byte, not one copy
            chunk = bytes(self._partial)
            self._partial = bytearray()
        frames: list[bytes] = []
        start, end, most = 0, len(chunk), self.max_frame_bytes
        body = HEADER_BYTES
        while body <= end:
            (length,) = _read_length(chunk, start)
            if length > most:
                self.oversize_bytes = length
                return frames
            stop = body + length
            if stop > end:
                self._keep(chunk, start, HEADER_BYTES + length)
                return frames
            frames.append(chunk[body:stop])
            start, body = stop, stop + HEADER_BYTES
        if start < end:
            self._keep(chunk, start, HEADER_BYTES)
        return frames

    def _keep(self, chunk: bytes, start: int, needed: int) -> None:
        self._partial = bytearray(chunk[start:] if start else chunk)
        self._needed = needed

    @property
    def buffered_bytes(self) -> int:
        return len(self._partial)
