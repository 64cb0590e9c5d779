"""Rules on starting agents: names, programs, variables, how many and how fast."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from agent_relay.core.context import Context
from agent_relay.core.limits import Limits
from agent_relay.core.rights import is_persons_name
from agent_relay.protocol.clis import KNOWN_CLIS, TRANSPORTS
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.models import is_model, takes_model
from agent_relay.protocol.names import check_agent_name, show
from agent_relay.protocol.payloads import SpawnPayload
from agent_relay.protocol.permission_modes import modes_of
from agent_relay.protocol.places import ENV_PREFIX

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent

BACKENDS = ("auto", "tmux", "pty")
_MINUTE_MS = 60_000
_RETRY_MS = 10_000


def check_wish(asked: SpawnPayload, limits: Limits) -> None:
    """Raises RelayError."""
    check_name(asked, limits)
    check_program(asked, limits)


def check_name(asked: SpawnPayload, limits: Limits) -> None:
    check_agent_name(asked.name)
    if is_persons_name(asked.name, limits.owner):
        raise RelayError(
            ErrorCode.INVALID_TARGET, f"{asked.name} is the name of the relay's owner; choose another for the agent.",
            field="payload.name", name=asked.name,
        )  # fmt: skip


def check_program(asked: SpawnPayload, limits: Limits) -> None:
    """By the rules of the host that it is to run on. A program is a name of the list and nothing else: no path, no arguments, no
    shell."""
    if asked.cli not in KNOWN_CLIS and asked.cli not in limits.spawn_allow:
        known = ", ".join(sorted(KNOWN_CLIS | limits.spawn_allow))
        raise RelayError(
            ErrorCode.INVALID_TARGET,
            f"{show(asked.cli)} may not be started here; allowed: {known}. The setting spawn_allow adds more.",
            field="payload.cli", reason="cli_not_allowed",
        )  # fmt: skip
    if asked.backend not in BACKENDS:
        raise RelayError(
            ErrorCode.INVALID_FORMAT, f"Unknown backend {show(asked.backend)}; use auto, tmux or pty.",
            field="payload.backend",
        )  # fmt: skip
    if asked.transport not in TRANSPORTS:
        raise RelayError(
            ErrorCode.INVALID_FORMAT, f"Unknown transport {show(asked.transport)}; use {' or '.join(TRANSPORTS)}.",
            field="payload.transport",
        )  # fmt: skip
    check_environment(asked.environment, limits)
    check_model(asked.cli, asked.model)
    if asked.permission_mode is not None:
        check_permission_mode(asked.cli, asked.permission_mode, limits)


def check_environment(environment: Mapping[str, str], limits: Limits) -> None:
    """Only variables that the settings allow: many others make a program run something else (LD_PRELOAD, PATH, NODE_OPTIONS)."""
    for name, value in environment.items():
        is_allowed = any(fnmatchcase(name, pattern) for pattern in limits.spawn_environment)
        if not is_allowed or name.upper().startswith(ENV_PREFIX) or "=" in name or "\0" in name + value:
            allowed = ", ".join(limits.spawn_environment) or "none"
            raise RelayError(
                ErrorCode.INVALID_TARGET, f"The variable {show(name)} may not be set for an agent; allowed: {allowed}. "
                "Whoever runs the daemon can allow others with the setting spawn_environment.",
                field="payload.environment", reason="environment_not_allowed", allowed=list(limits.spawn_environment),
                setting="spawn_environment",
            )  # fmt: skip


def check_model(cli: str, wanted: str | None) -> None:
    if wanted is None:
        return
    if not is_model(wanted):
        raise RelayError(
            ErrorCode.INVALID_FORMAT, f"{show(wanted)} cannot be a model: use letters, digits, and . _ : / @ + - [ ].",
            field="payload.model",
        )  # fmt: skip
    if not takes_model(cli):
        raise RelayError(
            ErrorCode.INVALID_TARGET, f"The relay does not know how to choose a model for {show(cli)}; leave the model out.",
            field="payload.model", reason="model_unknown",
        )  # fmt: skip


def check_permission_mode(cli: str, wanted: str, limits: Limits) -> None:
    modes = modes_of(cli)
    if wanted not in modes:
        known = f"it has {', '.join(modes)}" if modes else "the relay knows none for it"
        raise RelayError(
            ErrorCode.INVALID_TARGET, f"{show(cli)} has no permission mode {show(wanted)}: {known}.",
            field="payload.permission_mode", reason="mode_unknown", known=list(modes),
        )  # fmt: skip
    if modes[wanted].asks_nobody and wanted not in limits.spawn_unattended:
        raise RelayError(
            ErrorCode.INVALID_TARGET, f"The permission mode {wanted} asks nobody, so it is only allowed if whoever "
            f"runs the daemon lists it in the setting spawn_unattended.",
            field="payload.permission_mode", reason="mode_not_allowed", setting="spawn_unattended",
        )  # fmt: skip


def choose_wall(asked: SpawnPayload, spawner: Agent | None) -> dict[str, str] | None:
    """The wall around whoever asks: nobody behind one starts an agent in front of it."""
    own = None if spawner is None else spawner.traits.meta.get("sandbox")
    if isinstance(own, dict):
        return {str(name): str(value) for name, value in own.items()}
    return {} if asked.sandbox else None


class StartPace:
    """The number started in the last minute."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._started: deque[int] = deque()

    def check(self, running: int) -> None:
        limits, now = self._context.limits, self._context.steady_ms
        if running >= limits.max_agents:
            raise RelayError(
                ErrorCode.RATE_LIMITED, f"{running} agents are running, which is the maximum; release one first.",
                retry_after_ms=_RETRY_MS, reason="too_many_agents",
            )  # fmt: skip
        while self._started and self._started[0] <= now - _MINUTE_MS:
            self._started.popleft()
        if len(self._started) >= limits.spawns_per_minute:
            raise RelayError(
                ErrorCode.RATE_LIMITED, f"{len(self._started)} agents were started in the last minute, which is the maximum.",
                retry_after_ms=self._started[0] + _MINUTE_MS - now, reason="too_fast",
            )  # fmt: skip

    def note(self) -> None:
        self._started.append(self._context.steady_ms)
