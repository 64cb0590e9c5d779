"""A program that looks like aider to whoever watches its terminal, and notes the moment of everything it says and is given.

    python bench/terminal_agent.py RECORD RECIPIENT

At each SIGUSR1 it writes an answer with one command in it and its prompt, in one write, as a CLI draws a frame. A line of the
record is `WHAT NUMBER NANOSECONDS` of the steady clock, which all processes of a machine share: `ready` with the process's
own number, then `written`, `pasted` (the end of the paste was read) and `taken` (Enter was).
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
import tty

PROMPT = b"> "
_PASTE_END = b"\x1b[201~"
_NUMBER = re.compile(rb"note (\d+)")


class Agent:
    def __init__(self, record: str, recipient: str) -> None:
        self._record = os.open(record, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        self._recipient = recipient.encode()
        self._said = 0
        self._draft = b""

    def run(self) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: self._say())
        tty.setraw(0)
        _write(b"\x1b[?2004hAider v0.86.2\r\n\r\n" + PROMPT)
        self._note("ready", os.getpid())
        while data := os.read(0, 65_536):
            self._take(data)

    def _say(self) -> None:
        self._said += 1
        frame = b"\r\x1b[K->relay:%b note %d\r\n\r\n" % (self._recipient, self._said) + PROMPT
        self._note("written", self._said)
        _write(frame)

    def _take(self, data: bytes) -> None:
        self._draft += data
        found = _NUMBER.search(self._draft)
        number = int(found[1]) if found else 0
        if _PASTE_END in data:
            self._note("pasted", number)
            _write(self._draft.replace(b"\x1b[200~", b"").replace(_PASTE_END, b"").replace(b"\n", b" "))
        if b"\r" in data.rpartition(_PASTE_END)[2]:
            self._note("taken", number)
            self._draft = b""
            _write(b"\r\n\r\n" + PROMPT)

    def _note(self, what: str, number: int) -> None:
        os.write(self._record, b"%b %d %d\n" % (what.encode(), number, time.monotonic_ns()))


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    Agent(*sys.argv[1:]).run()
