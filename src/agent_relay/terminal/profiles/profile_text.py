"""A profile of somebody's own as a file: what was proposed, in the format that all profiles have."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_BULLETS = "●⏺◆◇○□■⁃→➜›»"
_DRAFT = re.compile(r"\(\?:\\s\(\?P<draft>.{0,20}$")


def write_profile(name: str, program: str, prompt: str, busy: Sequence[str], dialogs: Sequence[str] = ()) -> str:
    """`prompt`: an expression for the row."""
    typed = _DRAFT.sub("", prompt)
    user = [f"{typed} (?=\\S)"] if typed != prompt else []
    lines = [
        f"# Made by `agent-relay profile new`. Change what is wrong, then: agent-relay profile test {name}",
        f"name = {_text(name)}",
        f"title = {_text(name)}",
        f"executables = {_texts([program] if program else [])}",
        "",
        "[rows]",
        f"user = {_texts(user)}",
        'default = "agent"',
        f"bullets = {_text(_BULLETS)}",
        "",
        "[composer]",
        f"row = {_text(prompt)}",
        "is_shown_while_busy = false",
        "is_at_cursor = true",
        "",
        "[busy]",
        f"rows = {_texts(busy)}",
        "",
        "# Rows that show while a dialog is open: nothing is typed then.",
        "[asking]",
        f"rows = {_texts(dialogs)}",
        "",
        "[submit]",
        'when_busy = "wait"',
    ]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """A text of TOML; JSON spells it the same way."""
    return json.dumps(value, ensure_ascii=False)


def _texts(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"
