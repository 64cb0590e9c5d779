"""Reports to the daemon about the agent: its state, and how far its messages have come."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import asdict, replace

from agent_relay.protocol.holds import Hold
from agent_relay.protocol.reports import UnusedDoor
from agent_relay.protocol.requests import AgentRequest, PermissionRequest, QuestionRequest
from agent_relay.protocol.states import ClientState
from agent_relay.protocol.tool_names import kind_of
from agent_relay.protocol.visible_text import clean
from agent_relay.terminal.doors.door import Resolution
from agent_relay.terminal.files.project_files import ProjectFiles
from agent_relay.terminal.reports.relay_link import RelayLink

_MAX_TEXT = 200
_MAX_MEND = 500
_MAX_BODY = 20_000
_MAX_OPTIONS = 50
_MAX_UNSENT = 1_000
_ASKING = {"permission.requested", "question.requested"}
_RESOLUTIONS = {
    Resolution.ALLOWED: "approved", Resolution.DENIED: "denied", Resolution.ANSWERED: "approved", Resolution.GONE: "gone",
}  # fmt: skip
_REMEMBERED = 2_000


class CurrentState(Struct, frozen=True):
    """The agent as it was last described."""

    state: str
    door: str  # empty: not decided yet
    hold: str  # the reason why nothing can be typed; empty: there is none
    is_paused: bool


class Reporter:
    """Says later what cannot be said now: when the daemon is back."""

    def __init__(self, link: RelayLink, files: ProjectFiles | None = None) -> None:
        self._link = link
        self._files = files
        self._state: dict[str, Any] = {"state": "starting"}
        self._unsent: deque[tuple[str, dict[str, Any]]] = deque(maxlen=_MAX_UNSENT)
        self._open: dict[str, AgentRequest] = {}
        self._read: OrderedDict[str, None] = OrderedDict()
        self._process: dict[str, Any] = {}
        self._callbacks: list[Callable[[], None]] = []
        link.call_when_ready(self.joined)

    def call_when_changed(self, callback: Callable[[], None]) -> None:
        """Whenever something else is to be said of the agent's state."""
        self._callbacks.append(callback)

    @property
    def current(self) -> CurrentState:
        said = self._state
        return CurrentState(str(said["state"]), said.get("door", ""), said.get("hold", ""), is_paused="paused" in said)

    def joined(self) -> None:
        """The daemon hears us (again)."""
        self._link.client.report("agent.process", **self._process)
        self._link.client.report("agent.state", **self._state)
        self._unsent = deque((each for each in self._unsent if each[0] not in _ASKING), maxlen=_MAX_UNSENT)
        for request in self._open.values():
            self._say_asked(request)
        while self._unsent:
            type_, fields = self._unsent.popleft()
            self._link.client.report(type_, **fields)

    def process(self, pid: int | None) -> None:
        """Says that what runs from now on is the agent's, and which is its program: the daemon then knows who calls inside."""
        self._process = {} if pid is None else {"pid": pid}
        if self._link.client.state is ClientState.READY:
            self._link.client.report("agent.process", **self._process)

    def state(self, state: str, waiting_for: str = "") -> None:
        """`starting`, `idle`, `working` or `waiting`, which is for a person."""
        self._change(state=state, waitingFor=_line(waiting_for) or None)

    def asked(self, request: AgentRequest) -> None:
        """Something a person has to decide. It is said again to a daemon that was restarted, as long as it is open."""
        self._open[request.id] = request
        self._say_asked(request)

    def resolved(self, request_id: str, resolution: Resolution, by: str) -> None:
        request = self._open.pop(request_id, None)
        if request is None:
            return
        if isinstance(request, QuestionRequest):
            self._say("question.resolved", questionId=request_id, answer="", resolvedBy=by)
        else:
            self._say("permission.resolved", requestId=request_id, resolution=_RESOLUTIONS[resolution], resolvedBy=by)

    def failed(self, request_id: str, reason: str, *, is_changed: bool = False) -> None:
        """An answer from outside could not be given. `is_changed`: what it was meant for is not there any more."""
        self._say("request.failed", requestId=request_id, reason=_line(reason), changed=is_changed)

    def _say_asked(self, request: AgentRequest) -> None:
        told = _bound(self._locate(request) if isinstance(request, PermissionRequest) else request)
        self._say(f"{told.kind}.requested", **to_builtins(told))

    def _locate(self, request: PermissionRequest) -> PermissionRequest:
        """Says where the file of a tool for files really is. A path that cannot be told whole is not looked for."""
        path = request.file_path
        if self._files is None or path is None or path != _body(path):
            return request
        real = self._files.find(kind_of(request.tool), path, request.command or "")
        return replace(request, real_path=real, project_root=self._files.root)

    def paused(self, is_paused: bool, by: str = "", *, has_keyboard: bool = False) -> None:
        """`by`: who said so. `has_keyboard`: somebody types on the page meanwhile."""
        self._change(paused=is_paused, pausedBy=_line(by) or None, keyboard=has_keyboard or None)

    def door(self, name: str, note: str = "", unused: Sequence[UnusedDoor] = ()) -> None:
        """Says how messages reach the agent, and why not in a better way."""
        self._change(door=name, doorNote=_line(note) or None, unusedDoors=[asdict(one) for one in unused] or None)

    def held(self, hold: Hold | None) -> None:
        """Says why nothing can be typed for the agent; None: it can again."""
        self._change(hold=None if hold is None else hold.reason, holdDetail=None if hold is None else _line(hold.detail) or None)

    def waits(self, message_id: str, hold: Hold) -> None:
        """The message waits, and somebody should do something about that."""
        self._say("message.waits", messageId=message_id, reason=hold.reason, detail=_line(hold.detail))

    def received(self, message_id: str) -> None:
        self._say("message.received", messageId=message_id)

    def handed(self, message_id: str, door: str, evidence: str) -> None:
        """The CLI has it; that the agent has read it is another matter."""
        self._say("message.handed", messageId=message_id, door=door, evidence=evidence)

    def read(self, message_id: str, evidence: str) -> None:
        """Once for each message."""
        if message_id in self._read:
            return
        self._read[message_id] = None
        if len(self._read) > _REMEMBERED:
            self._read.popitem(last=False)
        self._say("message.read", messageId=message_id, evidence=evidence)

    def noticed(self, type_: str, fields: dict[str, Any]) -> None:
        """Something about the agent's work, for whoever watches."""
        self._say(type_, **fields)

    def input(self) -> None:
        """A person gave the agent something to do."""
        self._say("agent.input")

    def _change(self, **fields: Any) -> None:
        state = {name: value for name, value in {**self._state, **fields}.items() if value is not None}
        if state != self._state:
            self._state = state
            self._link.client.report("agent.state", **state)
            for callback in self._callbacks:
                callback()

    def _say(self, type_: str, **fields: Any) -> None:
        if self._link.client.state is ClientState.READY:
            self._link.client.report(type_, **fields)
        else:
            self._unsent.append((type_, fields))


def unused_door(door: str, reason: str, mend: str = "") -> UnusedDoor:
    """As it may be said to the daemon."""
    return UnusedDoor(door, _line(reason), _line(mend, _MAX_MEND))


def _line(text: str, most: int = _MAX_TEXT) -> str:
    return " ".join(clean(text).split())[:most]


def _body(text: str) -> str:
    return clean(text)[:_MAX_BODY]


def _bound(request: AgentRequest) -> AgentRequest:
    """Fit to be shown. Only what is still whole is exact: no rule may approve a part of what is run."""
    options = tuple(_line(option) for option in request.options[:_MAX_OPTIONS])
    if isinstance(request, QuestionRequest):
        return replace(request, question=_body(request.question), options=options)
    tool, command, file_path = _line(request.tool), _body(request.command or ""), _body(request.file_path or "")
    is_whole = (tool, command, file_path) == (request.tool, request.command or "", request.file_path or "")
    return replace(
        request, description=_body(request.description), tool=tool, command=command or None, file_path=file_path or None,
        options=options, wider_options=tuple(option for option in request.wider_options if _line(option) == option),
        is_exact=request.is_exact and is_whole,
    )  # fmt: skip
