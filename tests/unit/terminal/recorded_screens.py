"""The recordings under `tests/data/screens`: where they are, and what is in them.

`<cli>/<case>/terminal.cast` is every byte of a terminal, `screens.txt` what it showed at each step, `<cli>/tmux/` what
`tmux capture-pane` printed, `<cli>/home/` the session files the CLI kept, at their path below its home. A CLI's name may
carry a variant (`codex-noalt`). The recordings of goose and generic were written by hand. Paths of the machine they
were made on have been replaced by others of the same length.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from agent_relay.terminal.profiles.profile import Profile, load_profiles
from agent_relay.terminal.recordings.asciicast import read_cast

SCREENS = Path(__file__).parents[2] / "data" / "screens"
CASES: dict[str, str] = json.loads((SCREENS / "cases.json").read_text("utf-8"))
EXPECTED: dict[str, list[list[str]]] = json.loads((SCREENS / "expected.json").read_text("utf-8"))
ANSWER = ["Alice", "ACK"]  # what every agent answers to the message injected after its case


def recordings() -> list[str]:
    """`claude/a`, …"""
    return sorted(str(path.parent.relative_to(SCREENS)) for path in SCREENS.glob("*/*/terminal.cast"))


def cast_of(recording: str) -> Path:
    return SCREENS / recording / "terminal.cast"


def profile_of(recording: str) -> Profile:
    return load_profiles()[recording.split("/", maxsplit=1)[0].split("-", maxsplit=1)[0]]


def steps_of(recording: str) -> list[tuple[str, str]]:
    """(name, text) of each step in `screens.txt`."""
    text = (SCREENS / recording / "screens.txt").read_text("utf-8")
    parts = re.split(r"^##### (.*)\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True)) if len(parts) > 1 else [("end", text)]


def captures_of(variant: str) -> list[Path]:
    """tmux's captures of one session, in the order they were taken: busy before done."""
    files = (SCREENS / variant / "tmux").glob("[0-9]*.txt")
    return sorted(files, key=lambda file: (file.name[:2], not file.name.endswith(".busy.txt")))


def sessions_of(cli: str) -> list[Path]:
    return sorted((SCREENS / cli / "home").rglob("*.jsonl"))


def output_of(recording: str) -> bytes:
    """All output until the CLI is asked to end."""
    return b"".join(event.data.encode() for event in read_cast(cast_of(recording)).events if event.kind == "o")
