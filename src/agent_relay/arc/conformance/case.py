"""A rule of the protocol and the function that checks it.

A rule is *required* of every relay, or belongs to something a relay *offers* (then it must hold, if the relay says that it has
it), or is *advice*: sensible, but the protocol does not demand it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_relay.arc.conformance.stage import Stage


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that the relay says about itself in its welcome, if it says any."""

    welcome: dict[str, Any] | None = None
    limits: dict[str, Any] = field(default_factory=dict)

    @property
    def max_message_size(self) -> int | None:
        size = self.limits.get("max_message_size")
        return size if isinstance(size, int) and 0 < size < 64 * 1024 * 1024 else None

    @property
    def messages_a_minute(self) -> int | None:
        """`100/min`, as the welcome says it."""
        number, slash, unit = str(self.limits.get("rate_limit", "")).partition("/")
        return int(number) if slash and unit.startswith("min") and number.isdigit() else None

    def has(self, name: str) -> bool:
        if self.welcome is None:
            return False
        return any(name in part for part in map(self.welcome.get, ("capabilities", "extensions")) if isinstance(part, list))


def read_facts(welcome: dict[str, Any] | None) -> Facts:
    limits = (welcome or {}).get("limits")
    return Facts(welcome, limits if isinstance(limits, dict) else {})


Check = Callable[["Stage"], Awaitable[None]]
Offer = Callable[["Facts"], bool]


class Level(StrEnum):
    REQUIRED = "required"
    OFFERED = "offered"
    ADVICE = "advice"


class Broken(AssertionError):  # noqa: N818 - named by the condition
    """The relay does not keep to the rule; the text says what was seen."""


class NotOffered(Exception):  # noqa: N818 - named by the condition
    """The relay turns out not to have what the rule is about."""


class Unchecked(Exception):  # noqa: N818 - named by the condition
    """The rule could not be checked; the text says why."""


@dataclass(frozen=True, slots=True)
class Case:
    section: str
    name: str
    rule: str
    level: Level
    check: Check
    offered: Offer | None = None

    @property
    def id(self) -> str:
        return f"{self.section}/{self.name}"


class Section:
    """The rules of one part of the protocol, in the order in which they are written."""

    def __init__(self, name: str, *, level: Level = Level.REQUIRED, offered: Offer | None = None) -> None:
        self.name = name
        self.cases: list[Case] = []
        self._level = level
        self._offered = offered

    def rule(self, check: Check) -> Check:
        """The function's name is the rule's, the first line of its docstring its text."""
        return self._add(check, self._level)

    def advice(self, check: Check) -> Check:
        return self._add(check, Level.ADVICE)

    def add(self, name: str, rule: str, check: Check, level: Level | None = None) -> None:
        self.cases.append(Case(self.name, name, rule, level or self._level, check, self._offered))

    def _add(self, check: Check, level: Level) -> Check:
        name = getattr(check, "__name__", "").replace("_", "-")
        self.add(name, (check.__doc__ or "").strip().splitlines()[0], check, level)
        return check


def require(condition: object, what_was_seen: str) -> None:
    if not condition:
        raise Broken(what_was_seen)
