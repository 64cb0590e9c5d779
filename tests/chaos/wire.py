"""Frames on the wire: four bytes of length, big-endian, then one JSON object. Written from the contract alone."""

from __future__ import annotations

import itertools
import json
import struct
import time
from typing import Any

Frame = dict[str, Any]

_LENGTH = struct.Struct(">I")
_numbers = itertools.count(1)


def encode_frame(frame: Frame) -> bytes:
    body = json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)) + body


def make_frame(kind: str, payload: dict[str, Any], frame_id: str | None = None, **fields: Any) -> Frame:
    return {
        "v": 2,
        "type": kind,
        "id": frame_id or f"{kind.lower()}-{next(_numbers)}",
        "ts": int(time.time() * 1000),
        "payload": payload,
        **fields,
    }


class Decoder:
    """Bytes in any pieces → frames."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, chunk: bytes) -> list[Frame]:
        self._bytes += chunk
        frames, start = [], 0
        while len(self._bytes) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes, start)
            end = start + _LENGTH.size + length
            if len(self._bytes) < end:
                break
            frames.append(json.loads(self._bytes[start + _LENGTH.size : end]))
            start = end
        del self._bytes[:start]
        return frames
