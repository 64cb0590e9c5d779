"""Codex's hooks: what ours say, whether the person trusts them, and what they run.

They come with the start (`-c hooks.…`), so that no file of the person's is changed. Codex runs a hook once the person has
trusted its exact text, and asks about it at the start; what was trusted it keeps itself, by a digest. So the text names no
agent: it runs the script that we name in the environment of the programs we start, does nothing in any other session, and
one trust holds for all agents. What Codex keeps is read, so that it never asks about ours unless somebody wanted it to.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import tomllib
from pathlib import Path

from agent_relay.terminal.doors.hooks import hook_command, notice_command
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.files.private_files import replace_private
from agent_relay.terminal.output.transcripts.records import as_dict

FLAG = "--codex-hooks"
VARIABLE = "AGENT_RELAY_CODEX_HOOK"  # as the hooks spell it: with another text Codex would ask anew
SCRIPT_FILE = "codex-hook.sh"
MARKER_FILE = "codex-waiting"  # at the end of a turn we are asked only while it is there, so that turns cost next to nothing else
HOOK_S = 10  # so long Codex waits for one
ANSWER_S = HOOK_S - 1
PROMPT, PERMISSION, STOP = "UserPromptSubmit", "PermissionRequest", "Stop"
_EVENTS = {PROMPT: "user_prompt_submit", PERMISSION: "permission_request", STOP: "stop"}  # and as Codex keeps them
_KEY = "/<session-flags>/config.toml:{}:0:0"  # where Codex keeps what was trusted of hooks that came with the start


def marker_path(folder: str) -> str:
    return os.path.join(folder, MARKER_FILE)


def hook_flags() -> list[str]:
    """Flags that Codex is started with: the same for every agent."""
    return [word for event in _EVENTS for word in ("-c", f"hooks.{event}={_toml(event)}")]


def are_trusted(home: Path) -> bool:
    """Whether Codex would run all of them without asking, by its own settings file in `home`."""
    try:
        settings = tomllib.loads((home / "config.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    kept = as_dict(as_dict(settings.get("hooks")).get("state"))
    return all(_is_trusted(as_dict(kept.get(_KEY.format(name))), event) for event, name in _EVENTS.items())


def write_script(place: AgentPlace, socket: str) -> str:
    """Writes what the hooks run for this agent, with the event as its only word; returns where it is. The end of a turn is asked
    about, while something waits; of the rest we are only told, and Codex does not wait for it."""
    told = [f"{event}) {notice_command(socket, event, ANSWER_S)} ;;" for event in (PROMPT, PERMISSION)]
    marker = shlex.quote(marker_path(place.folder))
    asked = f"{STOP}) if [ -e {marker} ]; then {hook_command(socket, STOP, ANSWER_S)}; fi ;;"
    path = os.path.join(place.folder, SCRIPT_FILE)
    replace_private(path, "\n".join(['case "$1" in', *told, asked, "esac", "exit 0", ""]).encode())
    return path


def _command(event: str) -> str:
    """For any shell. It ends with 0 whatever happens: with 2 Codex would take it for a refusal."""
    return f'sh -c \'if [ -f "${VARIABLE}" ]; then sh "${VARIABLE}" {event} 2>/dev/null; fi; exit 0\''


def _toml(event: str) -> str:
    return f'[{{hooks=[{{type="command",command={json.dumps(_command(event))},timeout={HOOK_S}}}]}}]'


def _is_trusted(kept: dict[str, object], event: str) -> bool:
    return kept.get("trusted_hash") == f"sha256:{_digest(event)}" and kept.get("enabled") is not False


def _digest(event: str) -> str:
    """As Codex counts it: of the hook with all that it was not told, as JSON without spaces, in the order of the names."""
    hook = {"type": "command", "command": _command(event), "timeout": HOOK_S, "async": False}
    text = json.dumps({"event_name": _EVENTS[event], "hooks": [hook]}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
