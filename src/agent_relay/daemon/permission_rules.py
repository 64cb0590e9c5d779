"""The table `[permissions]` of config.toml: rules before the default ones, and a time after which nobody's answer is a no.

    [permissions]
    timeout = "10m"

    [[permissions.rules]]
    tools = ["bash"]
    commands = ["make test", "pytest *"]
    decision = "approve"

The project's file may make rules stricter, never laxer: it comes with the project, and the agents it is about can write it.
So what approves is taken from the owner's file alone, a rule of the project's counts where it is stricter than what the owner's
rules say, and of two times the shorter one.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Struct

from agent_relay.core.policy import Policy, Rule, Ruling
from agent_relay.core.risk import Risk
from agent_relay.daemon.config_files import ConfigFile
from agent_relay.protocol.durations import parse_duration_ms

PERMISSIONS_KEY = "permissions"
_Patterns = str | tuple[str, ...]


class _RuleTable(Struct, frozen=True, forbid_unknown_fields=True):
    decision: Ruling
    tools: _Patterns | None = None
    commands: _Patterns | None = None
    words: _Patterns | None = None
    files: _Patterns | None = None
    in_project: bool = False
    risk: Risk | None = None
    reason: str = ""


class _PermissionsTable(Struct, frozen=True, forbid_unknown_fields=True):
    rules: tuple[_RuleTable, ...] = ()
    timeout: str | Annotated[int, msgspec.Meta(le=2**53)] | None = None


def read_policy(project: ConfigFile, own: ConfigFile, notes: list[str]) -> Policy:
    """Raises ValueError with a sentence that names the rule of the owner's file that cannot be used; what cannot be used of the
    project's is left out and noted."""
    table = _read_table(own)
    rules = [_make_rule(f"{own.path}: rule {number} of {PERMISSIONS_KEY}", given) for number, given in enumerate(table.rules, 1)]
    times = [] if table.timeout is None else [_read_time(own.path, table.timeout)]
    tightening: list[Rule] = []
    try:
        table = _read_table(project)
        if table.timeout is not None:
            times.append(_read_time(project.path, table.timeout))
    except ValueError as error:
        notes.append(f"{error} It is ignored.")
        table = _PermissionsTable()
    for number, given in enumerate(table.rules, 1):
        where = f"{project.path}: rule {number} of {PERMISSIONS_KEY}"
        if given.decision is Ruling.APPROVE:
            notes.append(f"{where} is ignored: only rules in {own.path} may approve; this file comes with the project.")
            continue
        try:
            tightening.append(_make_rule(where, given))
        except ValueError as error:
            notes.append(f"{error} It is ignored.")
    return Policy(rules, min(times, default=None), tightening)


def _read_table(file: ConfigFile) -> _PermissionsTable:
    try:
        return msgspec.convert(file.content.get(PERMISSIONS_KEY, {}), _PermissionsTable)
    except msgspec.ValidationError as error:
        raise ValueError(f"{file.path}: {PERMISSIONS_KEY} cannot be used: {error}.") from None


def _make_rule(where: str, given: _RuleTable) -> Rule:
    if given.decision is Ruling.APPROVE and given.tools is None:
        raise ValueError(f'{where} approves without naming tools; write tools = "*" if you mean every one.')
    conditions = {name: getattr(given, name) for name in ("tools", "commands", "words", "files")}
    patterns = {name: _as_tuple(value) for name, value in conditions.items() if value is not None}
    if any(not found or "" in found for found in patterns.values()):
        raise ValueError(f"{where} has an empty condition; remove it.")
    try:
        return Rule(given.decision, **patterns, in_project=given.in_project, risk=given.risk, reason=given.reason)
    except ValueError as error:
        raise ValueError(f"{where} cannot be used: {error}.") from None


def _as_tuple(patterns: _Patterns) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else patterns


def _read_time(path: str, text: str | int) -> int:
    try:
        time_ms = parse_duration_ms(str(text))
    except ValueError:
        time_ms = 0
    if time_ms < 1:
        raise ValueError(f"{path}: timeout in {PERMISSIONS_KEY}: {text!r} is invalid; it must be a duration such as 30s or 10m.")
    return time_ms
