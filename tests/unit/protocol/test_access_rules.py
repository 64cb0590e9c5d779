"""A team's rules as text: which patterns there are, and what each matches."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.access_rules import AccessRule, describe_rule, matches

DENY: dict[str, Any] = {"effect": "deny", "action": "send"}


@pytest.mark.parametrize(
    ("pattern", "target", "is_match"),
    [
        ("Bob", "Bob", True), ("bob", "BOB", True), ("Bob", "Bobby", False), ("Bo*", "Bobby", True), ("*", "Bob", True),
        ("*", "#dev", False), ("#*", "#dev", True), ("#*", "dev", False), ("#DEV", "#dev", True), ("#d*", "#ops", False),
        ("*", "topic:code.x", False), ("topic:>", "topic:code.x", True), ("topic:code.*", "topic:code.x", True),
        ("topic:code.*", "topic:code.x.y", False), ("topic:>", "Bob", False), ("topic:>", "#dev", False), ("B.b", "Bob", False),
    ],
)  # fmt: skip
def test_what_a_pattern_matches(pattern: str, target: str, is_match: bool) -> None:
    assert matches(pattern, target) is is_match


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"from": "a/b"}, "`from`"), ({"from": "#dev"}, "`from`"), ({"to": "[a-z]"}, "`to`"), ({"to": "#"}, "`to`"),
        ({"to": []}, "to"),
        ({"to": "topic:a..b"}, "`to`"), ({"to": "topic:"}, "`to`"), ({"to": ""}, "to"), ({"from": 7}, "from"),
        ({"to": "#dev", "action": "spawn"}, "about agents"), ({"to": "topic:a", "action": "approve"}, "about agents"),
        ({"effect": "maybe"}, "effect"), ({"action": "fly"}, "action"), ({"frm": "x"}, "frm"), ({"to": ["x"] * 65}, "to"),
        ({"reason": "x" * 201}, "reason"),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_meant_is_refused_by_name(more: dict[str, Any], named: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=named):
        msgspec.convert(DENY | more, AccessRule)


@given(st.text("ab*", min_size=1, max_size=8), st.text("ab", min_size=1, max_size=8))
def test_stars_mean_what_they_mean_in_a_shell(pattern: str, name: str) -> None:
    assert matches(pattern, name) is fnmatchcase(name, pattern)


def test_a_rule_on_one_line() -> None:
    rule = msgspec.convert(DENY | {"from": ["A", "B*"], "to": "#dev"}, AccessRule)
    assert describe_rule(rule) == "deny send from A, B* to #dev"
    assert describe_rule(AccessRule("allow", "spawn")) == "allow spawn from * to *"
