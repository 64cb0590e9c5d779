"""Which session opencode's terminal shows, as a plugin of ours inside of it writes down (`view.js`)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_relay.terminal.files.private_files import read_private, replace_private
from agent_relay.terminal.output.transcripts.records import as_text, decode_record

PLUGIN = Path(__file__).with_name("view.js")
HOME, SESSION = "home", "session"
_POLL_S = 0.05
_SESSION_ID = re.compile(r"ses[\w-]{1,100}", re.ASCII)


class View(Struct, frozen=True):
    """`session` is empty where none is shown, or none yet."""

    name: str
    session: str = ""

    @property
    def is_loading(self) -> bool:
        return self.name == SESSION and not self.session


def view_path(folder: str) -> str:
    return os.path.join(folder, "opencode-view.json")


def write_view_settings(folder: str) -> str:
    """What OPENCODE_TUI_CONFIG names. The view of an earlier program is forgotten."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(view_path(folder))
    path = os.path.join(folder, "opencode-tui.json")
    replace_private(path, msgspec.json.encode({"plugin": [[str(PLUGIN), {"path": view_path(folder)}]]}))
    return path


def read_view(folder: str) -> View | None:
    """None: the plugin has said nothing so far."""
    found = decode_record(read_private(view_path(folder)) or b"")
    if found is None:
        return None
    return View(as_text(found.get("name")), session_id(found.get("session")))


async def wait_for_view(folder: str, is_wanted: Callable[[View | None], bool], seconds: float) -> View | None:
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
