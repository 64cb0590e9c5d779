"""What whoever serves people (the HTTP API, pages) asks of the relay. Every call may raise RelayError.

Agents, messages and requests are plain dictionaries as the wire has them (docs/protocol.md): AGENTS, HISTORY_RESULT. `caller` is
who wants it, as the system says; it is checked by the relay and recorded.
"""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct

from agent_relay.ports.callers import OWNER, Caller
from agent_relay.protocol.channels import ChannelFacts
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.payloads import HistoryPayload


class MessagePage(Struct, frozen=True):
    messages: list[dict[str, Any]]
    next_cursor: str | None = None


class MessageLife(Struct, frozen=True):
    message: dict[str, Any]
    trail: list[dict[str, Any]]


class Outgoing(Struct, frozen=True):
    """A message that is to be sent; without `to`, to whoever listens to the topic."""

    to: str | list[str] | None
    body: str
    kind: str = "message"
    thread: str | None = None
    topic: str | None = None
    data: dict[str, Any] | None = None
    priority: int | None = None
    ttl_ms: int | None = None
    reply_to: str | None = None
    wait_ms: int | None = None  # for everyone to have it,
    reply_ms: int | None = None  # and for an answer


class Answer(Struct, frozen=True):
    """What somebody answered; `message_id` where it came as a message of its own."""

    by: str
    body: str
    response: Any = None
    data: Any = None
    message_id: str | None = None


class Sent(Struct, frozen=True):
    """`delivered` is None where nobody waited for it."""

    message_id: str
    recipients: int
    queued: int
    skipped: list[str]
    delivered: bool | None = None
    by: list[str] = []  # who acknowledged it while somebody waited
    failure: str | None = None  # why it will not be delivered, where that is known already
    reply: Answer | None = None


class KeyReused(RelayError):  # noqa: N818 - named by the condition
    """The key of a request stands for another one, which was carried out."""

    def __init__(self, key: str) -> None:
        super().__init__(
            ErrorCode.INVALID_FORMAT,
            f"The key {key} was used for another request; nothing was done. Use a new key for each request, and repeat a "
            "request unchanged.",
            field="Idempotency-Key", reason="key_reused",
        )  # fmt: skip


class RelayService(Protocol):
    async def server(self) -> dict[str, Any]: ...

    async def agents(self) -> list[dict[str, Any]]: ...

    async def agent(self, name: str) -> dict[str, Any]: ...

    async def sessions(self) -> list[dict[str, Any]]:
        """Those of agents that the daemon started, also ended ones."""
        ...

    async def messages(self, asked: HistoryPayload) -> MessagePage: ...

    async def conversations(self, limit: int) -> list[dict[str, Any]]: ...

    async def message(self, message_id: str) -> MessageLife: ...

    async def channels(self) -> list[ChannelFacts]: ...

    async def change_membership(self, command: str, channel: str, agent: str | None, caller: Caller = OWNER) -> str:
        """`join` or `leave`, for that agent or for whom messages are sent as; says who did."""
        ...

    async def send(self, message: Outgoing, key: str | None = None) -> Sent:
        """Returns when it is stored; with `wait_ms` when everyone has it, with `reply_ms` when it is answered, or when that time
        is over. Cancelled, nobody waits any more. Said again with the same `key` it is the same message, over restarts too."""
        ...

    async def dead_letters(self, limit: int) -> list[dict[str, Any]]: ...

    async def retry(self, message_id: str, caller: Caller = OWNER) -> dict[str, Any]:
        """Sends a dead letter again; says under which id."""
        ...

    async def control(
        self, agent: str, command: str, text: str | None = None, for_ms: int | None = None, caller: Caller = OWNER
    ) -> None:
        """Returns when the command was handed to the agent's wrapper. `for_ms`: how long a `pause` lasts."""
        ...

    async def answer(self, agent: str, request_id: str, command: str, text: str, caller: Caller = OWNER) -> None:
        """`approve`, `deny` or `answer`. Returns when it was carried out."""
        ...

    async def count_data(self, agent: str) -> dict[str, int]:
        """What of an agent is still on its way."""
        ...

    async def forget(self, agent: str) -> dict[str, int]:
        """Erases everything that is kept of an agent, and says how much it was."""
        ...

    async def spawn(self, fields: dict[str, Any], caller: Caller = OWNER) -> dict[str, Any]:
        """Starts an agent; `fields` are those of SPAWN, and the answer that of SPAWN_RESULT."""
        ...

    async def release(self, name: str, reason: str | None, caller: Caller = OWNER) -> dict[str, Any]: ...
