"""The line of a TOML file that a field stands in, for error messages. The file need not be a valid profile."""

from __future__ import annotations

import re
from collections.abc import Iterator

_HEADER = re.compile(r"[ \t]{0,20}(\[\[?)([^\[\]]{1,200})\]")
_KEY = re.compile(r"([^=\[\]{}#\n]{1,200})=")
_TOKEN = re.compile(r"\"\"\"|'''|\"(?:[^\"\\\n]|\\.){0,1000}\"|'[^'\n]*'|#[^\n]*|[\[\]{}\n]")
_STEP = re.compile(r"([\w-]+)|\[(\d+)\]")


def line_of(source: str, path: str, text: str = "") -> int:
    """`path` as msgspec spells it: `rows.agent`, `dialogs[1].kind`. The nearest part that is there counts: of a field that is
    missing, its table. `text`: an entry of a list; its own line, where it can be found below the field's."""
    places = dict(_places(source))
    steps = ["".join(f"[{index}]" if index else f".{name}" for name, index in [match]) for match in _STEP.findall(path)]
    for end in range(len(steps), 0, -1):
        found = places.get("".join(steps[:end]).lstrip("."))
        if found is not None:
            return _line_with(source, found, text) if text and end == len(steps) else found
    return 1


def _line_with(source: str, first: int, text: str) -> int:
    lines = source.split("\n")[first - 1 :]
    spelled = (text, text.replace("\\", "\\\\").replace('"', '\\"'))
    return next((first + at for at, line in enumerate(lines) if any(each in line for each in spelled)), first)


def _places(source: str) -> Iterator[tuple[str, int]]:
    table = ""
    counts: dict[str, int] = {}
    for number, line in _statements(source):
        header = _HEADER.match(line)
        if header:
            table = _dotted(header[2])
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = f"{table}[{counts[table]}]"
            yield table, number
        elif key := _KEY.match(line):
            yield f"{table}.{_dotted(key[1])}".lstrip("."), number


def _dotted(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


def _statements(source: str) -> Iterator[tuple[int, str]]:
    """The first line of each statement: strings and lists may go on over several."""
    depth, number, start, is_first = 0, 1, 0, True
    quote = ""
    lines = source.split("\n")
    for token in _TOKEN.finditer(source + "\n"):
        mark = token[0]
        if quote:
            number += mark.count("\n")
            quote = "" if mark == quote else quote
        elif mark in {'"""', "'''"}:
            quote = mark
        elif mark in "[{" or mark in "]}":
            depth += 1 if mark in "[{" else -1
        elif mark == "\n":
            if is_first:
                yield start + 1, lines[start]
            is_first = depth <= 0
            depth = max(depth, 0)
            start, number = number, number + 1
