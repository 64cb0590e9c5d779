"""opencode: how it is started so that its server can be reached, and the door that leads into it."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from agent_relay.private_files import replace_private
from agent_relay.terminal.doors.door import Door, DoorListener
from agent_relay.terminal.doors.launch import AgentPlace, Note, PreparedStart, Program
from agent_relay.terminal.doors.opencode.loopback_http import HOST
from agent_relay.terminal.doors.opencode.server import OpencodeServer
from agent_relay.terminal.doors.opencode.sessions import KNOWN, session_id, write_view_settings
from agent_relay.terminal.doors.versions import objection_to_start
from agent_relay.terminal.output.observations import Observation

PASSWORD, USERNAME = "OPENCODE_SERVER_PASSWORD", "OPENCODE_SERVER_USERNAME"
CONFIG, TUI_CONFIG, PURE = "OPENCODE_CONFIG_CONTENT", "OPENCODE_TUI_CONFIG", "OPENCODE_PURE"
INTRODUCTION_FILE = "opencode-introduction.md"

_SUBCOMMANDS = frozenset({
    "acp", "agent", "attach", "auth", "completion", "db", "debug", "export", "github", "import", "mcp", "models", "plug",
    "plugin", "pr", "providers", "run", "serve", "session", "stats", "uninstall", "upgrade", "web",
})  # fmt: skip
_ELSEWHERE = frozenset({"-h", "--help", "-v", "--version", "--mini"})
_PORTS = range(20_000, 32_000)
_OWN_ADDRESS = frozenset({"--hostname", "--mdns", "--mdns-domain", "--cors"})


class OpencodeLauncher:
    """`version`: of the program that will be started; empty where it is not known."""

    def __init__(self, version: Callable[[], str] = lambda: "") -> None:
        self._version = version

    def prepare(self, program: Program, place: AgentPlace, introduction: str) -> PreparedStart:
        words = program.argv[1:]
        flags = _flags(words)
        reason, mend = self._why_not(words, flags)
        if reason:
            return PreparedStart(program, notes=(Note(reason, (OpencodeServer.name,), mend),))
        KNOWN.forget(place.folder)  # what is known of the last program
        environment, facts = dict(program.environment), _address(program, flags)
        added = [] if "--port" in flags else ["--port", facts["port"], "--hostname", HOST]
        if "--port" not in flags:
            environment[PASSWORD] = facts["password"]
        notes: list[Note] = []
        if "--pure" in flags or environment.get(PURE) or environment.get(TUI_CONFIG):
            notes.append(
                Note("opencode does not say which session it shows: its plugins are off, or it uses other settings of yours.")
            )
        else:
            environment[TUI_CONFIG] = write_view_settings(place.folder)
            facts["view"] = "1"
        is_introduced = bool(introduction) and not environment.get(CONFIG)
        if is_introduced:
            environment[CONFIG] = _introduce(place.folder, introduction)
        changed = Program((program.argv[0], *added, *words), program.cwd, environment)
        return PreparedStart(changed, facts, is_introduced, None, tuple(notes))

    def _why_not(self, words: Sequence[str], flags: Mapping[str, str]) -> tuple[str, str]:
        """The reason why its server cannot be used, and what to do; empty where it can."""
        if words and words[0] in _SUBCOMMANDS:
            return f"`opencode {words[0]}` opens no session that could receive messages.", ""
        if flags.keys() & _ELSEWHERE:
            return f"With {min(flags.keys() & _ELSEWHERE)} opencode opens no known session.", ""
        if flags.keys() & _OWN_ADDRESS and "--port" not in flags:
            found = min(flags.keys() & _OWN_ADDRESS)
            return f"You started opencode with {found} and no --port, so its server cannot be found.", "Add a --port."
        if "--port" in flags and not _is_port(flags["--port"]):
            return "You started opencode with a --port that it chooses itself, so its server cannot be found.", "Name the port."
        return objection_to_start("opencode", self._version())

    def doors(
        self, program: Program, place: AgentPlace, facts: Mapping[str, str], listener: DoorListener[Observation]
    ) -> list[Door]:  # fmt: skip
        del program
        if not facts.get("port"):
            return []
        return [OpencodeServer(place, facts, listener)]


def _address(program: Program, flags: Mapping[str, str]) -> dict[str, str]:
    """The address of its server, and what it wants to hear. A port of the user's is used as they set it up."""
    own = program.environment.get(PASSWORD, "")
    return {
        "port": flags.get("--port") or str(_free_port()),
        "username": program.environment.get(USERNAME) or "opencode",
        "password": own or ("" if "--port" in flags else secrets.token_urlsafe(32)),
        "secret": secrets.token_hex(16),
        "since_ms": str(time.time_ns() // 1_000_000),
        "session": session_id(flags.get("-s") or flags.get("--session")) if "--fork" not in flags else "",
    }


def _flags(words: Sequence[str]) -> dict[str, str]:
    """The flags, each with the word after it. What follows `--` is none."""
    found: dict[str, str] = {}
    for number, word in enumerate(words):
        if word == "--":
            break
        if word.startswith("-") and len(word) > 1:
            name, is_joined, value = word.partition("=")
            found[name] = value if is_joined else words[number + 1] if number + 1 < len(words) else ""
    return found


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text) < 65_536


def _free_port() -> int:
    """Free at this moment, and none of those that the system hands out by itself, so that it stays so until opencode has it."""
    while True:
        port = secrets.choice(_PORTS)
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind((HOST, port))
            return port


def _introduce(folder: str, introduction: str) -> str:
    """Settings that add the introduction to opencode's instructions, beside those of the user."""
    path = os.path.join(folder, INTRODUCTION_FILE)
    replace_private(path, introduction.encode())
    return msgspec.json.encode({"instructions": [path]}).decode()
