"""The screen of a scripted agent: what was said, and below it a spinner, a dialog or the draft at its prompt."""

from __future__ import annotations

import os
import textwrap
import time
from collections import deque
from dataclasses import dataclass, field

from agent_relay.cli.demo.agent_script import LOOKS, Dialog, Script

_FOLDED = "  "


@dataclass(slots=True)
class Scene:
    """Everything below what was said."""

    mode: str = "prompt"
    draft: list[str] = field(default_factory=list)
    pastes: int = 0
    queue: deque[str] = field(default_factory=deque)
    growing: str = ""  # the line that is being written
    dialog: Dialog | None = None
    choice: int = 0


class AgentScreen:
    def __init__(self, script: Script, scene: Scene) -> None:
        self._script = script
        self._scene = scene
        self._look = LOOKS[script.look]
        self._shown: deque[str] = deque(maxlen=5000)
        self._fresh: list[tuple[str, str]] = []  # lines with their style, said and not drawn yet
        self._frames = 0
        self._drawn_rows = 0

    def open(self) -> None:
        self._write(("\x1b[?1049h" if self._script.alternate else "") + ("\x1b[?2004h" if self._script.bracketed else ""))

    def close(self) -> None:
        self._write(("\x1b[?2004l" if self._script.bracketed else "") + ("\x1b[?1049l" if self._script.alternate else "\r\n"))

    def say(self, *lines: str, style: str = "") -> None:
        self._shown.extend(lines)
        self._fresh.extend((line, style) for line in lines)

    def style(self, part: str) -> str:
        return self._look.styles.get(part, "")

    @property
    def bold(self) -> str:
        return f"1;{self._script.colour}" if self._script.colour else ""

    def set_title(self) -> None:
        if self._script.titles:
            self._write(f"\x1b]0;{self._look.titles[('prompt', 'busy', 'dialog').index(self._scene.mode)]}\x07")

    def _footer(self, columns: int) -> list[tuple[str, str]]:
        """The rows below what was said, with their styles."""
        look = self._look
        gap = [] if look.roomy else [("", "")]
        if self._scene.mode == "dialog":
            assert self._scene.dialog is not None
            options = [
                (f"{look.pointer if index == self._scene.choice else ' '} {index + 1}. {text}", "")
                for index, text in enumerate(self._scene.dialog.options)
            ]
            return [*gap, (self._scene.dialog.question, self.style("question")), *options, (look.hint, self.style("hint"))]
        rows = [(row, "") for row in _wrap(self._scene.growing, columns, at_hyphens=False)] if self._scene.growing else []
        rows += [("", "")] if rows else gap
        if self._scene.mode == "busy":
            self._frames += 1
            spinner = f"{look.spinner[self._frames % len(look.spinner)]} " if look.spinner else ""
            rows += [(spinner + look.busy, self.style("busy")), *([("", "")] if look.roomy else [])]
        return [*rows, *((row, "") for row in self._composer(columns))]

    def _composer(self, columns: int) -> list[str]:
        look = self._look
        draft = "".join(self._shorten(part) for part in self._scene.draft)
        if look.roomy:
            row, room = draft.replace("\n", " "), columns - len(look.prompt) - 1
            return [look.prompt + (row if len(row) <= room else row[:room] + "…")]
        first, *more = draft.split("\n")
        queued = [f"  queued: {text.splitlines()[0]}" for text in self._scene.queue]
        frame = [look.frame] if look.frame else []
        rows = [look.prompt + first, *(_FOLDED + line for line in more)]
        return [*queued, *frame, *(piece for row in rows for piece in _fold(row, columns)), *frame]

    def _shorten(self, part: str) -> str:
        if 0 < self._script.placeholder_from <= len(part):
            return f"[Pasted text #{self._scene.pastes} +{part.count(chr(10)) + 1} lines]"
        return part

    def draw(self) -> None:
        columns, rows = os.get_terminal_size(1)  # and not what COLUMNS says, which outlives any window
        footer = [(row[: columns - 1], style) for row, style in self._footer(columns - 1)][-(rows - 1) :]
        if self._script.alternate:
            wrapped = [piece for line in list(self._shown)[-rows:] for piece in _wrap(line, columns - 1, self._look.indent)]
            start, said = "\x1b[H\x1b[J", [(row, "") for row in wrapped[-(rows - len(footer)) :]]
        else:
            start = "\r" + (f"\x1b[{self._drawn_rows - 1}A" if self._drawn_rows > 1 else "") + "\x1b[J"
            said = self._fresh
            if self._look.roomy:
                said = [(row, style) for line, style in said for row in (*_wrap(line, columns - 1, at_hyphens=False), "")]
        text = "\r\n".join(f"\x1b[{style}m{row}\x1b[0m" if style and row else row for row, style in (*said, *footer))
        self._fresh = []
        self._drawn_rows = len(footer)
        self._write(start)
        if self._script.redraw_ms:
            time.sleep(self._script.redraw_ms / 1000)  # it looks empty meanwhile, as a slow CLI does
        self._write(text)

    def _write(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(1, data) :]


def _fold(row: str, columns: int) -> list[str]:
    """A row of the composer goes on below, indented, as the CLIs have it."""
    pieces = [row[:columns]]
    rest, room = row[columns:], max(1, columns - len(_FOLDED))
    while rest:
        pieces.append(_FOLDED + rest[:room])
        rest = rest[room:]
    return pieces


def _wrap(line: str, columns: int, indent: str = "", *, at_hyphens: bool = True) -> list[str]:
    """At spaces, as CLIs do that draw the whole screen themselves."""
    return textwrap.wrap(
        line, max(2, columns), replace_whitespace=False, subsequent_indent=indent, break_on_hyphens=at_hyphens
    ) or [""]
