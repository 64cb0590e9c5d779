"""tmux's control mode, without a tmux: bytes in, events out, and command lines as it reads them.

The protocol is line by line. A command's answer stands between `%begin` and `%end` or `%error` with the same time,
number and flags; notifications come between answers, never inside. What a pane wrote is in `%output`, or, with flow
control, `%extended-output`; there, backslash and everything below space are three octal digits after a backslash.
"""

from __future__ import annotations

import re

from msgspec import Struct

MAX_LINE_BYTES = 8 * 1024 * 1024  # tmux sends far less; something that never ends a line is no tmux

_ESCAPED = re.compile(rb"\\([0-7]{3})")
_GUARD = re.compile(rb"%(begin|end|error) (\d+ \d+ \d+)")


class ControlBroken(Exception):  # noqa: N818 - named by the condition
    """Raised for what is not the control mode protocol; the connection is of no use any more."""


class Answer(Struct, frozen=True):
    """Lines that a command printed. `is_ours`: the command came from this connection, not from tmux itself."""

    lines: tuple[bytes, ...]
    is_error: bool
    is_ours: bool


class Output(Struct, frozen=True):
    pane: bytes
    data: bytes


class Paused(Struct, frozen=True):
    """tmux dropped what this pane wrote, because we did not read fast enough."""

    pane: bytes


class Continued(Struct, frozen=True):
    pane: bytes


class Subscribed(Struct, frozen=True):
    """The value of a subscription, at first and whenever it has changed."""

    name: bytes
    value: bytes


class Exited(Struct, frozen=True):
    """The client was told to go: session killed, server ended, or we fell too far behind. `reason` may be empty."""

    reason: bytes


class Notice(Struct, frozen=True):
    """Any other notification, and those of versions to come."""

    name: bytes
    rest: bytes


Event = Answer | Output | Paused | Continued | Subscribed | Exited | Notice


class ControlParser:
    def __init__(self) -> None:
        self._buffer = bytearray()
        self._guard: bytes | None = None
        self._lines: list[bytes] = []

    def feed(self, data: bytes) -> list[Event]:
        self._buffer += data
        cut = self._buffer.rfind(b"\n")
        if cut < 0:
            if len(self._buffer) > MAX_LINE_BYTES:
                raise ControlBroken("tmux sent a line without an end.")
            return []
        whole = bytes(self._buffer[:cut])
        del self._buffer[: cut + 1]
        events: list[Event] = []
        for line in whole.split(b"\n"):
            event = self._take(line)
            if event is not None:
                events.append(event)
        return events

    def _take(self, line: bytes) -> Event | None:
        if self._guard is not None:
            return self._take_inside(line)
        line = line.removesuffix(b"\r")
        if line.startswith(b"\x1bP1000p"):  # the opening of -CC, where somebody uses that
            line = line[7:]
        if not line.startswith(b"%"):
            if not line or line.startswith(b"\x1b\\"):
                return None
            raise ControlBroken(f"Not a line of tmux's control mode: {line[:80]!r}")
        guard = _GUARD.fullmatch(line)
        if guard is not None:
            if guard[1] != b"begin":
                raise ControlBroken(f"An answer ends that never began: {line[:80]!r}")
            self._guard = guard[2]
            return None
        return _parse_notification(line)

    def _take_inside(self, line: bytes) -> Event | None:
        guard = _GUARD.fullmatch(line)
        # A pane may show such a line itself; only the one with our own numbers ends the answer.
        if guard is None or guard[1] == b"begin" or guard[2] != self._guard:
            self._lines.append(line)
            return None
        lines, self._lines, self._guard = tuple(self._lines), [], None
        return Answer(lines, guard[1] == b"error", guard[2].endswith(b" 1"))


def _parse_notification(line: bytes) -> Event:
    name, _, rest = line[1:].partition(b" ")
    match name:
        case b"output":
            pane, _, data = rest.partition(b" ")
            return Output(pane, unescape_output(data))
        case b"extended-output":
            head, colon, data = rest.partition(b" : ")
            if not colon:  # nothing was written: the line ends with the colon, or with the space before it
                head, data = rest.removesuffix(b" :").rstrip(), b""
            return Output(head.partition(b" ")[0], unescape_output(data))
        case b"pause":
            return Paused(rest)
        case b"continue":
            return Continued(rest)
        case b"subscription-changed":
            head, _, value = rest.partition(b" : ")
            return Subscribed(head.partition(b" ")[0], value)
        case b"exit":
            return Exited(rest)
        case _:
            return Notice(name, rest)


def unescape_output(data: bytes) -> bytes:
    # The common ones first, by the faster way. No backslash is made by this, so nothing is taken for an escape twice.
    data = data.replace(rb"\015\012", b"\r\n").replace(rb"\033", b"\x1b")
    if b"\\" not in data:
        return data
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), data)


_PLAIN = re.compile(r"[A-Za-z0-9_./:%@$=,+-]+", re.ASCII)


def quote_word(word: str) -> str:
    """One word of a command line, whatever is in it. A newline would end the command, so it goes as an escape."""
    if _PLAIN.fullmatch(word) and not word.startswith(("%", "$")):
        return word
    if "\0" in word:
        raise ValueError("tmux takes no NUL character.")
    quoted = "".join(_IN_QUOTES.get(character, character) for character in word)
    return f'"{quoted}"'


_IN_QUOTES = {'"': '\\"', "\\": "\\\\", "$": "\\$", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e", "~": "\\~"}


def command_line(*commands: tuple[str, ...]) -> bytes:
    """Commands to be run one after the other with nothing between; after one that fails, the rest is not run."""
    line = " ; ".join(" ".join(quote_word(word) for word in command) for command in commands)
    return line.encode("utf-8", "surrogateescape") + b"\n"


def escape_argument(argument: str) -> str:
    """For tmux's own argv: an argument that ends with a semicolon would end the command there."""
    return argument[:-1] + "\\;" if argument.endswith(";") else argument
