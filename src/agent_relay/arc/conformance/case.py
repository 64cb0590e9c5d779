"""A rule of the protocol and the function that checks it.

A rule is *required* of every relay, or belongs to something a relay *offers* (then it must hold, if the relay says that it has
it), or is *advice*: sensible, but the protocol does not demand it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_relay.arc.conformance.facts import Facts
    from agent_relay.arc.conformance.stage import Stage

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
