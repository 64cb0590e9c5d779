"""The plan of a bridge: who is joined to which relay, and as whom, from flags, or from a file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_relay.protocol.arc.ids import is_agent_id
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import check_agent_name, fold_name

_KEYS = {"url", "map", "peers", "broadcasts"}


@dataclass(frozen=True, slots=True)
class Plan:
    url: str
    joined: dict[str, str]  # the project's agents, and their ids over there
    peers: dict[str, str] = field(default_factory=dict)  # agents over there, and their names in the project
    broadcasts: bool = False  # whether what is sent to everybody over there is handed on


def read_pairs(texts: Iterable[str], what: str) -> dict[str, str]:
    """`a=b`, several times; where `=b` may be left out, the name is the same on both sides."""
    pairs: dict[str, str] = {}
    for text in texts:
        left, _, right = text.partition("=")
        if left in pairs:
            raise _wrong(f"{what} {left} was given twice.")
        pairs[left] = right or left
    return pairs


def make_plan(url: str, joined: Mapping[str, str], peers: Mapping[str, str], *, broadcasts: bool) -> Plan:
    """Raises RelayError for what cannot be."""
    if not joined:
        raise _wrong("No agents to bridge: list them with --map Alice=alice-acme.")
    for local in [*joined, *peers.values()]:
        check_agent_name(local)
    for remote in [*joined.values(), *peers]:
        if not is_agent_id(remote):
            raise _wrong(f"{remote!r} is not a valid ARC agent id: use 3 to 64 of a-z, 0-9 and hyphens, no hyphen at either end.")
    if len(set(joined.values())) < len(joined):
        raise _wrong("Two agents cannot have the same remote id.")
    folded = [fold_name(name) for name in [*joined, *peers.values()]]
    if len(set(folded)) < len(folded):
        raise _wrong("A local name can only stand for one agent.")
    if own := set(peers) & set(joined.values()):
        raise _wrong(f"{', '.join(sorted(own))} is already the remote id of a local agent.")
    return Plan(url, dict(joined), dict(peers), broadcasts)


def read_plan(content: str, name: str) -> Plan:
    """From a file: `url`, a table `map`, and where wanted a table `peers` and `broadcasts`."""
    try:
        said: dict[str, Any] = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise _wrong(f"{name} is not valid TOML: {error}.") from None
    if unknown := said.keys() - _KEYS:
        raise _wrong(f"{name}: unknown key {', '.join(sorted(unknown))}; use {', '.join(sorted(_KEYS))}.")
    url = said.get("url")
    if not isinstance(url, str):
        raise _wrong(f"{name} has no `url` of the relay.")
    return make_plan(url, _texts(said, "map", name), _texts(said, "peers", name), broadcasts=said.get("broadcasts") is True)


def _texts(said: dict[str, Any], key: str, name: str) -> dict[str, str]:
    table = said.get(key, {})
    if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
        raise _wrong(f"`{key}` in {name} must be a table of names.")
    return table


def _wrong(sentence: str) -> RelayError:
    return RelayError(ErrorCode.INVALID_TARGET, sentence)
