"""The one who speaks through the tools: a wrapped agent by way of its wrapper, another agent, or the person.

Who that is, the command line decides from the environment that the wrapper made; no argument of a tool can say it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from agent_relay.protocol.proposals import Proposal
from agent_relay.sdk.client import RelayClient


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that is stored. `waits`: why it is not delivered yet, a sentence for each recipient where that is known."""

    message_id: str
    recipients: int
    queued: int
    skipped: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Answered:
    by: str
    body: str


@dataclass(frozen=True, slots=True)
class Inbox:
    """Messages, oldest first: `messages` to be read, and `coming`, which will be put before the agent without its doing."""

    messages: list[dict[str, Any]]
    coming: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""


class Speaker(Protocol):
    """Everything it does may raise RelayError."""

    @property
    def name(self) -> str: ...

    def observe(self) -> RelayClient:
        """A connection that only looks; to be entered."""
        ...

    async def send(self, to: str | list[str], text: str, thread: str | None = None, reply_to: str | None = None) -> Sent: ...

    async def ask(self, to: str | list[str], text: str, seconds: int) -> Answered:
        """Raises TimedOut where no answer comes in time."""
        ...

    async def join(self, channel: str, at_leisure: bool | None) -> None: ...

    async def leave(self, channel: str) -> None: ...

    async def spawn(self, name: str, cli: str, task: str | None) -> None: ...

    async def release(self, name: str) -> None: ...

    async def result(self, task: str, text: str, *, is_error: bool) -> str:
        """The id of the message that carries it."""
        ...

    async def vote(self, proposal: str, choice: str, reason: str | None) -> Proposal: ...

    async def read_inbox(self, *, peek: bool) -> Inbox: ...
