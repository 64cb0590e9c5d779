"""Input of a terminal, as bytes: keys and pastes that we send, and what a person's terminal sends us.

Nothing in a pasted text may end the paste early, press a key or steer the terminal. Callers have cleaned the text already; this
is the last place before the program, so it is done again.

A person's terminal also answers questions of the program, reports the mouse and the focus, all over the same line. Only keys and
pastes count as typing. Sequences come cut anywhere; what may be the beginning of one waits for the rest, or for
`settle`, because Escape alone is a key too.
"""

from __future__ import annotations

import re

from agent_relay.terminal.backends.terminal import Key

_SAID_BY_TERMINAL = re.compile(
    rb"\x1b\[[?>=][0-9;:]*[ -/]*[a-zA-Z]"  # device attributes, modes, keyboard flags
    rb"|\x1b\[[0-9]+;[0-9]+R"  # where the cursor is. F3 with modifiers looks the same; one missed key is the lesser harm
    rb"|\x1b\[[0-9;]*[nt]|\x1b\[[0-9;]*\$y"  # status, window size, modes
    rb"|\x1b\[[IO]"  # focus
    rb"|\x1b\[<[0-9;]*[Mm]|\x1b\[M[\x00-\xff]{3}|\x1b\[[0-9;]+M"  # mouse
    rb"|\x1b[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)",  # strings: colours, capabilities, versions
)
_BEGUN = re.compile(rb"\x1b(?:\[[0-9;:?<>=$ ]*|\[M[\x00-\xff]{0,2}|[\]P_^X][^\x07\x1b]*\x1b?)?$")
_MAX_KEPT_BYTES = 65_536

_BYTES = {
    Key.ENTER: b"\r",
    Key.TAB: b"\t",
    Key.ESCAPE: b"\x1b",
    Key.SPACE: b" ",
    Key.BACKSPACE: b"\x7f",
    Key.CTRL_C: b"\x03",
    Key.CTRL_D: b"\x04",
    Key.CTRL_U: b"\x15",
}
_ARROWS = {Key.UP: b"A", Key.DOWN: b"B", Key.RIGHT: b"C", Key.LEFT: b"D"}

PASTE_START = b"\x1b[200~"
PASTE_END = b"\x1b[201~"

# C0 and C1 controls but newline and tab, and halves of surrogate pairs, which no terminal can be sent.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def encode_key(key: Key, *, application_cursor: bool) -> bytes:
    if key in _ARROWS:
        return (b"\x1bO" if application_cursor else b"\x1b[") + _ARROWS[key]
    return _BYTES[key]


def clean_paste(text: str) -> str:
    """Newline and tab stay; every other control character becomes U+FFFD, so that it is seen to have been there."""
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def encode_paste(text: str, *, bracketed: bool) -> bytes:
    """As a terminal sends it: line breaks as CR, the whole between the marks where the program asked for them."""
    body = clean_paste(text).replace("\n", "\r").encode("utf-8")
    return PASTE_START + body + PASTE_END if bracketed else body


class TypingDetector:
    def __init__(self) -> None:
        self._kept = b""

    def feed(self, data: bytes) -> bool:
        """Whether a person typed something of what is known by now."""
        rest = _SAID_BY_TERMINAL.sub(b"", self._kept + data)
        begun = _BEGUN.search(rest)
        self._kept = b""
        if begun and len(rest) - begun.start() <= _MAX_KEPT_BYTES:
            rest, self._kept = rest[: begun.start()], rest[begun.start() :]
        return bool(rest)

    @property
    def is_unsure(self) -> bool:
        """The beginning of a sequence is waiting for its rest; call `settle` when none came in a moment."""
        return bool(self._kept)

    def settle(self) -> bool:
        """Nothing more came: what waited was keys, Escape for one."""
        kept, self._kept = self._kept, b""
        return bool(kept)
