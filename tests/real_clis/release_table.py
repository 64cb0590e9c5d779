"""The table of the tried releases in docs/real-clis.md, made from what the runs found.

`python -m tests.real_clis.release_table` writes it anew.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from agent_relay.terminal.profiles.profile import load_profiles
from agent_relay.terminal.profiles.tried_releases import (
    ASKS_NOTHING,
    FILE,
    SCENES,
    YES,
    Tried,
    TriedRelease,
    decode_tried,
    newest_first,
)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "real-clis.md"
DATA = ROOT / "src" / "agent_relay" / "terminal" / "profiles" / FILE
NOT_PLAYED = "not run"
_BLOCK = re.compile(r"(<!-- generated: releases -->\n).*?(<!-- end of releases -->)", re.DOTALL)


def render(tried: Tried) -> str:
    head = ["CLI", "tried on", "way in", "read after", *SCENES]
    rows = [_row(head), "|---" * len(head) + "|\n"]
    notes: list[str] = []
    for cli, releases in sorted(tried.items()):
        profile = load_profiles().get(cli)
        title = cli if profile is None else profile.title
        for version in newest_first(releases):
            found = releases[version]
            rows.append(_row([f"{title} {version}", found.date, *_cells(found, notes, f"{title} {version}")]))
    listed = "".join(f"{number}. {note}\n" for number, note in enumerate(notes, 1))
    return "".join(rows) + (f"\n{listed}" if notes else "")


def _cells(found: TriedRelease, notes: list[str], what: str) -> list[str]:
    if found.reason:
        notes.append(f"{what}: {found.reason}")
        return ["", "", f"{NOT_PLAYED} ({len(notes)})", *[NOT_PLAYED] * (len(SCENES) - 1)]
    took = f"{found.took_ms / 1000:.1f} s" if found.took_ms else ""
    cells = [found.way, took]
    for scene in SCENES:
        said = found.scenes.get(scene, NOT_PLAYED)
        if said not in (YES, ASKS_NOTHING, NOT_PLAYED):
            notes.append(f"{what}, {scene}: {said}")
            said = f"no ({len(notes)})"
        cells.append(said)
    return cells


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |\n"


def write(tried: Tried, page: Path = PAGE) -> None:
    text = page.read_text("utf-8")
    if not _BLOCK.search(text):
        raise ValueError(f"{page} has no place for the table.")
    page.write_text(_BLOCK.sub(lambda match: match[1] + render(tried) + match[2], text), "utf-8")


if __name__ == "__main__":
    write(decode_tried(DATA.read_bytes()))
    sys.exit(0)
