"""The fixtures of the wire contract's suite over three hosts: one NATS server, a host that has the seat, and two edges."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from agent_relay.testing.daemon import DaemonProcess
from tests.cluster.hosts import Hosts
from tests.integration.wire.conftest import relay, start_relay
from tests.integration.wire.relay import calm_flags
from tests.support.nats_servers import NatsServers, run_servers

__all__ = ["relay", "start_relay"]

_projects = itertools.count(1)


class SpreadDaemon:
    """Several hosts in place of a daemon. Whoever asks for its socket gets that of the next host."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._turns = itertools.cycle(hosts.daemons.values())

    @property
    def socket(self) -> str:
        return next(self._turns).socket

    def __getattr__(self, name: str) -> Any:
        return getattr(self._hosts[self._hosts.seat], name)


@pytest.fixture(scope="session")
def nats() -> Iterator[NatsServers]:
    with run_servers(1) as servers:
        yield servers


def start_hosts(nats: NatsServers, flags: tuple[str, ...], removing: ExitStack) -> Any:
    hosts = Hosts(nats, 3, (*flags, f"--cluster-project=spread{next(_projects)}", "--cluster-control=*"))
    removing.callback(hosts.remove)
    hosts.start()
    return SpreadDaemon(hosts)


@pytest.fixture(scope="module")
def shared_daemon(nats: NatsServers) -> Iterator[DaemonProcess]:
    with ExitStack() as removing:
        yield start_hosts(nats, calm_flags(), removing)


@pytest.fixture
def start_relay_daemon(nats: NatsServers) -> Iterator[Callable[..., DaemonProcess]]:
    with ExitStack() as removing:

        def start(*flags: str, **environ: str) -> DaemonProcess:
            assert not environ
            daemon: DaemonProcess = start_hosts(nats, flags, removing)
            return daemon

        yield start
