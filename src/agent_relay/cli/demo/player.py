"""A scripted agent: a prompt, a while of thinking, answers written word by word, a dialog; no model, no network.

    python -P -m agent_relay.cli.demo.player NAME RECORD [PACE]

It knows nothing of the relay: it reads what is typed and prints. The record has a JSON object a line: what happened on
this screen, and when by the steady clock, which all processes of a machine share.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import sys
import termios
import textwrap
import time
import tty
from collections import deque
from types import FrameType
from typing import TextIO

from agent_relay.cli.demo.game import DIALOG_OPTIONS, DIALOG_QUESTION, Turn, find_turn, read_line

PROMPT = "› "
THINK_S, STROKE_S, FRAME_S = 0.6, 0.03, 0.15
_STROKE = 4  # characters at a time
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_COLOURS = {"Alice": "36", "Bob": "35", "Carol": "33"}
_DIM, _BOLD = "2", "1"
_TOKEN = re.compile(rb"\x1b\[200~|\x1b\[201~|\x1b\[[0-9;?]*[@-~]|\x1bO[A-Z]|[\xc0-\xf7][\x80-\xbf]+|.", re.DOTALL)
_BEGUN = re.compile(rb"(?:\x1b(?:\[[0-9;?]*|O)?|[\xc0-\xf7][\x80-\xbf]*)$")


class Player:
    """`pace` multiplies the time it takes to think and to write."""

    def __init__(self, name: str, record: TextIO, pace: float = 1.0) -> None:
        self._name = name
        self._record = record
        self._pace = pace
        self._draft = ""
        self._paste: str | None = None
        self._kept = b""
        self._told: deque[str] = deque()  # typed while it was busy
        self._turn: Turn | None = None
        self._lines: deque[str] = deque()  # of the answer, still to be written
        self._growing = ""
        self._is_asking = False
        self._due_s = 0.0
        self._frames = 0
        self._fresh: list[tuple[str, str]] = []  # (line, style), said and not drawn yet
        self._drawn_rows = 0
        self._woken = -1

    # --- the loop ----------------------------------------------------------------------------------------------------

    def run(self) -> int:
        self._woken, waking = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(waking, False)
        signal.signal(signal.SIGWINCH, _wake_up)
        signal.set_wakeup_fd(waking)
        saved = termios.tcgetattr(0)
        tty.setraw(0, termios.TCSANOW)
        try:
            _write("\x1b[?2004h")
            self._say(f"{self._name}, a scripted agent", f"{_BOLD};{_COLOURS.get(self._name, _BOLD)}")
            self._draw()
            self._note("ready")
            self._note("width", text=str(shutil.get_terminal_size().columns))
            while self._serve():
                self._draw()
            return 0
        finally:
            _write("\x1b[?2004l\r\n")
            termios.tcsetattr(0, termios.TCSANOW, saved)

    def _serve(self) -> bool:
        """False when the terminal is gone."""
        is_busy = self._turn is not None and not self._is_asking
        wait_s = min(FRAME_S, max(0.0, self._due_s - time.monotonic())) if is_busy else None
        ready, _, _ = select.select([0, self._woken], [], [], wait_s)
        if self._woken in ready:
            os.read(self._woken, 512)
            self._draw()
            self._note("width", text=str(shutil.get_terminal_size().columns))
        if 0 in ready:
            try:
                data = os.read(0, 65_536)
            except OSError:  # EIO: the other side hung up
                return False
            if not data:
                return False
            self._take(data)
        if is_busy and time.monotonic() >= self._due_s:
            self._go_on()
        return True

    # --- what is typed -----------------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        data, self._kept = self._kept + data, b""
        begun = _BEGUN.search(data)
        if begun:
            data, self._kept = data[: begun.start()], data[begun.start() :]
        for match in _TOKEN.finditer(data):
            self._key(match[0])

    def _key(self, token: bytes) -> None:
        text = token.decode("utf-8", "replace")
        if self._is_asking:
            self._note("key", text=text)
            self._answer(text)
        elif token == b"\x1b[200~":
            self._paste = ""
        elif token == b"\x1b[201~":
            self._draft, self._paste = self._draft + (self._paste or ""), None
            self._draw()
            self._note("shown", text=self._draft)
        elif self._paste is not None:
            self._paste += text
        elif token == b"\r":
            self._enter()
        elif token == b"\x7f":
            self._draft = self._draft[:-1]
        elif text.isprintable():
            self._draft += text

    def _enter(self) -> None:
        text, self._draft = self._draft, ""
        if text.strip():
            self._note("took", text=text)
            self._told.append(text)
            self._begin()

    def _answer(self, text: str) -> None:
        chosen = {"\r": 0, **{str(number + 1): number for number in range(len(DIALOG_OPTIONS))}}.get(text)
        if chosen is not None:
            self._is_asking = False
            self._note("answered", text=DIALOG_OPTIONS[chosen])
            self._say(f"✔ {DIALOG_QUESTION} {DIALOG_OPTIONS[chosen]}", "32")

    # --- answering ---------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._turn is not None or not self._told:
            return
        text = self._told.popleft()
        self._say(f"> {text}", _DIM)
        self._turn = find_turn(self._name, text) or Turn("", ("Good to know.",))
        self._lines = deque([f"• {self._turn.say[0]}", *self._turn.say[1:]])
        self._wait(THINK_S, self._turn.think_s)
        if self._turn.asks:
            self._lines.appendleft("")  # the place where it asks first

    def _go_on(self) -> None:
        """One step of the turn: ask, a stroke of the line, the next line, or the end."""
        line = self._lines[0] if self._lines else None
        if line is None:
            self._turn = None
            self._begin()
        elif line == "":
            self._lines.popleft()
            self._is_asking = True
            self._draw()
            self._note("asks")
        elif len(self._growing) < len(line):
            self._growing = line[: len(self._growing) + _STROKE] if self._pace else line
            self._wait(STROKE_S)
            if self._growing == line and read_line(self._name, line) is not None:
                self._draw()
                self._note("printed", text=line)
        else:
            self._growing = ""
            self._lines.popleft()
            is_message = read_line(self._name, line) is not None
            self._say(line, f"{_BOLD};{_COLOURS.get(self._name, _BOLD)}" if is_message else "")
            self._wait(STROKE_S)

    def _wait(self, seconds: float, at_least: float = 0.0) -> None:
        self._due_s = time.monotonic() + max(seconds * self._pace, at_least)

    # --- drawing -----------------------------------------------------------------------------------------------------

    def _say(self, line: str, style: str = "") -> None:
        self._fresh.append((line, style))

    def _footer(self, columns: int) -> list[tuple[str, str]]:
        rows = [(row, "") for row in _wrap(self._growing, columns)] if self._growing else []
        if self._is_asking:
            options = [f"{'❯' if number == 0 else ' '} {number + 1}. {text}" for number, text in enumerate(DIALOG_OPTIONS)]
            return [*rows, (DIALOG_QUESTION, "1;33"), *((option, "") for option in options), ("Esc to cancel", _DIM)]
        if self._turn is not None:
            self._frames += 1
            rows += [*([("", "")] if rows else []), (f"{_SPINNER[self._frames % len(_SPINNER)]} Thinking…", "34"), ("", "")]
        draft = self._draft.replace("\n", " ")
        room = columns - len(PROMPT) - 2
        return [*rows, (PROMPT + (draft if len(draft) <= room else draft[:room] + "…"), "")]

    def _draw(self) -> None:
        columns = shutil.get_terminal_size().columns
        footer = self._footer(columns)
        up = f"\x1b[{self._drawn_rows - 1}A" if self._drawn_rows > 1 else ""
        said = [(row, style) for line, style in self._fresh for row in (*_wrap(line, columns), "")]
        self._fresh.clear()
        self._drawn_rows = len(footer)
        rows = (f"\x1b[{style}m{text}\x1b[0m" if style else text for text, style in (*said, *footer))
        _write(f"\r{up}\x1b[J" + "\r\n".join(rows))

    def _note(self, event: str, **fields: str) -> None:
        self._record.write(json.dumps({"t": time.monotonic(), "event": event, **fields}) + "\n")
        self._record.flush()


def _wrap(text: str, columns: int) -> list[str]:
    """Broken between words, as agents' CLIs do it."""
    return textwrap.wrap(text, max(2, columns - 1), break_on_hyphens=False) or [""]


def _write(text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(1, data) :]


def _wake_up(number: int, frame: FrameType | None) -> None:
    """A handler, so that the signal wakes us up."""


def main(words: list[str]) -> int:
    name, path, *pace = words
    with open(path, "a", encoding="utf-8") as record:
        return Player(name, record, float(pace[0]) if pace else 1.0).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
