"""Claude Code: how it is started so that its inbox is found and its hooks reach us, and the doors that lead into it."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from agent_relay.private_files import replace_private
from agent_relay.terminal.doors.claude.inbox import ClaudeInbox
from agent_relay.terminal.doors.claude.record import KNOWN
from agent_relay.terminal.doors.claude.session import TOOL_ENDED, TOOL_STARTED, RecordWait
from agent_relay.terminal.doors.claude.stop import ClaudeStopHook
from agent_relay.terminal.doors.door import Door, DoorListener
from agent_relay.terminal.doors.hooks import hook_command, hook_socket_path, marker_path, notice_command, while_marked
from agent_relay.terminal.doors.launch import AgentPlace, Note, PreparedStart, Program, home_of_cli
from agent_relay.terminal.output.json_fields import as_dict, decode_object
from agent_relay.terminal.output.observations import Observation

SETTINGS_FILE = "claude-settings.json"
HOOK_S = 10
PERMISSION_S = 86_400  # as long as the dialog may stay open; after that only a person can answer it
EARLIER_S = 1  # ours gives up so long before Claude Code does

_SUBCOMMANDS = frozenset({
    "agents", "attach", "auth", "auto-mode", "config", "doctor", "gateway", "import", "install", "kill", "logs", "mcp",
    "migrate-installer", "plugin", "plugins", "purge", "remote-control", "respawn", "rm", "setup-token", "stop",
    "ultrareview", "update", "upgrade",
})  # fmt: skip
_ELSEWHERE = frozenset({
    "-p", "--print", "-h", "--help", "-v", "--version", "--bg", "--background", "--cloud", "--desktop", "--tmux",
})  # fmt: skip
_RESUMES = frozenset({"-r", "--resume", "-c", "--continue", "--from-pr", "--teleport"})
_PROMPTS = frozenset({"--append-system-prompt", "--append-system-prompt-file", "--system-prompt", "--system-prompt-file"})
_HOOKLESS = frozenset({"--settings", "--bare", "--safe-mode"})
_BYPASS = "--dangerously-skip-permissions"
ALL = (ClaudeInbox.name, ClaudeStopHook.name)

_ASKING = ("SessionStart", "UserPromptSubmit", "PermissionRequest")  # Claude Code waits for what is said to them
_GIVING = ("PostToolUse", "Stop")  # the same, while there is something to give to the agent
_TELLING = {  # it does not wait; by the names under which we hear of them
    "PreToolUse": TOOL_STARTED, "PostToolUse": TOOL_ENDED, "Notification": "Notification", "SessionEnd": "SessionEnd",
}  # fmt: skip


class ClaudeLauncher:
    def prepare(self, program: Program, place: AgentPlace, introduction: str) -> PreparedStart:
        words = program.argv[1:]
        flags = _flags(words)
        if words and words[0] in _SUBCOMMANDS:
            return PreparedStart(
                program, notes=(Note(f"`claude {words[0]}` opens no session that could receive messages.", ALL),)
            )
        if flags.keys() & _ELSEWHERE:
            found = min(flags.keys() & _ELSEWHERE)
            return PreparedStart(program, notes=(Note(f"With {found} Claude Code opens no session here.", ALL),))
        KNOWN.forget(place.folder)  # what is known of the last program
        notes: list[Note] = []
        resumes = flags.keys() & _RESUMES
        session_id = flags.get("--session-id") or (None if resumes else str(uuid.uuid4()))
        added = ["--session-id", session_id] if session_id and "--session-id" not in flags else []
        facts = {"door": "1", "session": session_id or ""}
        if taken := flags.keys() & _HOOKLESS:
            text = f"You started Claude Code with {min(taken)}, so the relay's are left out: no remote answers."
            notes.append(Note(text, (ClaudeStopHook.name,), f"Start it without {min(taken)} to have them."))
        else:
            facts["hooks"] = hook_socket_path(place.folder, place.project_id, place.agent)
            added += ["--settings", _write_settings(place, facts["hooks"])]
        if _bypasses(flags, program):
            facts["holds"] = "1"
        # A resumed conversation keeps the system prompt it began with.
        is_introduced = bool(introduction) and not resumes and not flags.keys() & _PROMPTS
        if is_introduced:
            added += ["--append-system-prompt", introduction]
        argv = (program.argv[0], *added, *words)
        changed = Program(argv, program.cwd, program.environment)
        return PreparedStart(changed, facts, is_introduced, session_id, tuple(notes))

    def doors(
        self, program: Program, place: AgentPlace, facts: Mapping[str, str], listener: DoorListener[Observation]
    ) -> list[Door]:  # fmt: skip
        if not facts.get("door"):
            return []
        home = home_of_cli("claude", program)
        wait = RecordWait()  # both look for the same record
        doors: list[Door] = [ClaudeInbox(home, place, facts, listener, wait)]
        if facts.get("hooks"):
            doors.append(ClaudeStopHook(home, place, facts, listener, wait))
        return doors


def _flags(words: Sequence[str]) -> dict[str, str]:
    """The flags, each with the word after it. Short ones may stand together. What follows `--` is none."""
    found: dict[str, str] = {}
    for number, word in enumerate(words):
        if word == "--":
            break
        after = words[number + 1] if number + 1 < len(words) else ""
        if word.startswith("--"):
            name, is_joined, value = word.partition("=")
            found[name] = value if is_joined else after
        elif re.fullmatch(r"-[a-zA-Z]+", word):
            found.update({f"-{letter}": after for letter in word[1:]})
    return found


def _bypasses(flags: Mapping[str, str], program: Program) -> bool:
    """Whether messages from outside would be held for a person: the user lets everything run and did not let them in."""
    if _BYPASS not in flags and flags.get("--permission-mode") != "bypassPermissions":
        return False
    given = flags.get("--settings", "")
    sources = [given.encode() if given.lstrip().startswith("{") else _read(os.path.join(program.cwd, given) if given else "")]
    sources.append(_read(str(home_of_cli("claude", program) / "settings.json")))
    return not any(as_dict(decode_object(source)).get("crossSessionInbound") == "accept" for source in sources)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes() if path else b""
    except OSError:
        return b""


def _write_settings(place: AgentPlace, socket: str) -> str:
    """Hooks and nothing else: what the user permits and forbids stays theirs."""
    marker = marker_path(place.folder, "claude")
    hooks: dict[str, list[dict[str, str | int]]] = {}
    for event in _ASKING:
        hooks.setdefault(event, []).append(_hook(event, _command(socket, event)))
    for event in _GIVING:
        hooks.setdefault(event, []).append(_hook(event, while_marked(marker, _command(socket, event))))
    for event, notice in _TELLING.items():
        hooks.setdefault(event, []).append(_hook(event, notice_command(socket, notice, HOOK_S - EARLIER_S)))
    path = os.path.join(place.folder, SETTINGS_FILE)
    replace_private(path, msgspec.json.encode({"hooks": {event: [{"hooks": found}] for event, found in hooks.items()}}))
    return path


def _timeout_s(event: str) -> int:
    return PERMISSION_S if event == "PermissionRequest" else HOOK_S


def _command(socket: str, event: str) -> str:
    return hook_command(socket, event, _timeout_s(event) - EARLIER_S)


def _hook(event: str, command: str) -> dict[str, str | int]:
    return {"type": "command", "command": command, "timeout": _timeout_s(event)}
