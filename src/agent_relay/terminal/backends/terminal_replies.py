"""Answers that a program expects of its terminal, for when there is none but us.

Some CLIs ask where the cursor is before they draw, and give up when nobody answers. With a person's terminal behind
the PTY that one answers; without, we do, as a plain colour terminal would.
"""

from __future__ import annotations

import re
from enum import Enum

from msgspec import Struct

_QUERY = re.compile(
    rb"\x1b\[(?P<status>\??[56])n"
    rb"|\x1b\[(?P<attributes>[>=]?)0?c"
    rb"|\x1b\[\?(?P<mode>[0-9]{1,5})\$p"
    rb"|\x1b\[(?P<size>1[48])t"
    rb"|\x1b\](?P<colour>1[012]);\?(?:\x07|\x1b\\)"
)
_BEGUN = re.compile(rb"\x1b(?:\[[?>=]?[0-9]{0,5}\$?|\](?:1(?:[012](?:;\??\x1b?)?)?)?)?$")
_COLOURS = {b"10": b"e5e5/e5e5/e5e5", b"11": b"0000/0000/0000", b"12": b"e5e5/e5e5/e5e5"}
_CELL_PIXELS = (8, 16)  # of nothing in particular; programs want a ratio


class Place(Enum):
    """What has to be known to answer."""

    NOWHERE = 0
    CURSOR = 1


class Query(Struct, frozen=True):
    kind: str
    value: bytes
    needs: Place = Place.NOWHERE


class QueryFinder:
    def __init__(self) -> None:
        self._kept = b""

    def split(self, data: bytes) -> list[bytes | Query]:
        """The output with the queries in their places; what is shown before a query is drawn before it is answered."""
        data, self._kept = self._kept + data, b""
        begun = _BEGUN.search(data, max(0, len(data) - 16))
        if begun:
            data, self._kept = data[: begun.start()], data[begun.start() :]
        parts: list[bytes | Query] = []
        start = 0
        for match in _QUERY.finditer(data):
            kind = match.lastgroup or ""
            value = match[kind]
            parts.append(data[start : match.end()])
            needs = Place.CURSOR if kind == "status" and value.endswith(b"6") else Place.NOWHERE
            parts.append(Query(kind, value, needs))
            start = match.end()
        if start < len(data):
            parts.append(data[start:])
        return parts


def answer(query: Query, *, columns: int, rows: int, cursor: tuple[int, int] = (0, 0)) -> bytes:
    """`cursor` is (row, column) from 0; needed only where the query says so."""
    value = query.value
    match query.kind:
        case "status":
            if value.endswith(b"5"):
                return b"\x1b[0n"
            mark = b"?" if value.startswith(b"?") else b""
            return b"\x1b[%s%d;%dR" % (mark, cursor[0] + 1, cursor[1] + 1)
        case "attributes":
            return {b"": b"\x1b[?62;22c", b">": b"\x1b[>0;10;1c"}.get(value, b"")
        case "mode":
            return b"\x1b[?%s;0$y" % value  # not recognised
        case "size" if value == b"18":
            return b"\x1b[8;%d;%dt" % (rows, columns)
        case "size":
            return b"\x1b[4;%d;%dt" % (rows * _CELL_PIXELS[1], columns * _CELL_PIXELS[0])
        case "colour":
            return b"\x1b]%s;rgb:%s\x1b\\" % (value, _COLOURS[value])
        case _:
            return b""
