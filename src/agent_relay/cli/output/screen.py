"""Output of commands: coloured and fitted to a terminal, plain and unshortened into a pipe.

Text is given in parts, each with a style or none. Nothing here reads markup, so a message cannot bring its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from agent_relay.cli.output.safe_text import clean_json

if TYPE_CHECKING:
    from rich.console import Console

Part = str | tuple[str, str]
_GAP = "  "


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    right: bool = False
    optional: bool = False  # left out, the last one first, where the terminal is too narrow


class Screen:
    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.is_terminal = self.stream.isatty()
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """Only for a terminal; it respects NO_COLOR and TERM=dumb by itself."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(file=self.stream, highlight=False, markup=False, emoji=False)
        return self._console

    def line(self, *parts: Part) -> None:
        """One line; a long one is wrapped by the terminal itself, so that it can be copied whole."""
        if self.is_terminal:
            from rich.text import Text

            self.console.print(Text.assemble(*parts), soft_wrap=True)
        else:
            self.stream.write(plain(parts) + "\n")

    def block(self, text: str, indent: int = 4, style: str = "") -> None:
        """Lines of text, indented; on a terminal wrapped inside the indent."""
        if self.is_terminal:
            from rich.padding import Padding
            from rich.text import Text

            self.console.print(Padding(Text(text, style=style), (0, 0, 0, indent)))
        else:
            for line in text.split("\n"):
                self.stream.write((" " * indent + line).rstrip() + "\n")

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[Part]]) -> None:
        limit = self.console.width if self.is_terminal else None
        shown = choose_columns(columns, rows, limit)
        if not self.is_terminal:
            for line in _plain_table([columns[index] for index in shown], [[row[index] for index in shown] for row in rows]):
                self.stream.write(line + "\n")
            return
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, len(_GAP), 0, 0), header_style="bold")
        for index in shown:
            column = columns[index]
            table.add_column(column.title, justify="right" if column.right else "left", no_wrap=True, overflow="ellipsis")
        for row in rows:
            table.add_row(*(Text.assemble(row[index]) for index in shown))
        self.console.print(table)

    def json(self, value: Any) -> None:
        self.stream.write(clean_json(json.dumps(value, ensure_ascii=False, indent=2 if self.is_terminal else None)) + "\n")

    def json_line(self, value: Any) -> None:
        """One object of many, always on one line."""
        self.stream.write(clean_json(json.dumps(value, ensure_ascii=False)) + "\n")

    def flush(self) -> None:
        self.stream.flush()


def plain(parts: Iterable[Part]) -> str:
    return "".join(part if isinstance(part, str) else part[0] for part in parts).rstrip()


def choose_columns(columns: Sequence[Column], rows: Sequence[Sequence[Part]], limit: int | None) -> list[int]:
    """The columns there is room for; those that are not optional stay, and are shortened instead."""
    widths = [max([len(column.title), *(len(plain([row[i]])) for row in rows)]) for i, column in enumerate(columns)]
    shown = list(range(len(columns)))
    while limit is not None and sum(widths[i] for i in shown) + len(_GAP) * len(shown) > limit:
        droppable = [i for i in shown if columns[i].optional]
        if not droppable:
            break
        shown.remove(droppable[-1])
    return shown


def _plain_table(columns: Sequence[Column], rows: Sequence[Sequence[Part]]) -> Iterable[str]:
    cells = [[column.title for column in columns], *([plain([cell]) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    for row in cells:
        padded = (
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        )
        yield _GAP.join(padded).rstrip()
