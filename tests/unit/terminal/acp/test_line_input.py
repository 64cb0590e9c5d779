"""Keys → lines: as a person types them, in pieces of any size."""

from __future__ import annotations

import pytest

from agent_relay.terminal.acp.line_input import Key, Line, LineInput, Typed

CASES: list[tuple[str, list[Typed], str]] = [
    ("hello\r", [Line("hello")], ""),
    ("hällo 漢\n", [Line("hällo 漢")], ""),
    ("ab\x7fc\r", [Line("ac")], ""),
    ("one two\x17", [], "one "),
    ("gone\x15kept", [], "kept"),
    ("\r \r", [], ""),
    ("draft\x03", [Key.CANCEL], ""),
    ("\x04", [Key.END], ""),
    ("not empty\x04", [], "not empty"),
    ("\x1b[Aup\x1bOB\x1bx\r", [Line("up")], ""),
    ("\x1b[200~a\r\x03b\x1b[201~\r", [Line("a\nb")], ""),
    ("\x1b[200~not over\r", [], "not over\n"),
]


@pytest.mark.parametrize(("keys", "expected", "draft"), CASES)
@pytest.mark.parametrize("size", [1, 2, 1_000])
def test_keys_make_lines(keys: str, expected: list[Typed], draft: str, size: int) -> None:
    line, data, found = LineInput(), keys.encode(), list[Typed]()
    for start in range(0, len(data), size):
        found += line.feed(data[start : start + size])
    assert found == expected
    assert line.draft == draft
