"""What the daemon is told about the agent: its state, and how far its messages have come."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from agent_relay.ports.door import Request, Resolution
from agent_relay.protocol.states import ClientState
from agent_relay.sdk.client import RelayClient
from agent_relay.terminal.message_text import clean

_MAX_TEXT = 200
_MAX_UNSENT = 1_000
_REMEMBERED = 2_000


class Reporter:
    """`relay` says which client to use now. What cannot be said is said when the daemon is back."""

    def __init__(self, relay: Callable[[], RelayClient]) -> None:
        self._relay = relay
        self._state: dict[str, Any] = {"state": "starting"}
        self._unsent: deque[tuple[str, dict[str, Any]]] = deque(maxlen=_MAX_UNSENT)
        self._read: OrderedDict[str, None] = OrderedDict()

    def joined(self) -> None:
        """The daemon hears us (again)."""
        self._relay().report("agent.state", **self._state)
        while self._unsent:
            type_, fields = self._unsent.popleft()
            self._relay().report(type_, **fields)

    def state(self, state: str, waiting_for: str = "") -> None:
        """`starting`, `idle`, `working` or `waiting`, which is for a person."""
        self._change(state=state, waitingFor=_line(waiting_for) or None)

    def asked(self, request: Request) -> None:
        """Something a person has to decide."""
        fields = {"tool": request.tool, "command": request.subject, "options": list(request.options)}
        self._say(f"{request.kind.value}.requested", requestId=request.id, text=_line(request.text), **fields)

    def resolved(self, request_id: str, resolution: Resolution, by: str) -> None:
        self._say("request.resolved", requestId=request_id, resolution=resolution.value, resolvedBy=by)

    def paused(self, is_paused: bool) -> None:
        self._change(paused=is_paused)

    def door(self, name: str, note: str = "") -> None:
        """How messages reach the agent, and why not in a better way."""
        self._change(door=name, doorNote=_line(note) or None)

    def received(self, message_id: str) -> None:
        self._say("message.received", messageId=message_id)

    def injected(self, message_id: str, door: str, evidence: str) -> None:
        """The CLI has it; that the agent has read it is another matter."""
        self._say("message.injected", messageId=message_id, door=door, evidence=evidence)

    def read(self, message_id: str, evidence: str) -> None:
        """Once for each message."""
        if message_id in self._read:
            return
        self._read[message_id] = None
        if len(self._read) > _REMEMBERED:
            self._read.popitem(last=False)
        self._say("message.read", messageId=message_id, evidence=evidence)

    def input(self) -> None:
        """A person gave the agent something to do."""
        self._say("agent.input")

    def _change(self, **fields: Any) -> None:
        state = {name: value for name, value in {**self._state, **fields}.items() if value is not None}
        if state != self._state:
            self._state = state
            self._relay().report("agent.state", **state)

    def _say(self, type_: str, **fields: Any) -> None:
        if self._relay().state is ClientState.READY:
            self._relay().report(type_, **fields)
        else:
            self._unsent.append((type_, fields))


def _line(text: str) -> str:
    return " ".join(clean(text).split())[:_MAX_TEXT]
