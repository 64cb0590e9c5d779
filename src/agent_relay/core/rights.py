"""Rights of agents beside sending messages, and the one who may grant them: the owner alone, by the setting `agent_rights`.

Each host of a cluster has an owner of its own: an agent needs the right by the setting of the host it runs on, and whoever wants
to control something on another host, by the setting of that one (`cluster_control`).

An agent is a connection that holds a wrapped name, or a process in such an agent's terminal, whatever it says it is.
Everybody else of the same user is the owner, who may do everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_relay.core.host_rules import NO_RULES, HostRules
from agent_relay.core.policy import Policy
from agent_relay.ports.callers import VIA_RELAY, Caller
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name, spare_names

if TYPE_CHECKING:
    from agent_relay.core.context import Context
    from agent_relay.core.peer import Peer

EVERYBODY = "*"
APPROVE, CONTROL, SPAWN, SPAWN_ANY, RETRY, NAMES, BUDGET, ADMIN = (
    "approve", "control", "spawn", "spawn-any", "retry", "names", "budget", "admin",
)  # fmt: skip
RIGHTS = {
    APPROVE: "answer agents' requests to a person",
    CONTROL: "type to agents, pause, resume, interrupt or stop them, or let them join and leave channels",
    SPAWN: "start agents, and release those it started",
    SPAWN_ANY: "choose how an agent is started, or release one that others started",
    RETRY: "send dead letters again, or dismiss them",
    NAMES: "send under another name",
    BUDGET: "set budgets",
    ADMIN: "change how the relay is set up",
}


def parse_rights(text: str) -> frozenset[tuple[str, str]]:
    """`Lead:approve,*:spawn`, or `none`; raises ValueError."""
    words = text.replace(",", " ").split()
    if words == ["none"]:
        return frozenset()
    pairs = [tuple(word.partition(":")[::2]) for word in words]
    if not all(name and right in RIGHTS for name, right in pairs):
        known = ", ".join(RIGHTS)
        raise ValueError(f"none, or pairs such as Lead:approve or *:spawn, separated by commas; the rights are {known}")
    return frozenset((fold_name(name), right) for name, right in pairs)


def is_persons_name(name: str, owner: str) -> bool:
    """Whether it is the name of the daemon's user, or stands in for it."""
    return bool(owner) and fold_name(name) in {fold_name(each) for each in spare_names(owner)}


class Rights:
    def __init__(self, context: Context, policy: Policy | None = None) -> None:
        self._context = context
        own = HostRules(context.limits.cluster_control, context.limits.agent_rights, policy)
        self._rules = {context.host: own}  # by host

    def learn(self, host: str, rules: HostRules | None) -> None:
        """The rules of another host; None: it is gone."""
        if host == self._context.host:
            return
        self._rules.pop(host, None)
        if rules is not None:
            self._rules[host] = rules

    def policy_of(self, host: str) -> Policy:
        """The rules on permissions of what runs there."""
        return self._rules_of(host).policy

    def _rules_of(self, host: str) -> HostRules:
        return self._rules.get(host or self._context.host, NO_RULES)

    def caller_of(self, peer: Peer) -> Caller:
        """A wrapper speaks for its agent, whichever process it is."""
        if peer.takes_control and peer.agent is not None:
            return Caller(peer.agent.name, host=peer.cluster_host)
        return peer.connection.caller()

    def check(self, caller: Caller, right: str) -> None:
        """Raises RelayError."""
        if caller.is_lost:
            raise RelayError(
                ErrorCode.PERMISSION_DENIED, "The process that opened this connection has ended, so the caller cannot be "
                "identified; connect again.", reason="caller_lost",
            )  # fmt: skip
        if caller.agent is None or self.has(caller.agent, right, caller.host):
            return
        self._context.log.note("right_refused", agent=caller.agent, via=caller.via, right=right)
        raise RelayError(
            ErrorCode.PERMISSION_DENIED, f"This came from inside {caller.agent}'s terminal, and {caller.agent} may not "
            f"{RIGHTS[right]}. A person can do it outside agents' terminals, or grant {caller.agent}:{right} in the owner's "
            "setting agent_rights.", reason="inside_agent", agent=caller.agent, right=right,
        )  # fmt: skip

    def check_on(self, caller: Caller, right: str, host: str) -> None:
        """The same, for something that runs on that host; raises RelayError."""
        self.check(caller, right)
        here, there = caller.host or self._context.host, host or self._context.host
        if here == there or caller.via == VIA_RELAY:
            return
        if not self._rules_of(there).grants(here):
            self._context.log.note("host_refused", host=there, from_host=here, right=right)
            raise RelayError(
                ErrorCode.PERMISSION_DENIED, f"Host {there} lets nobody on host {here} control what runs there. The owner of "
                f"{there} can allow it: add {here} to cluster_control there, or do it on {there}.",
                reason="host_control", host=there, setting="cluster_control", value=here,
            )  # fmt: skip
        if caller.agent is not None and not self.has(caller.agent, right, there):
            self._context.log.note("right_refused", agent=caller.agent, via=caller.via, right=right, host=there)
            raise RelayError(
                ErrorCode.PERMISSION_DENIED, f"It runs on host {there}, where {caller.agent} may not {RIGHTS[right]}. The owner "
                f"of {there} can grant {caller.agent}:{right} in agent_rights there.",
                reason="inside_agent", agent=caller.agent, right=right, host=there, setting="agent_rights",
                value=f"{caller.agent}:{right}",
            )  # fmt: skip

    def has(self, agent: str, right: str, host: str = "") -> bool:
        granted = self._rules_of(host).agent_rights
        return (EVERYBODY, right) in granted or (fold_name(agent), right) in granted
