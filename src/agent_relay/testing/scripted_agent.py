"""A stand-in for an agent's CLI: a prompt, a busy phase, dialogs, an alternate screen, slow redraws; no model, no network.

    python -m agent_relay.testing.scripted_agent --script FILE --record FILE

The script is a JSON object (see `Script`): how it looks and behaves, and what it says to which input. The record has a
JSON object a line: every byte it was given with the mode it was in (`prompt`, `busy`, `dialog`), and what came of it
(`submitted`, `queued`, `aborted`, `answered`). A test reads there what really arrived.
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import select
import shutil
import signal
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any, TextIO

import msgspec

PROMPT = "› "
BUSY = "• Working (esc to interrupt)"
IDLE_TITLE, BUSY_TITLE, DIALOG_TITLE = "◇ Ready", "✦ Working…", "✋ Action Required"
_TOKEN = re.compile(rb"\x1b\[200~|\x1b\[201~|\x1b\[[0-9;?]*[@-~]|\x1bO[A-Z]|[\xc0-\xf7][\x80-\xbf]+|.", re.DOTALL)
_BEGUN = re.compile(rb"(?:\x1b(?:\[[0-9;?]*|O)?|[\xc0-\xf7][\x80-\xbf]*)$")
_ESCAPE_S = 0.05  # an Escape that nothing follows is the key


class Dialog(msgspec.Struct, frozen=True):
    question: str = "Do you want to proceed?"
    options: tuple[str, ...] = ("Yes", "No")
    keys: dict[str, int] = msgspec.field(default_factory=lambda: {"y": 0, "n": 1})  # a letter answers at once, as in real ones
    say: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)  # by the option chosen; "" when cancelled


class Turn(msgspec.Struct, frozen=True):
    """What happens when a submitted text matches `when` (a regular expression, searched for)."""

    when: str = ""
    busy_ms: int = 100
    say: tuple[str, ...] = ()  # `\\1` and the like stand for groups of `when`
    line_ms: int = 0  # between two lines of the answer
    dialog: Dialog | None = None  # asked before the answer
    exit: int | None = None


class Script(msgspec.Struct, frozen=True):
    turns: tuple[Turn, ...] = ()  # the first that matches; without one, the text is echoed as `heard: …`
    start: Turn | None = None
    alternate: bool = False
    queueing: bool = True  # Enter while busy queues; else it aborts the answer, and Tab queues
    bracketed: bool = True
    titles: bool = True
    redraw_ms: int = 0  # a slow redraw: the screen is cleared, and drawn after this time
    placeholder_from: int = 0  # pastes of so many characters are shown as a placeholder; 0: never
    single_write_limit: int = 0  # an Enter that comes in one read with more text than this is taken as a line break


class ScriptedAgent:
    def __init__(self, script: Script, record: TextIO) -> None:
        self._script = script
        self._record = record
        self._mode = "prompt"
        self._draft: list[str] = []
        self._shown: deque[str] = deque(maxlen=5000)
        self._fresh: list[str] = []  # said and not drawn yet
        self._drawn_rows = 0
        self._queue: deque[str] = deque()
        self._turn: Turn | None = None
        self._groups: re.Match[str] | None = None
        self._said = 0
        self._due_s = 0.0
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
            self._note("started")
            if self._script.start is not None:
                self._begin(self._script.start, None)
            self._draw()
            while self._exit_code is None:
                self._serve()
            return self._exit_code
        finally:
            self._write(("\x1b[?2004l" if self._script.bracketed else "") + ("\x1b[?1049l" if self._script.alternate else "\r\n"))
            termios.tcsetattr(0, termios.TCSANOW, saved)
            self._note("ended")

    def _serve(self) -> None:
        waits_s = [max(0.0, self._due_s - time.monotonic())] if self._mode == "busy" else []
        waits_s += [_ESCAPE_S] if self._kept else []
        ready, _, _ = select.select([0, self._woken], [], [], min(waits_s, default=None))
        if self._woken in ready:
            os.read(self._woken, 512)
        if 0 in ready:
            data = os.read(0, 65_536)
            if not data:
                self._exit_code = 129
                return
            self._take(data)
        elif self._kept and not ready:
            kept, self._kept = self._kept, b""
            self._token(kept, alone=True)
        if self._mode == "busy" and time.monotonic() >= self._due_s:
            self._go_on()
        self._draw()

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
        if not "".join(self._draft).strip():
            return
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
        self._say(f"> {first}", *(f"  {line}" for line in more))
        for turn in self._script.turns:
            match = re.search(turn.when, text, re.DOTALL)
            if match:
                self._begin(turn, match)
                return
        self._begin(Turn(say=(f"heard: {first}",)), None)

    def _begin(self, turn: Turn, match: re.Match[str] | None) -> None:
        self._turn, self._groups, self._said = turn, match, 0
        self._due_s = time.monotonic() + turn.busy_ms / 1000
        self._change("busy")

    def _go_on(self) -> None:
        """The time of this step of the turn is over: ask, say the next line, or be done."""
        turn = self._turn
        if turn is None:
            return
        if turn.dialog is not None and self._dialog is None and not self._said:
            self._dialog, self._choice = turn.dialog, 0
            self._change("dialog")
            return
        while self._said < len(turn.say):
            line = turn.say[self._said]
            self._say("• " * (self._said == 0) + (self._groups.expand(line) if self._groups else line))
            self._said += 1
            if turn.line_ms and self._said < len(turn.say):
                self._due_s = time.monotonic() + turn.line_ms / 1000
                return
        self._dialog = None
        self._finish()
        if turn.exit is not None:
            self._exit_code = turn.exit

    def _finish(self) -> None:
        self._turn = None
        self._change("prompt")
        if self._queue:
            self._submit(self._queue.popleft())

    def _abort(self) -> None:
        if self._mode == "busy":
            self._note("aborted")
            self._say("■ Interrupted")
            self._dialog = None
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
        self._say(f"✔ {option or 'Cancelled'}", *self._dialog.say.get(option, ()))
        self._change("busy")
        self._due_s = time.monotonic()

    # --- drawing -----------------------------------------------------------------------------------------------------

    def _say(self, *lines: str) -> None:
        self._shown.extend(lines)
        self._fresh.extend(lines)

    def _change(self, mode: str) -> None:
        self._mode = mode
        self._note("mode")
        if self._script.titles:
            title = {"prompt": IDLE_TITLE, "busy": BUSY_TITLE, "dialog": DIALOG_TITLE}[mode]
            self._write(f"\x1b]0;{title}\x07")

    def _footer(self) -> list[str]:
        rows = [""]
        if self._mode == "dialog":
            assert self._dialog is not None
            options = [
                f"{'❯' if index == self._choice else ' '} {index + 1}. {o}" for index, o in enumerate(self._dialog.options)
            ]
            return [*rows, self._dialog.question, *options, "Esc to cancel"]
        if self._mode == "busy":
            rows.append(BUSY)
        rows += [f"  queued: {text.splitlines()[0]}" for text in self._queue]
        draft = "".join(self._shorten(part) for part in self._draft).split("\n")
        return [*rows, PROMPT + draft[0], *(f"  {line}" for line in draft[1:])]

    def _shorten(self, part: str) -> str:
        if 0 < self._script.placeholder_from <= len(part):
            return f"[Pasted text #{self._pastes} +{part.count(chr(10)) + 1} lines]"
        return part

    def _draw(self) -> None:
        columns, rows = shutil.get_terminal_size()
        footer = [row[: columns - 1] for row in self._footer()][-(rows - 1) :]
        if self._script.alternate:
            wrapped = [piece for line in list(self._shown)[-rows:] for piece in _wrap(line, columns - 1)]
            body = wrapped[-(rows - len(footer)) :]
            start, text = "\x1b[H\x1b[J", "\r\n".join([*body, *footer])
        else:
            start = "\r" + (f"\x1b[{self._drawn_rows - 1}A" if self._drawn_rows > 1 else "") + "\x1b[J"
            text = "\r\n".join([*self._fresh, *footer])
        self._fresh.clear()
        self._drawn_rows = len(footer)
        self._write(start)
        if self._script.redraw_ms:
            time.sleep(self._script.redraw_ms / 1000)  # it looks empty meanwhile, as a slow CLI does
        self._write(text)

    def _write(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(1, data) :]

    def _note(self, event: str, **fields: Any) -> None:
        self._record.write(msgspec.json.encode({"event": event, "mode": self._mode, **fields}).decode() + "\n")
        self._record.flush()


def _ignore(number: int, frame: FrameType | None) -> None:
    """A handler, so that the signal wakes us up."""


def _text(token: bytes) -> str:
    return token.decode("utf-8", "replace").replace("\r", "\n")


def _wrap(line: str, columns: int) -> Iterator[str]:
    for start in range(0, max(1, len(line)), columns):
        yield line[start : start + columns]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripted_agent", description="A stand-in for an agent's CLI, for tests.")
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
