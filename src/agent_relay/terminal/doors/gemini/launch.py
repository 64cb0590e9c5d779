"""Gemini CLI: how it is started so that its hooks reach us.

Settings of our own it would take from root alone. So its hooks come with an extension, which the person links once:
`gemini extensions link FOLDER`. It names no agent: it runs the script that we name in the environment of the programs we
start, and does nothing in any other session.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent_relay.private_files import replace_private
from agent_relay.terminal.doors.door import Door, DoorListener
from agent_relay.terminal.doors.gemini.hooks import GeminiHooks
from agent_relay.terminal.doors.gemini.record import KNOWN
from agent_relay.terminal.doors.hooks import event_script, hook_command, hook_socket_path, marker_path, while_marked
from agent_relay.terminal.doors.launch import AgentPlace, Note, PreparedStart, Program, home_of_cli
from agent_relay.terminal.output.json_fields import as_dict, as_text, decode_object
from agent_relay.terminal.output.observations import Observation

EXTENSION = Path(__file__).with_name("extension")
NAME = "agent-relay"  # of the extension
VARIABLE = "AGENT_RELAY_GEMINI_HOOK"  # as the extension's hooks spell it
SCRIPT_FILE = "gemini-hook.sh"
HOOK_S = 9  # the extension gives a hook ten
MAX_VETO_S = 590  # and ten minutes to the one that may refuse a tool

_EVENTS = ("SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeTool", "Notification")
_SUBCOMMANDS = frozenset({"mcp", "extensions", "extension", "skills", "skill", "hooks", "hook", "gemma"})
_ELSEWHERE = frozenset({
    "-p", "--prompt", "--acp", "--experimental-acp", "-h", "--help", "-v", "--version", "-l", "--list-extensions",
    "--list-sessions", "--delete-session",
})  # fmt: skip
_SANDBOX = frozenset({"-s", "--sandbox"})


class GeminiLauncher:
    """`veto_s`: for how long a tool that can do harm waits, before it runs or asks, for somebody to refuse it from outside."""

    def __init__(self, veto_s: float = 0.0) -> None:
        self._veto_s = min(veto_s, MAX_VETO_S)

    def prepare(self, program: Program, place: AgentPlace, introduction: str) -> PreparedStart:
        KNOWN.forget(place.folder)  # what is known of the last program
        reason, mend = _why_not(program)
        if reason:
            return PreparedStart(program, notes=(Note(reason, (GeminiHooks.name,), mend),))
        socket = hook_socket_path(place.folder, place.project_id, place.agent)
        script = os.path.join(place.folder, SCRIPT_FILE)
        replace_private(script, _script(place, socket, self._veto_s))
        version = _installed_version(program)
        facts = {"hooks": socket, "introduction": introduction, "version": version, "veto_s": f"{self._veto_s:g}"}
        return PreparedStart(Program(program.argv, program.cwd, {**program.environment, VARIABLE: script}), facts)

    def doors(
        self, program: Program, place: AgentPlace, facts: Mapping[str, str], listener: DoorListener[Observation]
    ) -> list[Door]:  # fmt: skip
        del program
        return [GeminiHooks(place, facts, listener)] if facts.get("hooks") else []


def _why_not(program: Program) -> tuple[str, str]:
    """The reason why its hooks cannot be used, and what to do; empty where they can."""
    words = program.argv[1:]
    flags = _flags(words)
    if words and words[0] in _SUBCOMMANDS:
        return f"`gemini {words[0]}` opens no session that could receive messages.", ""
    if flags.keys() & _ELSEWHERE:
        return f"With {min(flags.keys() & _ELSEWHERE)} Gemini CLI opens no session here.", ""
    if flags.keys() & _SANDBOX or program.environment.get("GEMINI_SANDBOX", "false") not in {"", "0", "false"}:
        return "In its sandbox Gemini CLI cannot reach the relay's hooks, so messages are typed.", "Start it without its sandbox."
    chosen = flags.get("-e", []) + flags.get("--extensions", [])
    if chosen and NAME not in {name.strip() for names in chosen for name in names.split(",")}:
        text = f"You chose the extensions of Gemini CLI, and {NAME} is not among them, so messages are typed."
        return text, f"Add {NAME} to them."
    if not _is_linked(program):
        command = f"gemini extensions link {shlex.quote(str(EXTENSION))}"
        return "The relay's extension, which reaches Gemini CLI while it works, is not linked.", f"Link it once: {command}"
    return "", ""


def _is_linked(program: Program) -> bool:
    return (home_of_cli("gemini", program) / "extensions" / NAME).is_dir()


def _flags(words: Sequence[str]) -> dict[str, list[str]]:
    """The flags, each with the words after them. What follows `--` is none."""
    found: dict[str, list[str]] = {}
    name = ""
    for word in words:
        if word == "--":
            break
        if re.match(r"-{1,2}[a-zA-Z]", word):
            name, is_joined, value = word.partition("=")
            found.setdefault(name, []).extend([value] if is_joined else [])
        elif name:
            found[name].append(word)
    return found


def _script(place: AgentPlace, socket: str, veto_s: float) -> bytes:
    """The script that the extension runs. It prints what the CLI is to hear, or nothing."""
    commands = {event: hook_command(socket, event, HOOK_S) for event in _EVENTS}
    commands["AfterTool"] = while_marked(marker_path(place.folder, "gemini"), hook_command(socket, "AfterTool", HOOK_S))
    if veto_s > 0:
        commands["BeforeAnyTool"] = hook_command(socket, "BeforeAnyTool", veto_s + HOOK_S)
    return event_script(commands)


def _installed_version(program: Program) -> str:
    """As its package says; empty where it was installed in another way."""
    found = shutil.which(program.argv[0], path=program.environment.get("PATH"))
    for folder in Path(os.path.realpath(found)).parents[:4] if found else ():
        try:
            package = as_dict(decode_object((folder / "package.json").read_bytes()))
        except OSError:
            continue
        if package.get("name") == "@google/gemini-cli":
            return as_text(package.get("version"))[:40]
    return ""
