"""The rules of a host of the cluster, as its owner set them: which other hosts may control what runs there, what agents may do,
and which permissions need no person.

An edge says its own when it links itself to the seat, and they hold for what runs on that edge alone.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from agent_relay.core.policy import DEFAULT_RULES, Policy, Rule

EVERY_HOST = "*"


class _Encoded(Struct, array_like=True):
    control: list[str] = []
    agent_rights: list[tuple[str, str]] = []
    rules: list[Rule] = []
    tightening: list[Rule] = []
    timeout_ms: int | None = None


class HostRules:
    """Without any of a host's own: nobody elsewhere may control anything there, and its agents have no rights."""

    def __init__(
        self, control: frozenset[str] = frozenset(), agent_rights: frozenset[tuple[str, str]] = frozenset(),
        policy: Policy | None = None,
    ) -> None:  # fmt: skip
        self.control = control
        self.agent_rights = agent_rights
        self.policy = policy or Policy()

    def grants(self, host: str) -> bool:
        """Whether the people of that host may control what runs here."""
        return EVERY_HOST in self.control or host in self.control


NO_RULES = HostRules()


def encode_rules(rules: HostRules) -> bytes:
    policy = rules.policy
    own = list(policy.rules[: len(policy.rules) - len(DEFAULT_RULES)])
    return msgspec.msgpack.encode(
        _Encoded(sorted(rules.control), sorted(rules.agent_rights), own, list(policy.tightening), policy.timeout_ms)
    )


def decode_rules(data: bytes) -> HostRules:
    """As another host says. What cannot be read grants nothing."""
    try:
        found = msgspec.msgpack.decode(data, type=_Encoded)
    except (msgspec.MsgspecError, ValueError):
        return NO_RULES
    return HostRules(
        frozenset(found.control), frozenset(found.agent_rights), Policy(found.rules, found.timeout_ms, found.tightening)
    )
