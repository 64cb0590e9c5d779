"""The work of each agent now: the newest of what its events tell of its work, and since when it is in its state.

A list of agents is asked for often, and costs nothing to answer.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from agent_relay.events.bus import EventBus, Subscription
from agent_relay.events.codec import BadEvent, decode_event
from agent_relay.events.filter import make_filter
from agent_relay.events.record import Record
from agent_relay.events.types import AgentState, CommandExecuted, FileOperation, ItemStarted
from agent_relay.protocol.names import fold_name

_TYPES = ["item.started", "file.operation", "command.executed", "agent.state"]
_PAST = 5_000  # events that are looked through for what was before the first question
_LONGEST = 200  # characters of a path or a command


class Doing(Struct, frozen=True):
    """`what` is the type of an item, the operation on a file, or `run` for a command; `text` the file or the command."""

    kind: Literal["item", "file", "command"]
    what: str
    text: str
    at: int


class Activity(Struct):
    session_id: str
    doing: Doing | None = None
    state: str = ""
    state_at: int = 0


class ActivityBoard:
    """Begins with the first question."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._found: dict[str, Activity] = {}  # by the folded name
        self._subscription: Subscription | None = None

    def of(self, agent: str, session_id: str) -> Activity | None:
        """None where nothing is known of this session of the agent."""
        self._listen()
        found = self._found.get(fold_name(agent))
        return found if found is not None and found.session_id == session_id else None

    def _listen(self) -> None:
        if self._subscription is None or self._subscription.is_over:
            after = max(0, self._bus.last_seq - _PAST) if self._subscription is None else self._subscription.cursor
            self._subscription = self._bus.subscribe(make_filter(_TYPES), after_seq=after, on_news=self._hear)
            self._hear()

    def _hear(self) -> None:
        while self._subscription is not None and (records := self._subscription.take()):
            for record in records:
                self._note(record)

    def _note(self, record: Record) -> None:
        try:
            event = decode_event(record.line)
        except BadEvent:
            return
        key = fold_name(record.agent)
        found = self._found.get(key)
        if found is None or found.session_id != record.session_id:
            found = self._found[key] = Activity(record.session_id)
        match event:
            case ItemStarted():
                found.doing = Doing("item", event.item_type, "", record.ts)
            case FileOperation():
                found.doing = Doing("file", event.operation, event.file_path[:_LONGEST], record.ts)
            case CommandExecuted():
                found.doing = Doing("command", "run", event.command.strip().partition("\n")[0][:_LONGEST], record.ts)
            case AgentState() if found.state != event.state:
                found.state, found.state_at = event.state, record.ts
            case _:
                pass
