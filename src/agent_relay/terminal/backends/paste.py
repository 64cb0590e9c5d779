"""A text on its way into a terminal. Nothing in it may end the paste early, press a key or steer the terminal.

Callers have cleaned the text already; this is the last place before the program, so it is done again.
"""

from __future__ import annotations

import re

START = b"\x1b[200~"
END = b"\x1b[201~"

# C0 and C1 controls but newline and tab, and halves of surrogate pairs, which no terminal can be sent.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def clean_paste(text: str) -> str:
    """Newline and tab stay; every other control character becomes U+FFFD, so that it is seen to have been there."""
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def encode_paste(text: str, *, bracketed: bool) -> bytes:
    """As a terminal sends it: line breaks as CR, the whole between the marks where the program asked for them."""
    body = clean_paste(text).replace("\n", "\r").encode("utf-8")
    return START + body + END if bracketed else body
