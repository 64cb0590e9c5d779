"""Permission modes of each CLI by its own names, and the options that choose one when the CLI is started.

The names are those of the CLIs' own command lines (goose: of its variable). A mode in which nobody is asked, also one in which
a model decides in a person's place, is marked: such a one is only for whoever runs the daemon to allow.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class StartOptions(Struct, frozen=True):
    """Arguments and variables that a CLI is started with."""

    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = {}


class PermissionMode(StartOptions, frozen=True):
    asks_nobody: bool = False


def _claude(mode: str, *, asks_nobody: bool = False) -> PermissionMode:
    return PermissionMode(("--permission-mode", mode), asks_nobody=asks_nobody)


def _codex(sandbox: str, approval: str, *, asks_nobody: bool = False) -> PermissionMode:
    return PermissionMode(("--sandbox", sandbox, "--ask-for-approval", approval), asks_nobody=asks_nobody)


def _gemini(mode: str, *, asks_nobody: bool = False) -> PermissionMode:
    return PermissionMode(("--approval-mode", mode), asks_nobody=asks_nobody)


def _goose(mode: str, *, asks_nobody: bool = False) -> PermissionMode:
    return PermissionMode(environment={"GOOSE_MODE": mode}, asks_nobody=asks_nobody)


PERMISSION_MODES: dict[str, dict[str, PermissionMode]] = {
    "claude": {
        "default": _claude("default"),
        "manual": _claude("manual"),  # what newer versions call it
        "plan": _claude("plan"),
        "acceptEdits": _claude("acceptEdits"),
        "dontAsk": _claude("dontAsk"),  # whatever would be asked is denied
        "auto": _claude("auto", asks_nobody=True),
        "bypassPermissions": _claude("bypassPermissions", asks_nobody=True),
    },
    "codex": {
        "read-only": _codex("read-only", "on-request"),
        "workspace-write": _codex("workspace-write", "on-request"),
        "approve-for-me": PermissionMode(("--approve-for-me",), asks_nobody=True),
        "danger-full-access": _codex("danger-full-access", "never", asks_nobody=True),
    },
    "gemini": {
        "default": _gemini("default"),
        "plan": _gemini("plan"),
        "auto_edit": _gemini("auto_edit"),
        "yolo": _gemini("yolo", asks_nobody=True),
    },
    "opencode": {
        "build": PermissionMode(("--agent", "build")),
        "plan": PermissionMode(("--agent", "plan")),
        "auto": PermissionMode(("--auto",), asks_nobody=True),
    },
    "aider": {
        "ask": PermissionMode(("--chat-mode", "ask")),
        "yes-always": PermissionMode(("--yes-always",), asks_nobody=True),
    },
    "goose": {
        "chat": _goose("chat"),
        "approve": _goose("approve"),
        "smart_approve": _goose("smart_approve"),
        "auto": _goose("auto", asks_nobody=True),
    },
}


def modes_of(cli: str) -> Mapping[str, PermissionMode]:
    """By name; none for a program that the relay does not know. A path counts by its last part, as everywhere."""
    return PERMISSION_MODES.get(cli.rpartition("/")[2], {})
