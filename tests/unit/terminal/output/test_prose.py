"""Which lines are the author's own; the parser's tests say the same from outside, these name the finer points."""

from __future__ import annotations

import pytest

from agent_relay.terminal.output.prose import Prose


def owned(text: str) -> list[str]:
    prose = Prose()
    return [line for line in text.split("\n") if prose.owns(line) and line.strip()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n```\nb\n```\nc", ["a", "c"]),
        ("```py\nb\n```\nc", ["c"]),
        ("````\n```\nb\n````\nc", ["c"]),
        ("~~~\n```\nb\n~~~\nc", ["c"]),
        ("```a`b\nc", ["```a`b", "c"]),
        ("a\n\n    b\nc", ["a", "c"]),
        ("- a\n    b\n    - c", ["- a", "    b", "    - c"]),
        ("- a\n\ntext\n\n    code", ["- a", "text"]),
        ("> a\nb", ["b"]),
        ("diff --git a/x b/x\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nafter", ["after"]),
        ("<<<<<<< HEAD\na\n=======\nb\n>>>>>>> branch\nc", ["c"]),
    ],
)
def test_shown_lines_are_left_out(text: str, expected: list[str]) -> None:
    assert owned(text) == expected
