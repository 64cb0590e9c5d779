"""The host that a new agent is started on: the one that was named, or the least loaded of those that let the asker."""

from __future__ import annotations

from agent_relay.core.context import Context
from agent_relay.core.rights import SPAWN, Rights
from agent_relay.ports.agents import HostBook
from agent_relay.ports.callers import Caller
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.hosts import HostFacts, HostRole
from agent_relay.protocol.names import show
from agent_relay.protocol.payloads import SpawnPayload

_LOAD_OF_AN_AGENT = 0.1  # the measured load follows a start only after a while


class Places:
    def __init__(self, context: Context, rights: Rights, hosts: HostBook | None) -> None:
        self._context = context
        self._rights = rights
        self._hosts = hosts  # None: there is no cluster

    def choose(self, asked: SpawnPayload, caller: Caller) -> str:
        """Raises RelayError where the named one is not there or does not allow it."""
        here = caller.host or self._context.host
        hosts = self._hosts() if self._hosts is not None else ()
        there = {host.host: host for host in hosts if host.role is not HostRole.LOST and not host.is_excluded}
        if asked.host is not None:
            if asked.host not in there:
                raise _not_there(asked.host, sorted(there))
            self._rights.check_on(caller, SPAWN, asked.host)
            return asked.host
        if asked.cwd is not None and asked.cwd.startswith("/"):  # a folder of the asker's own machine
            return here
        may = [host for host in there.values() if asked.cli in host.starts and self._may(caller, host.host)]
        return min(may, key=lambda host: (_weigh(host), host.host != here), default=HostFacts(here, HostRole.EDGE)).host

    def _may(self, caller: Caller, host: str) -> bool:
        try:
            self._rights.check_on(caller, SPAWN, host)
        except RelayError:
            return False
        return True


def _weigh(host: HostFacts) -> float:
    return host.load + _LOAD_OF_AN_AGENT * host.agents


def _not_there(wanted: str, known: list[str]) -> RelayError:
    others = f"; there are {', '.join(known)}" if known else ": this relay has one host alone, so leave the host out"
    return RelayError(
        ErrorCode.INVALID_TARGET, f"Host {show(wanted, 40)} is not in the cluster now{others}.", field="payload.host",
        reason="host_not_found", host=wanted[:40],
    )  # fmt: skip
