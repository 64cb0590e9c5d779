"""Rules that approve requests like one that is open, as a person adds them from the page."""

from __future__ import annotations

from typing import Literal, Protocol

from msgspec import Struct

from agent_relay.protocol.requests import PermissionRequest


class RuleShape(Struct, frozen=True):
    """The parts of a rule for a request: its kind of tool, and what its patterns are matched with. `exact` fits this request
    alone, `wider` more of its kind ("": there is nothing sensible between exactly this and anything)."""

    tool: str
    about: Literal["command", "file"]
    exact: str
    wider: str = ""


class PermissionRules(Protocol):
    """`asked` is the open request that a rule is for. All of it raises RelayError with a sentence for people."""

    def shape(self, asked: PermissionRequest) -> RuleShape:
        """Raises where no rule could approve it."""
        ...

    def check(self, asked: PermissionRequest, pattern: str) -> None:
        """Raises where the pattern is too wide for a rule that is made with a click."""
        ...

    def approves(self, other: PermissionRequest) -> bool:
        """Whether the rules approve it as they are."""
        ...

    def would_approve(self, asked: PermissionRequest, pattern: str, other: PermissionRequest) -> bool:
        """Whether the rules, with this one after the owner's own, would approve another request."""
        ...

    def add(self, asked: PermissionRequest, pattern: str) -> str:
        """Writes it into the owner's file, whose path is returned. It holds from now on. Blocks."""
        ...
