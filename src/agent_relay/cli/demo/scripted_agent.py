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
import time
import tty
from types import FrameType
from typing import Any, TextIO

import msgspec

from agent_relay.cli.demo.agent_screen import AgentScreen, Scene
from agent_relay.cli.demo.agent_script import LOOKS, Dialog, Script, Turn

_TOKEN = re.compile(rb"\x1b\[200~|\x1b\[201~|\x1b\[[0-9;?]*[@-~]|\x1bO[A-Z]|[\xc0-\xf7][\x80-\xbf]+|.", re.DOTALL)
_BEGUN = re.compile(rb"(?:\x1b(?:\[[0-9;?]*|O)?|[\xc0-\xf7][\x80-\xbf]*)$")
_ESCAPE_S = 0.05  # an Escape that nothing follows is the key
_FRAME_S = 0.15  # of a spinner
_STROKE = 4  # characters at a time
_HUNG_UP = 129


class ScriptedAgent:
    """The program in its terminal, from the first row to its exit status."""

    def __init__(self, script: Script, record: TextIO) -> None:
        self._script = script
        self._look = LOOKS[script.look]
        self._record = record
        self._scene = Scene()
        self._screen = AgentScreen(script, self._scene)
        self._to_note: list[tuple[str, dict[str, Any]]] = []  # once it is drawn
        self._turn: Turn | None = None
        self._groups: re.Match[str] | None = None
        self._said = 0
        self._has_asked = False
        self._due_s = 0.0  # when the step of a turn is over, or a dialog closes by itself
        self._paste: list[str] | None = None
        self._kept = b""
        self._exit_code: int | None = None
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
            self._screen.open()
            if self._script.banner:
                self._screen.say(self._script.banner, style=self._screen.bold)
            if self._script.start is not None:
                self._begin(self._script.start, None)
            self._note_size()
            self._draw()
            self._note("started")
            while self._exit_code is None:
                self._serve()
            return self._exit_code
        finally:
            self._screen.close()
            termios.tcsetattr(0, termios.TCSANOW, saved)
            self._note("ended")

    def _serve(self) -> None:
        waits_s = [max(0.0, self._due_s - time.monotonic())] if self._is_timed else []
        waits_s += [_FRAME_S] if self._scene.mode == "busy" and self._look.spinner else []
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
        return self._scene.mode == "busy" or (self._scene.dialog is not None and self._scene.dialog.close_ms > 0)

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
        if self._scene.mode == "dialog":
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
        self._scene.pastes += 1
        self._note("pasted", text=text)
        self._scene.draft.append(text)
        self._note_when_drawn("shown", text="".join(self._scene.draft))
        dialog = self._script.at_paste.get(str(self._scene.pastes))
        if dialog is not None:
            self._ask(dialog)

    def _key(self, token: bytes, *, alone: bool) -> None:
        if token == b"\r" and not alone:
            self._scene.draft.append("\n")
        elif token == b"\r":
            self._enter()
        elif token == b"\t" and self._scene.mode == "busy":
            self._put_in_queue()
        elif token == b"\x1b":
            self._abort()
        elif token == b"\x03":
            if self._scene.draft:
                self._scene.draft.clear()
            else:
                self._abort()
        elif token == b"\x04" and not self._scene.draft:
            self._exit_code = 0
        elif token == b"\x15":
            self._scene.draft.clear()
        elif token == b"\x7f":
            self._scene.draft[-1:] = [self._scene.draft[-1][:-1]] if self._scene.draft and len(self._scene.draft[-1]) > 1 else []
        elif token == b"\n" or (not (len(token) == 1 and token < b" ") and not token.startswith(b"\x1b")):
            self._scene.draft.append(_text(token))

    # --- turns -------------------------------------------------------------------------------------------------------

    def _enter(self) -> None:
        text = "".join(self._scene.draft)
        if not text.strip():
            return
        self._note("entered", text=text)
        if self._scene.mode == "busy" and self._script.queueing:
            self._put_in_queue()
            return
        if self._scene.mode == "busy":
            self._abort()
        self._submit(self._take_draft())

    def _take_draft(self) -> str:
        text = "".join(self._scene.draft)
        self._scene.draft.clear()
        return text

    def _put_in_queue(self) -> None:
        text = self._take_draft()
        if text.strip():
            self._note("queued", text=text)
            self._scene.queue.append(text)

    def _submit(self, text: str) -> None:
        self._note("submitted", text=text)
        first, *more = text.split("\n")
        self._screen.say(f"{self._look.user}{first}", *(f"  {line}" for line in more), style=self._screen.style("user"))
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
        if self._scene.mode == "dialog":
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
            if self._script.stroke_ms and self._scene.growing != whole:
                self._scene.growing = whole[: len(self._scene.growing) + _STROKE]
                self._due_s = time.monotonic() + self._script.stroke_ms / 1000
                if self._scene.growing == whole:
                    self._note_when_drawn("said", text=text)
                return
            if not self._scene.growing:
                self._note_when_drawn("said", text=text)
            self._scene.growing = ""
            is_command = bool(self._look.command) and text.startswith(self._look.command)
            self._screen.say(whole, style=self._screen.bold if is_command else "")
            self._said += 1
            pause_ms = max(turn.line_ms, self._script.stroke_ms)
            if pause_ms and self._said < len(turn.say):
                self._due_s = time.monotonic() + pause_ms / 1000
                return
        self._finish()
        if turn.exit is not None:
            self._exit_code = turn.exit

    def _ask(self, dialog: Dialog) -> None:
        self._scene.dialog, self._scene.choice = dialog, 0
        self._due_s = time.monotonic() + dialog.close_ms / 1000
        self._change("dialog")
        self._note_when_drawn("asked", text=dialog.question)

    def _finish(self) -> None:
        self._turn = None
        self._change("prompt")
        if self._scene.queue:
            self._submit(self._scene.queue.popleft())

    def _abort(self) -> None:
        if self._scene.mode == "busy":
            self._note("aborted")
            self._scene.growing = ""
            self._screen.say("■ Interrupted")
            self._finish()

    def _answer(self, token: bytes) -> None:
        dialog = self._scene.dialog
        assert dialog is not None
        text = _text(token)
        if token in {b"\x1b[A", b"\x1bOA"}:
            self._scene.choice = max(0, self._scene.choice - 1)
        elif token in {b"\x1b[B", b"\x1bOB"}:
            self._scene.choice = min(len(dialog.options) - 1, self._scene.choice + 1)
        elif token == b"\r":
            self._choose(dialog.options[self._scene.choice])
        elif text in dialog.keys:
            self._choose(dialog.options[dialog.keys[text]])
        elif text.isdigit() and 0 < int(text) <= len(dialog.options):
            self._choose(dialog.options[int(text) - 1])
        elif token == b"\x1b":
            self._choose("")

    def _choose(self, option: str) -> None:
        assert self._scene.dialog is not None
        self._note("answered", option=option)
        said = self._look.answered.format(question=self._scene.dialog.question, option=option or "Cancelled")
        self._screen.say(said, *self._scene.dialog.say.get(option, ()), style=self._screen.style("answered"))
        self._scene.dialog = None
        self._change("prompt" if self._turn is None else "busy")
        self._due_s = time.monotonic()

    # --- the record ------------------------------------------------------------------------------------------------------

    def _change(self, mode: str) -> None:
        self._scene.mode = mode
        self._note("mode")
        self._screen.set_title()

    def _draw(self) -> None:
        self._screen.draw()
        drawn, self._to_note = self._to_note, []
        for event, fields in drawn:
            self._note(event, **fields)

    def _note_when_drawn(self, event: str, **fields: Any) -> None:
        """The time of the note is when a person could see it."""
        self._to_note.append((event, fields))

    def _note_size(self) -> None:
        self._note_when_drawn("size", columns=os.get_terminal_size(1).columns)

    def _note(self, event: str, **fields: Any) -> None:
        note = {"t": time.monotonic(), "event": event, "mode": self._scene.mode, **fields}
        self._record.write(msgspec.json.encode(note).decode() + "\n")
        self._record.flush()


def _ignore(number: int, frame: FrameType | None) -> None:
    """A handler, so that the signal wakes us up."""


def _text(token: bytes) -> str:
    return token.decode("utf-8", "replace").replace("\r", "\n")


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
