"""The scripted agent: a stand-in for an agent's CLI, with a prompt, a busy phase, dialogs and slow redraws; no model, no network.

    python -P -m agent_relay.cli.demo.scripted_agent --script FILE --record FILE

The demonstration plays with it, and tests do (`agent_relay.testing`). It knows nothing of the relay: it reads what is typed and
prints. The script is a JSON object (see `agent_script`). The record has a JSON object a line, with the mode (`prompt`, `busy`,
`dialog`) and the time by the steady clock, which all processes of a machine share:

    started, ended, size, mode             the program itself: it runs, its terminal has so many columns, its mode changed
    input, pasted, entered                 every byte it was given, a whole paste, what Enter was pressed after
    submitted, queued, aborted, answered   what came of it
    shown, said, asked                     what its screen shows: a pasted draft, a line of an answer, a dialog
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import select
import signal
import sys
import termios
import textwrap
import time
import tty
from collections import deque
from types import FrameType
from typing import Any, TextIO

import msgspec

from agent_relay.cli.demo.agent_script import LOOKS, Dialog, Script, Turn

_TOKEN = re.compile(rb"\x1b\[200~|\x1b\[201~|\x1b\[[0-9;?]*[@-~]|\x1bO[A-Z]|[\xc0-\xf7][\x80-\xbf]+|.", re.DOTALL)
_BEGUN = re.compile(rb"(?:\x1b(?:\[[0-9;?]*|O)?|[\xc0-\xf7][\x80-\xbf]*)$")
_ESCAPE_S = 0.05  # an Escape that nothing follows is the key
_FRAME_S = 0.15  # of a spinner
_STROKE = 4  # characters at a time
_HUNG_UP = 129
_FOLDED = "  "


class ScriptedAgent:
    """The program in its terminal, from the first row to its exit status."""

    def __init__(self, script: Script, record: TextIO) -> None:
        self._script = script
        self._look = LOOKS[script.look]
        self._record = record
        self._mode = "prompt"
        self._draft: list[str] = []
        self._shown: deque[str] = deque(maxlen=5000)
        self._fresh: list[tuple[str, str]] = []  # lines with their style, said and not drawn yet
        self._to_note: list[tuple[str, dict[str, Any]]] = []  # once it is drawn
        self._growing = ""  # the line that is being written
        self._frames = 0
        self._drawn_rows = 0
        self._queue: deque[str] = deque()
        self._turn: Turn | None = None
        self._groups: re.Match[str] | None = None
        self._said = 0
        self._has_asked = False
        self._due_s = 0.0  # when the step of a turn is over, or a dialog closes by itself
        self._dialog: Dialog | None = None
        self._choice = 0
        self._paste: list[str] | None = None
        self._kept = b""
        self._exit_code: int | None = None
        self._pastes = 0
        self._woken = -1

    # --- the loop ----------------------------------------------------------------------------------------------------

    def run(self) -> int:
        # A handler could run in the middle of a drawing; the wake-up pipe is looked at between two.
        self._woken, waking = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(waking, False)
        signal.signal(signal.SIGWINCH, _ignore)
        signal.set_wakeup_fd(waking)
        saved = termios.tcgetattr(0)
        tty.setraw(0, termios.TCSANOW)
        try:
            self._write(("\x1b[?1049h" if self._script.alternate else "") + ("\x1b[?2004h" if self._script.bracketed else ""))
            if self._script.banner:
                self._say(self._script.banner, style=self._bold)
            if self._script.start is not None:
                self._begin(self._script.start, None)
            self._note_size()
            self._draw()
            self._note("started")
            while self._exit_code is None:
                self._serve()
            return self._exit_code
        finally:
            self._write(("\x1b[?2004l" if self._script.bracketed else "") + ("\x1b[?1049l" if self._script.alternate else "\r\n"))
            termios.tcsetattr(0, termios.TCSANOW, saved)
            self._note("ended")

    def _serve(self) -> None:
        waits_s = [max(0.0, self._due_s - time.monotonic())] if self._is_timed else []
        waits_s += [_FRAME_S] if self._mode == "busy" and self._look.spinner else []
        waits_s += [_ESCAPE_S] if self._kept else []
        ready, _, _ = select.select([0, self._woken], [], [], min(waits_s, default=None))
        if self._woken in ready:
            os.read(self._woken, 512)
            self._note_size()
        if 0 in ready:
            try:
                data = os.read(0, 65_536)
            except OSError:  # EIO: the other side hung up
                data = b""
            if not data:
                self._exit_code = _HUNG_UP
                return
            self._take(data)
        elif self._kept and not ready:
            kept, self._kept = self._kept, b""
            self._token(kept, alone=True)
        if self._is_timed and time.monotonic() >= self._due_s:
            self._go_on()
        self._draw()

    @property
    def _is_timed(self) -> bool:
        return self._mode == "busy" or (self._dialog is not None and self._dialog.close_ms > 0)

    def _take(self, data: bytes) -> None:
        data, self._kept = self._kept + data, b""
        begun = _BEGUN.search(data)
        if begun:
            data, self._kept = data[: begun.start()], data[begun.start() :]
        alone = not 0 < self._script.single_write_limit < len(data)
        for match in _TOKEN.finditer(data):
            self._token(match[0], alone=alone)

    def _token(self, token: bytes, *, alone: bool) -> None:
        self._note("input", bytes=base64.b64encode(token).decode(), text=token.decode("utf-8", "backslashreplace"))
        if self._mode == "dialog":
            self._answer(token)
        elif token == b"\x1b[200~":
            self._paste = []
        elif token == b"\x1b[201~":
            self._end_paste()
        elif self._paste is not None:
            self._paste.append(_text(token))
        else:
            self._key(token, alone=alone)

    def _end_paste(self) -> None:
        text, self._paste = "".join(self._paste or []), None
        self._pastes += 1
        self._note("pasted", text=text)
        self._draft.append(text)
        self._note_when_drawn("shown", text="".join(self._draft))
        dialog = self._script.at_paste.get(str(self._pastes))
        if dialog is not None:
            self._ask(dialog)

    def _key(self, token: bytes, *, alone: bool) -> None:
        if token == b"\r" and not alone:
            self._draft.append("\n")
        elif token == b"\r":
            self._enter()
        elif token == b"\t" and self._mode == "busy":
            self._put_in_queue()
        elif token == b"\x1b":
            self._abort()
        elif token == b"\x03":
            if self._draft:
                self._draft.clear()
            else:
                self._abort()
        elif token == b"\x04" and not self._draft:
            self._exit_code = 0
        elif token == b"\x15":
            self._draft.clear()
        elif token == b"\x7f":
            self._draft[-1:] = [self._draft[-1][:-1]] if self._draft and len(self._draft[-1]) > 1 else []
        elif token == b"\n" or (not (len(token) == 1 and token < b" ") and not token.startswith(b"\x1b")):
            self._draft.append(_text(token))

    # --- turns -------------------------------------------------------------------------------------------------------

    def _enter(self) -> None:
        text = "".join(self._draft)
        if not text.strip():
            return
        self._note("entered", text=text)
        if self._mode == "busy" and self._script.queueing:
            self._put_in_queue()
            return
        if self._mode == "busy":
            self._abort()
        self._submit(self._take_draft())

    def _take_draft(self) -> str:
        text = "".join(self._draft)
        self._draft.clear()
        return text

    def _put_in_queue(self) -> None:
        text = self._take_draft()
        if text.strip():
            self._note("queued", text=text)
            self._queue.append(text)

    def _submit(self, text: str) -> None:
        self._note("submitted", text=text)
        first, *more = text.split("\n")
        self._say(f"{self._look.user}{first}", *(f"  {line}" for line in more), style=self._style("user"))
        for turn in self._script.turns:
            match = re.search(turn.when, text, re.DOTALL)
            if match:
                self._begin(turn, match)
                return
        self._begin(self._script.otherwise or Turn(say=(f"heard: {first}",)), None)

    def _begin(self, turn: Turn, match: re.Match[str] | None) -> None:
        self._turn, self._groups, self._said, self._has_asked = turn, match, 0, False
        self._due_s = time.monotonic() + turn.busy_ms / 1000
        self._change("busy")

    def _go_on(self) -> None:
        """The time of this step of the turn is over: ask, go on writing, say the next line, or be done."""
        if self._mode == "dialog":
            self._choose("")
            return
        turn = self._turn
        if turn is None:
            return
        if turn.dialog is not None and not self._has_asked and not self._said:
            self._has_asked = True
            self._ask(turn.dialog)
            return
        while self._said < len(turn.say):
            line = turn.say[self._said]
            text = self._groups.expand(line) if self._groups else line
            whole = (self._look.indent if self._said else self._look.agent) + text
            if self._script.stroke_ms and self._growing != whole:
                self._growing = whole[: len(self._growing) + _STROKE]
                self._due_s = time.monotonic() + self._script.stroke_ms / 1000
                if self._growing == whole:
                    self._note_when_drawn("said", text=text)
                return
            if not self._growing:
                self._note_when_drawn("said", text=text)
            self._growing = ""
            is_command = bool(self._look.command) and text.startswith(self._look.command)
            self._say(whole, style=self._bold if is_command else "")
            self._said += 1
            pause_ms = max(turn.line_ms, self._script.stroke_ms)
            if pause_ms and self._said < len(turn.say):
                self._due_s = time.monotonic() + pause_ms / 1000
                return
        self._finish()
        if turn.exit is not None:
            self._exit_code = turn.exit

    def _ask(self, dialog: Dialog) -> None:
        self._dialog, self._choice = dialog, 0
        self._due_s = time.monotonic() + dialog.close_ms / 1000
        self._change("dialog")
        self._note_when_drawn("asked", text=dialog.question)

    def _finish(self) -> None:
        self._turn = None
        self._change("prompt")
        if self._queue:
            self._submit(self._queue.popleft())

    def _abort(self) -> None:
        if self._mode == "busy":
            self._note("aborted")
            self._growing = ""
            self._say("■ Interrupted")
            self._finish()

    def _answer(self, token: bytes) -> None:
        dialog = self._dialog
        assert dialog is not None
        text = _text(token)
        if token in {b"\x1b[A", b"\x1bOA"}:
            self._choice = max(0, self._choice - 1)
        elif token in {b"\x1b[B", b"\x1bOB"}:
            self._choice = min(len(dialog.options) - 1, self._choice + 1)
        elif token == b"\r":
            self._choose(dialog.options[self._choice])
        elif text in dialog.keys:
            self._choose(dialog.options[dialog.keys[text]])
        elif text.isdigit() and 0 < int(text) <= len(dialog.options):
            self._choose(dialog.options[int(text) - 1])
        elif token == b"\x1b":
            self._choose("")

    def _choose(self, option: str) -> None:
        assert self._dialog is not None
        self._note("answered", option=option)
        said = self._look.answered.format(question=self._dialog.question, option=option or "Cancelled")
        self._say(said, *self._dialog.say.get(option, ()), style=self._style("answered"))
        self._dialog = None
        self._change("prompt" if self._turn is None else "busy")
        self._due_s = time.monotonic()

    # --- drawing -----------------------------------------------------------------------------------------------------

    def _say(self, *lines: str, style: str = "") -> None:
        self._shown.extend(lines)
        self._fresh.extend((line, style) for line in lines)

    def _style(self, part: str) -> str:
        return self._look.styles.get(part, "")

    @property
    def _bold(self) -> str:
        return f"1;{self._script.colour}" if self._script.colour else ""

    def _change(self, mode: str) -> None:
        self._mode = mode
        self._note("mode")
        if self._script.titles:
            self._write(f"\x1b]0;{self._look.titles[('prompt', 'busy', 'dialog').index(mode)]}\x07")

    def _footer(self, columns: int) -> list[tuple[str, str]]:
        """The rows below what was said, with their styles."""
        look = self._look
        gap = [] if look.roomy else [("", "")]
        if self._mode == "dialog":
            assert self._dialog is not None
            options = [
                (f"{look.pointer if index == self._choice else ' '} {index + 1}. {text}", "")
                for index, text in enumerate(self._dialog.options)
            ]
            return [*gap, (self._dialog.question, self._style("question")), *options, (look.hint, self._style("hint"))]
        rows = [(row, "") for row in _wrap(self._growing, columns, at_hyphens=False)] if self._growing else []
        rows += [("", "")] if rows else gap
        if self._mode == "busy":
            self._frames += 1
            spinner = f"{look.spinner[self._frames % len(look.spinner)]} " if look.spinner else ""
            rows += [(spinner + look.busy, self._style("busy")), *([("", "")] if look.roomy else [])]
        return [*rows, *((row, "") for row in self._composer(columns))]

    def _composer(self, columns: int) -> list[str]:
        look = self._look
        draft = "".join(self._shorten(part) for part in self._draft)
        if look.roomy:
            row, room = draft.replace("\n", " "), columns - len(look.prompt) - 1
            return [look.prompt + (row if len(row) <= room else row[:room] + "…")]
        first, *more = draft.split("\n")
        queued = [f"  queued: {text.splitlines()[0]}" for text in self._queue]
        frame = [look.frame] if look.frame else []
        rows = [look.prompt + first, *(_FOLDED + line for line in more)]
        return [*queued, *frame, *(piece for row in rows for piece in _fold(row, columns)), *frame]

    def _shorten(self, part: str) -> str:
        if 0 < self._script.placeholder_from <= len(part):
            return f"[Pasted text #{self._pastes} +{part.count(chr(10)) + 1} lines]"
        return part

    def _draw(self) -> None:
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
        drawn, self._to_note = self._to_note, []
        for event, fields in drawn:
            self._note(event, **fields)

    def _write(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(1, data) :]

    def _note_when_drawn(self, event: str, **fields: Any) -> None:
        """The time of the note is when a person could see it."""
        self._to_note.append((event, fields))

    def _note_size(self) -> None:
        self._note_when_drawn("size", columns=os.get_terminal_size(1).columns)

    def _note(self, event: str, **fields: Any) -> None:
        note = {"t": time.monotonic(), "event": event, "mode": self._mode, **fields}
        self._record.write(msgspec.json.encode(note).decode() + "\n")
        self._record.flush()


def _ignore(number: int, frame: FrameType | None) -> None:
    """A handler, so that the signal wakes us up."""


def _text(token: bytes) -> str:
    return token.decode("utf-8", "replace").replace("\r", "\n")


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


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripted_agent", description="A stand-in for an agent's CLI.")
    parser.add_argument("--script", help="JSON file: how it looks and behaves")
    parser.add_argument("--record", default=os.devnull, help="JSON lines: what it was given")
    options = parser.parse_args(arguments)
    script = Script()
    if options.script:
        with open(options.script, "rb") as file:
            script = msgspec.json.decode(file.read(), type=Script)
    with open(options.record, "a", encoding="utf-8") as record:
        return ScriptedAgent(script, record).run()


if __name__ == "__main__":
    sys.exit(main())
