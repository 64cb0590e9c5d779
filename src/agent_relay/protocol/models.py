"""Models: how each CLI is told which one to use when it is started."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agent_relay.protocol.permission_modes import StartOptions

_OPTION = ("--model",)
_BY_OPTION = frozenset({"aider", "claude", "codex", "gemini", "opencode"})
_BY_VARIABLE: Mapping[str, str] = {"goose": "GOOSE_MODEL"}
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+\[\]-]{0,127}", re.ASCII)  # no option, whatever stands there


def is_model(text: str) -> bool:
    return _MODEL.fullmatch(text) is not None


def takes_model(cli: str) -> bool:
    return cli in _BY_OPTION or cli in _BY_VARIABLE


def choose_model(cli: str, model: str | None) -> StartOptions:
    """The arguments and variables that choose it."""
    if model is None:
        return StartOptions()
    if cli in _BY_VARIABLE:
        return StartOptions(environment={_BY_VARIABLE[cli]: model})
    return StartOptions((*_OPTION, model))
