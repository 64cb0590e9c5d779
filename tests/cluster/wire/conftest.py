"""The fixtures of the wire contract's suite, over an edge: one NATS server, a host that has the seat, and a host that has not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from agent_relay.testing.daemon import DaemonProcess
from tests.integration.wire.conftest import relay, start_relay
from tests.integration.wire.relay import calm_flags
from tests.support.nats_servers import NatsServers, run_servers

__all__ = ["relay", "start_relay"]

_projects = itertools.count(1)


@pytest.fixture(scope="session")
def nats() -> Iterator[NatsServers]:
    with run_servers(1) as servers:
        yield servers


def start_edge(nats: NatsServers, flags: tuple[str, ...], removing: ExitStack) -> DaemonProcess:
    """The edge of a cluster of two, of a project of its own."""
    project = f"p{next(_projects)}"
    edge: DaemonProcess | None = None
    for host in ("seat", "edge"):
        where = (f"--cluster={','.join(nats.urls)}", f"--cluster-host={host}", f"--cluster-project={project}")
        edge = DaemonProcess(*where, "--cluster-replicas=1", *flags)
        removing.callback(edge.remove)
        edge.start()
        client = edge.connect_sync(observer=True)
        client.connect(wait=True)  # until it is let in: the first has the seat then, and the second knows who has it
        client.close()
    assert edge is not None
    return edge


@pytest.fixture(scope="module")
def shared_daemon(nats: NatsServers) -> Iterator[DaemonProcess]:
    with ExitStack() as removing:
        yield start_edge(nats, calm_flags(), removing)


@pytest.fixture
def start_relay_daemon(nats: NatsServers) -> Iterator[Callable[..., DaemonProcess]]:
    with ExitStack() as removing:

        def start(*flags: str, **environ: str) -> DaemonProcess:
            assert not environ
            return start_edge(nats, flags, removing)

        yield start
