"""Expressions of other people's files: what may take long is refused, what people write is not."""

from __future__ import annotations

import re
import time

import pytest

from agent_relay.terminal.profiles.pattern_cost import Costly, check_cost

SLOW = [
    r"(a+)+$", r"(a|a)*b", r"(a?a)*x", r"(a*)*", r"(?:a{0,200}){0,200}x", r"(x+x+)+y", r"((a*)*)*b", r"^(([a-z])+.)+[A-Z]$",
    r"(.*)*=", r"(?=(a+)+b)", r"(?:(?:a+)+)?b", r"(?:,a?a?)*x", r".*a.*b", r"\s*(\S.*\?)\s*$", r"(\w+)\1", r"(?:.|a){5,}b",
    "a?" * 300 + "a" * 300, "x" * 1_001,
]  # fmt: skip
QUICK = [
    r"^\[chat\] ", r"^you: $", r".*Thinking.*", r"^.*a.*b", r"foo.{0,80}bar.{0,80}baz", r"(?:\w+ )*x", r"(\d+,)*x", r"(ab|cd)*e",
    r"^(?:[\w.~/-]*\s?)?[>❯›$%](?: (?P<draft>.*))?$", r"(?i:esc to (?:interrupt|cancel))", r"[\u2800-\u28ff] \S+",
    r"^\s*\d+\. \S",
    r"(?: \[[^\]]+\])+:", r"", r"a++b", r"(?>a+)b",
]  # fmt: skip


@pytest.mark.parametrize("pattern", SLOW, ids=[each[:30] for each in SLOW])
def test_what_may_take_long_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(Costly, match=r"\w+ \w+"):
        check_cost(pattern)


@pytest.mark.parametrize("pattern", QUICK)
def test_what_people_write_is_taken_and_is_quick_on_any_row(pattern: str) -> None:
    check_cost(pattern)
    compiled = re.compile(pattern)
    start = time.thread_time()
    for unit in ("a", " ", "1,", "ab", "foobar", "> ", "[", " [x]", "⠋ "):
        compiled.search((unit * 200)[:200])
    assert time.thread_time() - start < 1.0
