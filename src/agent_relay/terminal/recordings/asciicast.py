"""Recordings of terminals in the asciicast v2 format: a header line, then `[seconds, kind, data]` lines."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct


class CastError(Exception):
    """The file is no recording this program can read; the text says why."""


class CastHeader(Struct):
    version: int
    width: int
    height: int
    title: str = ""


class CastEvent(Struct, array_like=True):
    t: float
    kind: str  # o: output, i: input, r: resize (`120x40`), m: mark
    data: str


class Cast(Struct):
    header: CastHeader
    events: list[CastEvent]


def read_cast(path: Path) -> Cast:
    with path.open(encoding="utf-8") as file:
        try:
            header = msgspec.json.decode(file.readline(), type=CastHeader)
            events = [msgspec.json.decode(line, type=CastEvent) for line in file if line.strip()]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise CastError(f"{path.name} is not an asciicast v2 recording: {error}") from None
    if header.version != 2:
        raise CastError(f"{path.name} is asciicast version {header.version}; only version 2 is supported.")
    return Cast(header, events)
