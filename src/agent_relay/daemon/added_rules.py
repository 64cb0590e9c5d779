"""Rules that a person adds from the page: each made for an open request, checked, and written at the end of the owner's file.

What is made with a click may allow less than what somebody writes into config.toml with care: no pattern for the program itself,
none for a program that runs whatever it is given, none for a command that destroys, files of the project only, nothing private.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import tomllib
from contextlib import suppress

from agent_relay.core.policy import Policy, Rule, Ruling
from agent_relay.core.risk import DESTRUCTIVE_WORDS, Risk, has_word, is_plain
from agent_relay.daemon.config_files import ConfigFile
from agent_relay.daemon.permission_rules import PERMISSIONS_KEY, read_policy
from agent_relay.ports.permission_rules import RuleShape
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.requests import PermissionRequest
from agent_relay.protocol.tool_names import EDIT, LIST, READ, SHELLS, WRITE, kind_of

_FILES = frozenset({READ, LIST, EDIT, WRITE})
_WILD = "*?["
_ESCAPES = str.maketrans({sign: f"[{sign}]" for sign in _WILD})  # a name that holds one is meant as it stands
# Whoever may give these any words may run anything.
_RUNNERS = frozenset({
    "bash", "sh", "zsh", "dash", "fish", "ksh", "csh", "tcsh", "pwsh", "env", "sudo", "doas", "su", "xargs", "eval",
    "exec", "nohup", "time", "timeout", "nice", "watch", "parallel", "find", "ssh", "docker", "podman", "kubectl",
    "python", "python3", "node", "deno", "bun", "perl", "ruby", "php", "lua", "osascript", "npx", "uvx", "pipx",
    "awk", "gawk", "sed", "tar", "rsync", "vi", "vim", "nvim", "emacs", "gdb", "strace", "script", "flock", "setsid", "stdbuf",
    "chroot", "unshare", "nsenter", "screen", "tmux", "crontab", "at", "systemd-run",
})  # fmt: skip
# What they do is their second word; options before it, as in `git -c`, and these second words run anything as well.
_COMMANDED = frozenset({"git", "npm", "pnpm", "yarn", "cargo", "go", "uv", "pip", "pip3", "gh", "poetry", "dotnet", "gradle"})
_RUNNING = frozenset({"run", "exec", "x", "dlx", "tool", "config", "alias", "rebase", "bisect", "submodule", "generate"})
_MOST_CHARACTERS = 500
_REASON = "You allowed requests like this."


class AddedRules:
    """Implements `ports.PermissionRules`. `policy` is the one the relay judges by, `path` the owner's config.toml."""

    def __init__(self, policy: Policy, path: str) -> None:
        self._policy = policy
        self._path = os.path.realpath(path)  # where it is a link, what that leads to is changed

    def shape(self, asked: PermissionRequest) -> RuleShape:
        kind = kind_of(asked.tool)
        if not asked.is_exact:
            raise _refused("It was read off a screen, which may not show all of it. A person decides about such requests.")
        if kind in SHELLS and asked.command:
            if not is_plain(asked.command):
                raise _refused(
                    "Rules approve plain commands alone: words of letters, digits and . _ - / : = , @ + with single spaces. "
                    "In this one there is more, so a person decides."
                )
            if self._policy.judge(asked).risk is Risk.CRITICAL:
                raise _refused("It can destroy something. A person decides about such commands each time.")
            return RuleShape(kind, "command", asked.command, _widen(asked.command))
        if kind in _FILES and asked.real_path and asked.project_root:
            exact = asked.real_path.translate(_ESCAPES)
            folder = os.path.dirname(asked.real_path)
            shape = RuleShape(kind, "file", exact, f"{folder.translate(_ESCAPES)}/*" if folder != asked.project_root else "")
            if not _rule(shape, exact).fits(asked):
                raise _refused("The file is outside of the agent's project, or private. A person decides about those.")
            return shape
        raise _refused("There is neither a command nor a file of the project by which a rule could know it again.")

    def check(self, asked: PermissionRequest, pattern: str) -> None:
        shape = self.shape(asked)
        if not pattern.strip() or len(pattern) > _MOST_CHARACTERS or not pattern.isprintable():
            raise _refused(f"A pattern has 1 to {_MOST_CHARACTERS} characters that can be seen.")
        fixed = pattern[: min((at for at in map(pattern.find, _WILD) if at >= 0), default=len(pattern))]
        if shape.about == "command":
            _check_command(pattern, fixed)
        elif not fixed.startswith(f"{asked.project_root}/"):
            raise _refused(f"The pattern must begin with the agent's project: {asked.project_root}/")
        if not _rule(shape, pattern).fits(asked):
            raise _refused("The rule would not fit this request itself.")

    def approves(self, other: PermissionRequest) -> bool:
        return self._policy.judge(other).decision is Ruling.APPROVE

    def would_approve(self, asked: PermissionRequest, pattern: str, other: PermissionRequest) -> bool:
        return self._policy.with_rule(_rule(self.shape(asked), pattern)).judge(other).decision is Ruling.APPROVE

    def add(self, asked: PermissionRequest, pattern: str) -> str:
        self.check(asked, pattern)
        shape = self.shape(asked)
        block = _write(shape, pattern)
        try:
            self._append(block)
        except OSError as error:
            sentence = f"{self._path} cannot be written ({error.strerror or error})."
            raise RelayError(ErrorCode.SERVICE_UNAVAILABLE, sentence) from None
        self._policy.add(_rule(shape, pattern))
        return self._path

    def _append(self, block: str) -> None:
        """One at a time, over all the owner's daemons; whoever reads meanwhile finds the old file."""
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        lock = os.open(f"{self._path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._append_alone(block)
        finally:
            os.close(lock)

    def _append_alone(self, block: str) -> None:
        """Refuses a file that the next start could not read, before it is written."""
        try:
            with open(self._path, encoding="utf-8") as file:
                before, mode = file.read(), os.fstat(file.fileno()).st_mode & 0o777
        except FileNotFoundError:
            before, mode = "", 0o600
        text = f"{before.rstrip()}\n\n{block}".lstrip()
        try:
            found = tomllib.loads(text)
            read_policy(ConfigFile("", {}), ConfigFile(self._path, {PERMISSIONS_KEY: found.get(PERMISSIONS_KEY, {})}), [])
        except ValueError as error:
            sentence = f"The rule cannot be added to {self._path} as that is written ({error}). Add it by hand:\n{block}"
            raise _refused(sentence) from None
        _replace(self._path, text, mode)


def _widen(command: str) -> str:
    """A pattern for more commands of this kind, as narrow as it can sensibly be."""
    words = command.split(" ")
    said = _said_words(words[0])
    if len(words) < 2 or (said > 1 and len(words) == said):
        return ""
    pattern = f"{' '.join(words[:said])} *"
    try:
        _check_command(pattern, pattern[:-1])
    except RelayError:
        return ""
    return pattern


def _said_words(program: str) -> int:
    """The number of its words that say what it does."""
    return 2 if os.path.basename(program) in _COMMANDED else 1


def _check_command(pattern: str, fixed: str) -> None:
    if not is_plain("".join(sign for sign in pattern.replace("*", "x").replace("?", "x") if sign not in "[]!")):
        raise _refused("A pattern for commands has letters, digits, single spaces, . _ - / : = , @ + and the wildcards * ? […].")
    if has_word(pattern, DESTRUCTIVE_WORDS):
        raise _refused("A command that can destroy something is not approved by a rule from here.")
    if fixed == pattern:
        return
    program, *whole = fixed.split(" ")[:-1] or [""]
    program = os.path.basename(program)
    if not program:
        raise _refused("Name the whole program before the first wildcard, such as `make *`.")
    if program in _COMMANDED and (not whole or whole[0].startswith("-")):
        raise _refused(f"Name the command of {program} before the first wildcard, such as `git status *`.")
    if program in _RUNNERS or (program in _COMMANDED and whole[0] in _RUNNING):
        does = program if program in _RUNNERS else f"{program} {whole[0]}"
        raise _refused(f"{does} runs whatever it is given: such a rule would approve anything. Allow exact commands of it.")


def _rule(shape: RuleShape, pattern: str) -> Rule:
    if shape.about == "command":
        return Rule(Ruling.APPROVE, tools=(shape.tool,), commands=(pattern,), reason=_REASON)
    return Rule(Ruling.APPROVE, tools=(shape.tool,), files=(pattern,), in_project=True, reason=_REASON)


def _write(shape: RuleShape, pattern: str) -> str:
    """As TOML, whose strings in double quotes are those of JSON."""
    lines = ["[[permissions.rules]]", f"tools = [{json.dumps(shape.tool)}]"]
    if shape.about == "command":
        lines.append(f"commands = [{json.dumps(pattern)}]")
    else:
        lines += [f"files = [{json.dumps(pattern)}]", "in_project = true"]
    return "\n".join([*lines, 'decision = "approve"', f"reason = {json.dumps(_REASON)}", ""])


def _replace(path: str, text: str, mode: int) -> None:
    number, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".config-")
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _refused(sentence: str) -> RelayError:
    return RelayError(ErrorCode.INVALID_FORMAT, sentence, field="pattern", reason="no_rule")
