"""Codex: how it is started with an app-server of its own, and the doors that lead into it.

Started plainly, Codex shares one server among all its terminals. There nobody can say which conversation is whose before its
first turn, and what an agent runs gets the environment of whoever came first, the relay's name for it included. So each
agent has a server of its own, which lives and ends with its terminal. Which doors there can be depends on what the user
started it with.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from agent_relay.interpreter import run_script
from agent_relay.protocol.places import MAX_SOCKET_PATH_BYTES, short_socket_directory
from agent_relay.terminal.doors.codex.hooks import FLAG, VARIABLE, CodexStopHook, are_trusted, hook_flags, write_script
from agent_relay.terminal.doors.codex.queue import CodexQueue
from agent_relay.terminal.doors.codex.record import KNOWN, Codex
from agent_relay.terminal.doors.codex.server import CodexServer
from agent_relay.terminal.doors.door import Door, DoorListener
from agent_relay.terminal.doors.hooks import hook_socket_path
from agent_relay.terminal.doors.launch import AgentPlace, Note, PreparedStart, Program, home_of_cli
from agent_relay.terminal.files.private_files import make_private_folder
from agent_relay.terminal.output.observations import Observation
from agent_relay.terminal.profiles.profile import load_profiles

_WITH_VALUE = {
    "-c": "--config", "-m": "--model", "-s": "--sandbox", "-a": "--ask-for-approval", "-i": "--image", "-p": "--profile",
    "-C": "--cd",
}  # fmt: skip
_VALUED = frozenset({
    *_WITH_VALUE.values(), "--enable", "--disable", "--add-dir", "--local-provider", "--remote", "--remote-auth-token-env",
})  # fmt: skip
_SETTINGS = frozenset({"--config", "--enable", "--disable"})
_PERMISSIONS = frozenset({"--sandbox", "--ask-for-approval", "--approve-for-me"})
_RESUMING = frozenset({"resume", "fork"})
# Those that were tried with a server beside the terminal, and mean the same there.
_SERVED = frozenset({*_SETTINGS, *_PERMISSIONS, "--model", "--search", "--no-alt-screen", "--last", "--all"})
_ELSEWHERE = frozenset({"--help", "-h", "--version", "-V", "--remote"})
LAUNCHER = Path(__file__).with_name("server_launcher.py")
LOG_FILE = "codex-server.log"
_OURS = "AGENT_RELAY_"
_SYSTEM = Path("/etc/codex")
ALL = (CodexServer.name, CodexQueue.name, CodexStopHook.name)


class Arguments(Struct, frozen=True):
    """`settings`: the words of `-c` and its like. `elsewhere`: why there is no conversation here that could be written to;
    `unserved`: why it cannot have a server of its own."""

    program: str
    words: list[str]
    command: str = ""  # `resume` or `fork`
    command_at: int = 0
    settings: list[str] = []
    elsewhere: str = ""
    unserved: str = ""

    @property
    def resumes(self) -> bool:
        return bool(self.command)

    def mentions(self, name: str) -> bool:
        return any(name in word for word in self.settings)

    def with_flags(self, flags: Sequence[str]) -> list[str]:
        """The whole command with these flags, where they belong."""
        at = self.command_at + 1 if self.command else 0
        return [self.program, *self.words[:at], *flags, *self.words[at:]]


def read_arguments(argv: Sequence[str]) -> Arguments:
    program, words = argv[0], list(argv[1:])
    flags: list[str] = []
    settings: list[str] = []
    command, command_at, elsewhere = "", 0, ""
    is_first, at = True, 0
    while at < len(words) and words[at] != "--":
        name, value, length = _flag(words, at)
        if name:
            flags.append(name)
            if name in _SETTINGS:
                settings += [name, value]
        elif is_first:
            is_first = False
            if words[at] in _RESUMING:
                command, command_at = words[at], at
            elif not any(character.isspace() for character in words[at]):
                elsewhere = f"`codex {words[at]}` may not be a conversation that can receive messages."
        at += length
    given = Arguments(program, words, command, command_at, settings)
    found = next((name for name in flags if name in _ELSEWHERE), "")
    if found or elsewhere:
        return _replace(given, elsewhere=elsewhere or f"With {found} the conversation does not run here.")
    return _replace(given, unserved=_why_unserved(given, flags))


def _why_unserved(given: Arguments, flags: list[str]) -> str:
    unknown = next((name for name in flags if name not in _SERVED), "")
    if unknown:
        return f"You started Codex with {unknown}, which means something else with an app-server."
    permits = any(name in _PERMISSIONS for name in flags) or given.mentions("approval_policy") or given.mentions("sandbox_mode")
    if given.resumes and permits:
        return "Through an app-server, Codex cannot resume a conversation with other permissions."
    if given.mentions("permissions"):
        return "You gave Codex your own permissions."
    return ""


def _flag(words: list[str], at: int) -> tuple[str, str, int]:
    """Its long name, its value, and how many words it takes; no name for what is no flag."""
    word = words[at]
    if not word.startswith("-") or word == "-":
        return "", "", 1
    if word.startswith("--"):
        name, is_joined, value = word.partition("=")
    else:
        name, value = _WITH_VALUE.get(word[:2], word), word[2:].removeprefix("=")
        is_joined = value
    if name not in _VALUED or is_joined:
        return name, value, 1
    return name, words[at + 1] if at + 1 < len(words) else "", 2


def _replace(given: Arguments, *, elsewhere: str = "", unserved: str = "") -> Arguments:
    return Arguments(
        given.program, given.words, given.command, given.command_at, given.settings, elsewhere, unserved
    )  # fmt: skip


class CodexLauncher:
    """`asks_for_hooks`: hooks of ours are passed where they are of use though nobody has trusted them, so that Codex asks."""

    def __init__(self, *, asks_for_hooks: bool = False) -> None:
        self._asks_for_hooks = asks_for_hooks

    def prepare(self, program: Program, place: AgentPlace, introduction: str) -> PreparedStart:
        given = read_arguments(program.argv)
        if given.elsewhere:
            return PreparedStart(program, notes=(Note(given.elsewhere, ALL),))
        KNOWN.forget(place.folder)  # what is known of the last program
        settings = _settings(program)
        notes: list[Note] = []
        mark = f"relay-{secrets.token_hex(4)}"
        told: list[str] = []
        if introduction and not given.resumes:
            if "developer_instructions" in settings or given.mentions("developer_instructions"):
                notes.append(Note("You gave Codex developer instructions, so it is introduced by a message."))
            else:
                told = ["-c", f"developer_instructions={_toml(f'{introduction} [{mark}]')}"]
        facts = {"codex": program.argv[0], "mark": mark if told else "", "since": str(int(time.time() * 1000))}
        reason = given.unserved or ("You gave Codex your own permissions." if "default_permissions" in settings else "")
        plain = [*told, *_environment_flags(program.environment)]
        environment = dict(program.environment)
        if reason:
            notes.append(Note(f"{reason} So it has no app-server.", (CodexServer.name,)))
            is_hooked, note = self._decide_on_hooks(given, home_of_cli("codex", program))
            notes += [note] if note is not None else []
            if is_hooked:
                facts["hooks"] = hook_socket_path(place.folder, place.project_id, place.agent)
                environment[VARIABLE] = write_script(place, facts["hooks"])
            argv = given.with_flags([*plain, *(hook_flags() if is_hooked else [])])
        else:
            if self._asks_for_hooks:
                notes.append(Note("Its app-server reports more than hooks do, so hooks are left out."))
            facts["server"] = path = _socket_path(place, mark)
            argv = _launch(path, os.path.join(place.folder, LOG_FILE), given, told, given.with_flags(plain))
        changed = Program(tuple(argv), program.cwd, environment)
        return PreparedStart(changed, facts, is_introduced=bool(told), notes=tuple(notes))

    def _decide_on_hooks(self, given: Arguments, home: Path) -> tuple[bool, Note | None]:
        """Whether it is started with ours, and what is to be known of that."""
        if given.mentions("hooks"):
            return False, Note("You started Codex with your own hooks, so the relay's are left out.", (CodexStopHook.name,))
        if are_trusted(home):
            return True, None
        if self._asks_for_hooks:
            return True, Note("Approve the relay's hooks once: choose “Trust all and continue”.")
        return False, Note(
            "You have not approved the relay's hooks.", (CodexStopHook.name,), f"Start it once with `wrap {FLAG}`."
        )

    def doors(
        self, program: Program, place: AgentPlace, facts: Mapping[str, str], listener: DoorListener[Observation]
    ) -> list[Door]:  # fmt: skip
        if not facts.get("codex"):
            return []
        profile = load_profiles()["codex"]
        since = facts.get("since", "")
        codex = Codex(
            facts["codex"], program.environment, program.cwd, home_of_cli("codex", program), profile, facts.get("mark", ""),
            int(since) if since.isdecimal() else 0,
        )  # fmt: skip
        hooks = facts.get("hooks", "")
        doors: list[Door] = [CodexServer(facts["server"], place, listener)] if facts.get("server") else []
        if doors or hooks or codex.mark:
            doors.append(CodexQueue(codex, place, listener, hooks))
        if hooks:
            doors.append(CodexStopHook(codex, hooks, place, listener))
        return doors


def _socket_path(place: AgentPlace, mark: str) -> str:
    """In the agent's folder, or in a short place of the user's own where that path is too long for a socket. Each start has
    another: the server of the last one may still be ending, and takes its own along."""
    folder, name = place.folder, "codex"
    if len(os.fsencode(os.path.join(folder, f"{name}-{mark}.sock"))) > MAX_SOCKET_PATH_BYTES:
        folder, name = os.path.join(short_socket_directory(os.getuid()), place.project_id), f"{place.agent}.codex"
        make_private_folder(folder)
    for left in Path(folder).glob(f"{name}-*.sock"):
        left.unlink(missing_ok=True)
    return os.path.join(folder, f"{name}-{mark}.sock")


def _launch(path: str, log: str, given: Arguments, told: list[str], plain: list[str]) -> list[str]:
    server = [given.program, "app-server", "--listen", f"unix://{path}", *given.settings, *told]
    shown = given.with_flags(["--remote", f"unix://{path}"])
    words = [path, log, str(len(server)), str(len(shown)), *server, *shown, *plain]
    return run_script(str(LAUNCHER), *words)


def _environment_flags(environment: Mapping[str, str]) -> list[str]:
    """For what the agent runs on a server that it shares with others."""
    ours = sorted(name for name in environment if name.startswith(_OURS))
    return [word for name in ours for word in ("-c", f"shell_environment_policy.set.{name}={_toml(environment[name])}")]


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _settings(program: Program) -> str:
    """The text of all the files that Codex reads settings from, as far as somebody may have put ours there."""
    home = home_of_cli("codex", program)
    folders = [Path(program.cwd), *Path(program.cwd).parents]
    paths = [home / "config.toml", *(folder / ".codex" / "config.toml" for folder in folders), *_SYSTEM.glob("*.toml")]
    return "\n".join(_read(path) for path in paths)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
