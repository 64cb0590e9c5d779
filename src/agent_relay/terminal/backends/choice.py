"""The choice of a backend for a program: what was asked for, or the better one that is there."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from agent_relay.terminal.backends.terminal import BackendMissing
from agent_relay.terminal.backends.tmux_program import Tmux, find_tmux


class Backend(StrEnum):
    AUTO = "auto"
    TMUX = "tmux"
    PTY = "pty"


class Choice(Struct, frozen=True):
    """`backend` is never AUTO; `reason` says why it is not tmux, where it is not."""

    backend: Backend
    tmux: Tmux | None = None
    reason: str = ""


def choose_backend(wanted: Backend | str, search_path: str | None = None) -> Choice:
    """Raises BackendMissing when tmux was asked for by name and cannot be used. `auto` takes it when it can."""
    try:
        backend = Backend(wanted)
    except ValueError:
        raise BackendMissing(f"There is no backend {wanted!r}; use auto, tmux or pty.") from None
    if backend is Backend.PTY:
        return Choice(Backend.PTY, reason="asked for")
    try:
        return Choice(Backend.TMUX, find_tmux(search_path))
    except BackendMissing as error:
        if backend is Backend.TMUX:
            raise
        return Choice(Backend.PTY, reason=str(error))
