"""The five CLIs: how each is started against the scripted model with its first dialogs answered, and what it shows.

Every CLI gets a home of its own, so that nothing of the person's is read or written.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from agent_relay.terminal.doors.gemini.launch import EXTENSION

KEY = "sk-test"
LINK_S = 240.0

_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
}


class Launch(NamedTuple):
    argv: list[str]
    environment: Mapping[str, str]


class RealCli(NamedTuple):
    name: str
    prepare: Callable[[Path, Path, str], Launch]  # its home, the project, the address of the model
    dialog: str  # what its permission dialog shows, and nothing else does
    approve: tuple[str, ...]  # the keys a person presses to permit it
    has_transcript: bool = True  # a session file of its own, which says what it was given
    joins_lines: bool = False  # on its screen, which is all there is to read
    asks: bool = True  # for permissions
    dismiss: tuple[str, str] = ("", "")  # words of something that comes up at its start, and the key that a person presses there
    admit: Callable[[Path, Mapping[str, str]], None] | None = None  # what a person does once, in this home, to let its door in

    def as_heard(self, body: str) -> str:
        """A body as it comes out of its answer."""
        if not self.joins_lines:
            return body
        return "\n\n".join(" ".join(paragraph.split()) for paragraph in body.split("\n\n"))

    @property
    def hearing(self) -> str:
        if self.has_transcript:
            return "word for word"
        return "as its screen shows it" + (": lines are joined" if self.joins_lines else "")


def write(path: Path, data: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data), "utf-8")


def _claude(home: Path, project: Path, url: str) -> Launch:
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    known = {"approved": [KEY], "rejected": []}
    seen = {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": known, "projects": {str(project): trusted}}
    write(home / ".claude.json", seen)
    return Launch(["claude", "--permission-mode", "default"], {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY})


_CODEX = """\
model = "scripted-model"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"

[projects."{project}"]
trust_level = "trusted"
"""


def _codex(home: Path, project: Path, url: str) -> Launch:
    write(home / ".codex" / "config.toml", _CODEX.format(url=url, project=project))
    environment = {"SCRIPTED_KEY": KEY, "CODEX_HOME": str(home / ".codex")}
    return Launch(["codex", "-a", "on-request", "-s", "read-only"], environment)


def _gemini(home: Path, project: Path, url: str) -> Launch:
    del project
    security = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    quiet = {"disableAutoUpdate": True, "disableUpdateNag": True, "enableAutoUpdate": False}
    write(home / ".gemini" / "settings.json", {"security": security, "general": quiet})
    environment = {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": KEY, "GEMINI_TELEMETRY_ENABLED": "false"}
    return Launch(["gemini"], environment)


def _link_extension(home: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        ["gemini", "extensions", "link", str(EXTENSION)], cwd=home, env=environment, input="y\n",
        capture_output=True, text=True, timeout=LINK_S, check=False,
    )  # fmt: skip
    assert (home / ".gemini" / "extensions" / "agent-relay").is_dir(), done


def _opencode(home: Path, project: Path, url: str) -> Launch:
    del project
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"scripted-model": {"name": "Scripted Model"}},
    }
    settings = {
        "provider": {"scripted": provider},
        "model": "scripted/scripted-model",
        "small_model": "scripted/scripted-model",
        "permission": {"bash": "ask", "edit": "ask"},
        "autoupdate": False,
        "share": "disabled",
    }
    write(home / ".config" / "opencode" / "opencode.json", settings)
    names = ("OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD")
    return Launch(["opencode"], dict.fromkeys(names, "1"))


def _aider(home: Path, project: Path, url: str) -> Launch:
    del home, project
    flags = ["--no-git", "--no-gitignore", "--no-analytics", "--no-show-release-notes", "--map-tokens", "0"]
    where = ["--model", "openai/scripted-model", "--openai-api-base", f"{url}/v1", "--edit-format", "diff"]
    return Launch(["aider", *where, *flags], {"OPENAI_API_KEY": KEY, "AIDER_ANALYTICS": "false"})


CLIS = {
    cli.name: cli
    for cli in (
        RealCli("claude", _claude, "Do you want to proceed", ("Enter",)),
        RealCli("codex", _codex, "Would you like to run", ("Enter",)),
        RealCli("gemini", _gemini, "Allow execution", ("Enter",), admit=_link_extension),
        RealCli("opencode", _opencode, "Permission required", ("Enter",), has_transcript=False),
        RealCli("aider", _aider, "Run shell command", ("y", "Enter"), has_transcript=False, joins_lines=True),
    )
}


def environment_of(home: Path) -> dict[str, str]:
    """What is the same for all. `XDG_RUNTIME_DIR`: some keep sockets there, which must not meet those of other runs."""
    folders = {"HOME": home, "TMPDIR": home / "tmp", "XDG_RUNTIME_DIR": home / "run"}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return {**_QUIET, "LANG": "C.UTF-8", "SHELL": "/bin/sh", **{name: str(folder) for name, folder in folders.items()}}
