"""Rules of a team: who may write to, start, or approve for whom.

Everything is open until a rule says otherwise. A `deny` closes what it matches. An `allow` closes its targets to everybody it
does not name. Where both match, `deny` wins, so the order of rules never matters. A rule only takes something away: it grants
no agent a right that the owner's settings do not give it.

A pattern names agents (`Bob`, `Worker*`), channels (`#dev`, `#ops-*`) or topics (`topic:code.>`). Case does not matter in names.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct

from agent_relay.protocol.names import CHANNEL_MARK, fold_name, is_pattern, pattern_matches, show

Action = Literal["send", "spawn", "approve"]
SEND, SPAWN, APPROVE = "send", "spawn", "approve"
TOPIC_MARK = "topic:"
MAX_RULES = 200  # every message of a team with rules is held against all of them
MAX_PATTERNS = 64

_PATTERN = Annotated[str, Meta(min_length=1, max_length=300)]
Patterns = _PATTERN | Annotated[tuple[_PATTERN, ...], Meta(min_length=1, max_length=MAX_PATTERNS)]
_NAME_PATTERN = re.compile(r"[A-Za-z0-9_.*-]{1,64}", re.ASCII)


class AccessRule(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, rename={"from_": "from"}):
    effect: Literal["allow", "deny"]
    action: Action
    from_: Patterns = "*"
    to: Patterns = "*"
    reason: Annotated[str, Meta(max_length=200)] = ""  # added to the refusal, for whoever is refused

    def __post_init__(self) -> None:
        for pattern in list_patterns(self.from_):
            if not is_name_pattern(pattern):
                raise ValueError(f"`from` cannot be {show(pattern)}: use an agent's name, with * for any characters")
        for pattern in list_patterns(self.to):
            _check_target(pattern, self.action)


def _check_target(pattern: str, action: str) -> None:
    is_many = pattern.startswith((CHANNEL_MARK, TOPIC_MARK))
    if is_many and action != SEND:
        raise ValueError(f"`to` cannot be {show(pattern)}: {action} is about agents, not channels or topics")
    if pattern.startswith(TOPIC_MARK):
        if not is_pattern(pattern.removeprefix(TOPIC_MARK)):
            raise ValueError(f"`to` cannot be {show(pattern)}: after topic:, use tokens between dots, * for one, > at the end")
    elif not is_name_pattern(pattern.removeprefix(CHANNEL_MARK)):
        raise ValueError(f"`to` cannot be {show(pattern)}: use an agent, a #channel or topic:PATTERN, with * for any characters")


def is_name_pattern(text: str) -> bool:
    """A name, with `*` for any characters."""
    return _NAME_PATTERN.fullmatch(text) is not None


def list_patterns(patterns: Patterns) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else patterns


def matches(pattern: str, target: str) -> bool:
    """`target` is a name, `#channel` or `topic:` and a topic. A pattern of one kind never matches another kind."""
    if pattern.startswith(TOPIC_MARK) or target.startswith(TOPIC_MARK):
        both = pattern.startswith(TOPIC_MARK) and target.startswith(TOPIC_MARK)
        return both and pattern_matches(pattern.removeprefix(TOPIC_MARK), target.removeprefix(TOPIC_MARK))
    if (pattern[:1] == CHANNEL_MARK) != (target[:1] == CHANNEL_MARK):
        return False
    return _fits(fold_name(pattern), fold_name(target))


def _fits(pattern: str, name: str) -> bool:
    """`*` stands for any characters. The parts between are looked for from left to right, each as early as possible."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    *middle, last = rest
    at = len(first) if name.startswith(first) else -1
    for part in middle:
        found = name.find(part, at) if at >= 0 else -1
        at = found + len(part) if found >= 0 else -1
    return 0 <= at <= len(name) - len(last) and name.endswith(last)


def describe_rule(rule: AccessRule) -> str:
    """On one line, for errors and lists: `deny send from Worker* to Lead`."""
    return f"{rule.effect} {rule.action} from {', '.join(list_patterns(rule.from_))} to {', '.join(list_patterns(rule.to))}"
