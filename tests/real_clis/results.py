"""The table of what was proven with which CLI, for docs/real-clis.md.

It is written by a whole run (`make test-real-clis`) and says nothing that changes from run to run unless the facts did: no
times, no dates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

CAPABILITIES = {
    "test_message_in": "a message reaches the model, once",
    "test_long_message_in": "one of 60 lines too, word for word",
    "test_read_evidence": "known to be read by",
    "test_answer_out": "an answer on one line arrives, once",
    "test_fenced_answer_out": "an answer of several lines",
    "test_open_dialog": "an open permission dialog is left alone, messages wait and come in order",
    "test_half_written_draft": "a half-written draft is left alone, the message comes after it",
    "test_while_it_works": "sent while it works: the answer is not cut off, the messages come after it, in order",
    "test_claude_and_codex_talk": "claude and codex talk to each other, each message once",
}
FAILED, NO_TEST = "**no**", "–"
_BLOCK = re.compile(r"(<!-- generated: real-clis -->\n).*?(<!-- end of real-clis -->)", re.DOTALL)
_TEST = re.compile(r"::(?P<test>\w+)(?:\[(?P<cli>[\w-]+)\])?$")


class Result(NamedTuple):
    has_passed: bool
    note: str = ""  # what a test found out, beyond yes and no

    @property
    def cell(self) -> str:
        return (self.note or "yes") if self.has_passed else FAILED


def describe(test: str) -> str:
    return CAPABILITIES.get(test) or test.removeprefix("test_").replace("_", " ")


def render(results: Mapping[str, Result], versions: Mapping[str, str]) -> str:
    """`results` by the test's id: a row a test, in the order of the table above and then in that of the run."""
    cells: dict[str, dict[str, str]] = {}
    for test_id, result in results.items():
        match = _TEST.search(test_id)
        assert match is not None, test_id
        cells.setdefault(match["test"], {})[match["cli"] or ""] = result.cell
    tests = [test for test in (*CAPABILITIES, *(test for test in cells if test not in CAPABILITIES)) if test in cells]
    rows = [[describe(test), *(cells[test].get(name, NO_TEST) for name in versions)] for test in tests if "" not in cells[test]]
    head = ["", *(f"{name} {version}" for name, version in versions.items())]
    lines = ["| " + " | ".join(row) + " |" for row in ([head, *rows] if rows else [])]
    lines[1:1] = ["|---" * len(head) + "|"] if rows else []
    others = [f"- {describe(test)}: {cells[test]['']}" for test in tests if "" in cells[test]]
    return "\n".join([*lines, *([""] if rows and others else []), *others]) + "\n"


def write(page: Path, table: str) -> None:
    text = page.read_text("utf-8")
    if not _BLOCK.search(text):
        raise ValueError(f"{page} has no place for the table.")
    page.write_text(_BLOCK.sub(lambda match: match[1] + table + match[2], text), "utf-8")
