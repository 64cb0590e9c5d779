"""opencode's sessions: which one the terminal shows, which of them work, and which are only a tool of another.

A plugin of ours inside the terminal program writes down what it shows (`view.js`). What is known of a running opencode is kept
in the agent's folder, for a later wrapper.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agent_relay.private_files import read_private, replace_private
from agent_relay.terminal.doors.known import KnownFile, add_name
from agent_relay.terminal.doors.opencode.loopback_http import LoopbackHttp
from agent_relay.terminal.output.json_fields import as_count, as_dict, as_list, as_text, decode_object

PLUGIN = Path(__file__).with_name("view.js")
HOME, SESSION = "home", "session"
_POLL_S = 0.05
_SESSION_ID = re.compile(r"ses[\w-]{1,100}", re.ASCII)
OVERLAP_MS = 60_000  # what was said so long before the last thing that was heard, a wrapper before us has dealt with
_MAX_OWN = 50
SHOWN_S = 10.0  # until the terminal shows what it was told to
MAX_DEPTH = 10
MAX_LISTED = 20
_MAX_PARENTS = 1_000
_WORKING = frozenset({"busy", "retry"})


class TerminalView(Struct, frozen=True):
    """`session` is empty where none is shown, or none yet."""

    name: str
    session: str = ""

    @property
    def is_loading(self) -> bool:
        return self.name == SESSION and not self.session


def view_path(folder: str) -> str:
    return os.path.join(folder, "opencode-view.json")


def write_view_settings(folder: str) -> str:
    """The file for OPENCODE_TUI_CONFIG. The view of an earlier program is forgotten."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(view_path(folder))
    path = os.path.join(folder, "opencode-tui.json")
    replace_private(path, msgspec.json.encode({"plugin": [[str(PLUGIN), {"path": view_path(folder)}]]}))
    return path


def read_view(folder: str) -> TerminalView | None:
    """None: the plugin has said nothing so far."""
    found = decode_object(read_private(view_path(folder)) or b"")
    if found is None:
        return None
    return TerminalView(as_text(found.get("name")), session_id(found.get("session")))


async def wait_for_view(folder: str, is_wanted: Callable[[TerminalView | None], bool], seconds: float) -> TerminalView | None:
    """The view once it is the wanted one, or the one there is when the time is over."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while not is_wanted(view := read_view(folder)):  # noqa: ASYNC110 - it is a file
                await asyncio.sleep(_POLL_S)
            return view
    return read_view(folder)


def session_id(value: object) -> str:
    """As it may stand in a path; empty for anything else."""
    text = as_text(value)
    return text if _SESSION_ID.fullmatch(text) else ""


class OpencodeKnown(Struct):
    """`sessions` of this program, the latest last: others of the same project belong to other agents."""

    heard_ms: int = 0
    sessions: list[str] = []


KNOWN = KnownFile("opencode-known.json", OpencodeKnown)


class OwnSessions:
    """Those of this program, and until when it was heard. `since_ms`: when it was started; what was said before is history."""

    def __init__(self, folder: str, since_ms: int) -> None:
        self._folder = folder
        self._known = KNOWN.load(folder)
        self.since_ms = max(since_ms, self._known.heard_ms - OVERLAP_MS)

    @property
    def latest(self) -> list[str]:
        """The latest first."""
        return self._known.sessions[::-1]

    def add(self, session: str) -> None:
        if add_name(self._known.sessions, session, _MAX_OWN):
            self._save()

    def note_heard(self, at_ms: int) -> None:
        self._known.heard_ms = max(self._known.heard_ms, at_ms)
        self._save()

    def _save(self) -> None:
        with contextlib.suppress(OSError):  # a full disk must not keep the agent from being heard
            KNOWN.save(self._folder, self._known)


class OpencodeSession(Struct, frozen=True):
    """`mode`: with which agent and model it goes on. opencode takes its own defaults else, which may permit more."""

    id: str
    mode: dict[str, Any] = {}


class Sessions:
    """`used`: the one that the person asked for when starting it."""

    def __init__(self, http: LoopbackHttp, folder: str, own: OwnSessions, used: str = "") -> None:
        self._http = http
        self._folder = folder
        self._own = own
        self._used = used  # the last one that was written to, or that the terminal was told to show
        self._begun = ""  # by us; the terminal does not show it so far
        self._parents: dict[str, str] = {}
        self._working: set[str] = set()

    # --- what is told of them ----------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        return bool(self._working)

    def note_status(self, session: str, status: str) -> None:
        if status in _WORKING and session:
            self._working.add(session)
        else:
            self._working.discard(session)

    def note_all_statuses(self, statuses: dict[str, str]) -> None:
        self._working = {session for session, status in statuses.items() if status in _WORKING}

    def note_info(self, info: dict[str, Any]) -> None:
        id_ = session_id(info.get("id"))
        if id_:
            self._parents[id_] = session_id(info.get("parentID"))
            if len(self._parents) > _MAX_PARENTS:
                del self._parents[next(iter(self._parents))]

    def note_used(self, session: str) -> None:
        if session_id(session) and not self.is_child(session):
            self._used = session
            self._own.add(session)

    def is_child(self, session: str) -> bool:
        """A session that the agent itself began for a task; its words are not for others."""
        return bool(self._parents.get(session))

    async def own(self) -> list[str]:
        """Those of this program, as far as they are known, the latest first. Raises HttpFailed."""
        shown = await self._find(await self._wanted())
        return list(dict.fromkeys([*([shown.id] if shown is not None else []), *self._own.latest]))

    async def latest(self) -> list[str]:
        """Those of this project, whoever's they are, the one that was changed last first. Raises HttpFailed."""
        listed = as_list((await self._http.request("GET", f"/session?limit={MAX_LISTED}")).json())
        times = {session_id(info.get("id")): as_count(as_dict(info.get("time")).get("updated")) for info in listed}
        times.pop("", None)
        return sorted(times, key=lambda id_: -times[id_])

    # --- where messages go -------------------------------------------------------------------------------------------

    async def find_or_begin(self) -> OpencodeSession | None:
        """Raises HttpFailed."""
        found = await self._find(await self._wanted())
        if found is not None:
            return found
        if self._begun:
            found = await self._find(self._begun)
        found = found or await self._begin()
        if found is not None:
            await self._show(found.id)
        return found

    async def _wanted(self) -> str:
        """Empty where the terminal shows none."""
        view = await wait_for_view(self._folder, lambda view: view is None or not view.is_loading, SHOWN_S)
        if view is not None and view.name == SESSION and view.session:
            self._begun = ""
            return view.session
        return "" if view is not None and view.name == HOME else self._used

    async def _find(self, session: str) -> OpencodeSession | None:
        """The session, or the one it is a tool of."""
        for _ in range(MAX_DEPTH):
            if not session:
                return None
            answer = await self._http.request("GET", f"/session/{session}")
            info = as_dict(answer.json())
            if answer.status != 200 or session_id(info.get("id")) != session:
                return None
            self.note_info(info)
            if not self._parents[session]:
                return OpencodeSession(session, _mode(info))
            session = self._parents[session]
        return None

    async def _begin(self) -> OpencodeSession | None:
        answer = await self._http.request("POST", "/session", {})
        info = as_dict(answer.json())
        id_ = session_id(info.get("id"))
        if answer.status != 200 or not id_:
            return None
        self.note_info(info)
        self._begun = id_
        self.note_used(id_)
        return OpencodeSession(id_, _mode(info))

    async def _show(self, session: str) -> None:
        """Leaves what a person has half written in the composer. Where nobody says what is shown, it is not waited for."""
        await self._http.request("POST", "/tui/select-session", {"sessionID": session})
        wanted = TerminalView(SESSION, session)
        if await wait_for_view(self._folder, lambda view: view in (None, wanted), SHOWN_S) == wanted:
            self._begun = ""


def _mode(info: dict[str, Any]) -> dict[str, Any]:
    mode: dict[str, Any] = {}
    if agent := as_text(info.get("agent")):
        mode["agent"] = agent
    model = as_dict(info.get("model"))
    provider, name, variant = (as_text(model.get(key)) for key in ("providerID", "id", "variant"))
    if provider and name:
        mode["model"] = {"providerID": provider, "modelID": name}
        if variant and variant != "default":
            mode["variant"] = variant
    return mode
