"""What a page tells its reader to type, and what it says they will see.

A ```console block is typed line by line: `$ ` begins a command, the rest is what is printed. In what is printed `…` stands for
anything, and numbers, times and ids are compared as such. A block of ```sh is for the reader alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

_BLOCK = re.compile(r"^```console *(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_ID = re.compile(r"\b[0-9a-f]{8}\b")
_MASKS = ((re.compile(r"\\?…"), ".*"), (re.compile(r"\d+"), r"\\d+"))


@dataclass
class Step:
    terminal: str
    command: str
    printed: list[str] = field(default_factory=list)


def steps_of(page: Path, heading: str) -> list[Step]:
    """Those below a heading, up to the next of the same rank."""
    rank = heading.split(maxsplit=1)[0]
    text = page.read_text("utf-8")
    assert f"\n{heading}\n" in text, f"{page.name} has no {heading!r}"
    section = re.split(rf"^{rank} ", text.partition(f"\n{heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    steps: list[Step] = []
    for terminal, block in _BLOCK.findall(section):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append(Step(terminal, line[2:].partition("  #")[0].rstrip()))
            elif line.strip():
                steps[-1].printed.append(line.partition("  #")[0].rstrip())
    return steps


def pattern_of(line: str) -> re.Pattern[str]:
    escaped = re.escape(_ID.sub("=id=", line))
    for mask, stands_for in _MASKS:
        escaped = mask.sub(stands_for, escaped)
    return re.compile(re.sub(r"(\\ )+", r"\\s+", escaped).replace("=id=", "[0-9a-f]{8}"))


def missing(step: Step, printed: str) -> list[str]:
    """Lines that the page promises and that were not printed."""
    return [line for line in step.printed if not pattern_of(line).search(printed)]
