"""For `--debug`: the type and the ids of every frame, and nothing else of it."""

from __future__ import annotations

import logging

import msgspec

log = logging.getLogger(__name__)


class _Outline(msgspec.Struct):
    type: str = "?"
    id: str = "?"
    to: str | list[str] | None = None


_decode = msgspec.json.Decoder(_Outline).decode


def trace(what: str, frames: list[bytes]) -> None:
    for frame in frames:
        try:
            outline = _decode(frame)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            outline = _Outline()
        fields = {"type": outline.type[:64], "id": outline.id[:128], "to": outline.to, "bytes": len(frame)}
        log.debug(what, extra={"relay_fields": fields})
