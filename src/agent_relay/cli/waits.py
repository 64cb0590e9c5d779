"""Waits of `send`, how long and for what: `--wait` for the delivery, `--reply` for an answer."""

from __future__ import annotations

import sys

from agent_relay.protocol.durations import parse_duration_ms

DEFAULT = "30s"
_OPTIONS = frozenset({"--wait", "--reply", "--await"})


def spell_out_waits(words: list[str]) -> list[str]:
    """`--wait` alone is `--wait=30s`: the command-line library knows no option whose value may be left out."""
    spelled: list[str] = []
    for at, word in enumerate(words):
        if word == "--":
            return spelled + words[at:]
        is_alone = word in _OPTIONS and not _is_duration(words[at + 1] if at + 1 < len(words) else "")
        spelled.append(f"{word}={DEFAULT}" if is_alone else word)
    return spelled


def _is_duration(text: str) -> bool:
    try:
        return parse_duration_ms(text) > 0
    except ValueError:
        return False


def note_old_name(old: str, new: str) -> None:
    """On standard error, so that no script's output changes."""
    sys.stderr.write(f"note: {old} is now called {new}; the old name still works.\n")
