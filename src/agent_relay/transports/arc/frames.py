"""WebSocket frames of a server without extensions (RFC 6455): bytes in, what was said out. No socket is touched here.

Since nothing is compressed there is nothing to unpack to a surprising size, and one encoded frame serves every peer, because a
server's frames are not masked. What is too large is told from the header: up to `hard_bytes` it is read past and not kept, beyond
that it is not read at all.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from enum import IntEnum

from websockets.speedups import apply_mask

from agent_relay.protocol.arc.codes import CloseCode

_KEY_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
_FIN, _RESERVED, _OPCODE, _MASKED, _LENGTH = 0x80, 0x70, 0x0F, 0x80, 0x7F
_LONGEST_CONTROL = LONGEST_SMALL = 125  # sizes that are told by their first byte
LONGEST_MIDDLE = (1 << 16) - 1
_CLOSE_CODES = frozenset({1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014})  # that may be sent


class Kind(IntEnum):
    CONTINUATION = 0x0
    TEXT = 0x1
    BINARY = 0x2
    CLOSE = 0x8
    PING = 0x9
    PONG = 0xA
    OVERSIZE = 0x100  # no frame: a message that was read past; its size stands where the content would


# As plain numbers, for what is done with every frame.
TEXT, _FIRST_CONTROL = int(Kind.TEXT), int(Kind.CLOSE)
WHOLE_TEXT = _FIN | TEXT
_DATA = frozenset(map(int, (Kind.CONTINUATION, Kind.TEXT, Kind.BINARY)))
_pack_small, pack_middle, _pack_large = (struct.Struct(layout).pack for layout in (">BB", ">BBH", ">BBQ"))
_SMALL_TEXT = WHOLE_TEXT << 8 | _MASKED  # the first two bytes of an empty one, to which its size is added
_MIDDLE_TEXT = _SMALL_TEXT + LONGEST_SMALL + 1
_SMALL_HEAD_BYTES, _MIDDLE_HEAD_BYTES = 6, 8
_unpack_head = struct.Struct(">HH4s").unpack_from  # of a middle one: the size and the mask stand behind the first two bytes
_CONTROL = frozenset(map(int, (Kind.CLOSE, Kind.PING, Kind.PONG)))


class FrameReader:
    """`broken` is set when the stream cannot go on: the code to close with, and why."""

    __slots__ = ("_hard_bytes", "_kept", "_kind", "_max_bytes", "_message", "_size", "_skip", "_skip_ends", "broken")

    def __init__(self, max_bytes: int, hard_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._hard_bytes = hard_bytes
        self._kept = b""  # the beginning of a frame that is not whole yet
        self._kind = 0  # of the message that is under way
        self._message: bytearray | None = None  # its fragments so far; None: there is none under way
        self._size = 0
        self._skip = 0  # bytes of an oversize frame that are still to come
        self._skip_ends = False  # and that frame is its message's last
        self.broken: tuple[CloseCode, str] | None = None

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """The frames that are whole by now, in order."""
        found: list[tuple[int, bytes]] = []
        if self.broken is not None:
            return found
        if self._kept:
            data = self._kept + data
        at, end = 0, len(data)
        while at < end:
            if self._message is None:
                at = self._read_texts(data, at, found)
            before, at = at, self._read_frame(data, at, found)
            if at == before:
                break
        self._kept = data[at:]
        return found

    def _read_texts(self, data: bytes, at: int, found: list[tuple[int, bytes]]) -> int:
        """Whole messages of one frame, as nearly all are, as far as they follow each other; where the last one ends."""
        end, max_bytes = len(data), self._max_bytes
        while end - at >= _MIDDLE_HEAD_BYTES:
            head, length, mask = _unpack_head(data, at)
            if head == _MIDDLE_TEXT:
                start = at + _MIDDLE_HEAD_BYTES
            elif _SMALL_TEXT <= head < _MIDDLE_TEXT:
                start = at + _SMALL_HEAD_BYTES
                length = head - _SMALL_TEXT
                mask = data[start - 4 : start]
            else:
                break
            stop = start + length
            if stop > end or length > max_bytes:
                break
            found.append((TEXT, apply_mask(data[start:stop], mask)))
            at = stop
        return at

    def _read_frame(self, data: bytes, at: int, found: list[tuple[int, bytes]]) -> int:
        """Any frame, or the rest of one that is read past; where it ends, or `at` where it is not whole or breaks the rules."""
        end = len(data)
        if self._skip:
            taken = min(self._skip, end - at)
            self._skip -= taken
            if not self._skip and self._skip_ends:
                found.append(self._end_oversize())
            return at + taken
        if end - at < 2:
            return at
        first, length = data[at], data[at + 1]
        if not length & _MASKED:
            self.broken = CloseCode.PROTOCOL_ERROR, "Client frames must be masked."
            return at
        length &= _LENGTH
        start = at + _SMALL_HEAD_BYTES
        if length > LONGEST_SMALL:
            wide = 2 if length == LONGEST_SMALL + 1 else 8
            start += wide
            if end < start:
                return at
            length = int.from_bytes(data[at + 2 : at + 2 + wide])
        if not self._is_allowed(first, length):
            return at
        if first & _OPCODE < _FIRST_CONTROL and self._size + length > self._max_bytes:
            if end < start:
                return at
            self._skip_over(first, length)
            if not length and self._skip_ends:
                found.append(self._end_oversize())
            return start
        stop = start + length
        if end < stop:
            return at
        self._take(first, apply_mask(data[start:stop], data[start - 4 : start]), found)
        return stop

    def _is_allowed(self, first: int, length: int) -> bool:
        kind = first & _OPCODE
        if first & _RESERVED:
            self._break("No extension was negotiated.")
        elif kind in _CONTROL:
            if length > _LONGEST_CONTROL or not first & _FIN:
                self._break("Control frames must be unfragmented and at most 125 bytes.")
        elif kind not in _DATA:
            self._break("Unknown frame type.")
        elif (kind == Kind.CONTINUATION) != (self._message is not None):
            self._break("Fragments of a message must follow each other.")
        elif self._size + length > self._hard_bytes:
            self.broken = CloseCode.TOO_LARGE, f"A message may have at most {self._max_bytes} bytes."
        return self.broken is None

    def _break(self, reason: str) -> None:
        self.broken = CloseCode.PROTOCOL_ERROR, reason

    def _skip_over(self, first: int, length: int) -> None:
        if self._message is None:
            self._kind = first & _OPCODE
        self._message = bytearray()
        self._size += length
        self._skip = length
        self._skip_ends = bool(first & _FIN)

    def _end_oversize(self) -> tuple[int, bytes]:
        size, self._size = self._size, 0
        self._message = None
        self._skip_ends = False
        return Kind.OVERSIZE, str(size).encode()

    def _take(self, first: int, content: bytes, found: list[tuple[int, bytes]]) -> None:
        kind = first & _OPCODE
        if kind in _CONTROL:
            found.append((kind, content))
            return
        if self._message is None:
            if first & _FIN:
                found.append((kind, content))
                return
            self._kind, self._message = kind, bytearray()
        self._message += content
        self._size += len(content)
        if first & _FIN:
            found.append((self._kind, bytes(self._message)))
            self._message, self._size = None, 0


def encode_frame(kind: Kind, content: bytes) -> bytes:
    return encode_text(content, _FIN | kind)


def encode_text(content: bytes, first: int = WHOLE_TEXT) -> bytes:
    """The frame of nearly everything that is said; `first` is the first byte of another kind."""
    size = len(content)
    if size <= LONGEST_SMALL:
        return _pack_small(first, size) + content
    if size <= LONGEST_MIDDLE:
        return pack_middle(first, 126, size) + content
    return _pack_large(first, 127, size) + content


def encode_close(code: int, reason: str) -> bytes:
    text = reason.encode()[: _LONGEST_CONTROL - 2].decode(errors="ignore").encode()
    return encode_frame(Kind.CLOSE, code.to_bytes(2) + text)


def read_close(content: bytes) -> int:
    """The code to answer with: the client's own where it is one that may be sent."""
    if not content:
        return CloseCode.NORMAL
    code = int.from_bytes(content[:2]) if len(content) >= 2 else 0
    try:
        content[2:].decode()
    except UnicodeDecodeError:
        return CloseCode.NOT_UTF8
    return code if code in _CLOSE_CODES or 3000 <= code < 5000 else CloseCode.PROTOCOL_ERROR


def accept_key(key: bytes) -> bytes:
    """The proof for the client that its `Sec-WebSocket-Key` was understood."""
    return base64.b64encode(hashlib.sha1(key + _KEY_SUFFIX, usedforsecurity=False).digest())


def is_key(key: bytes) -> bool:
    try:
        return len(base64.b64decode(key, validate=True)) == 16
    except ValueError:
        return False
