"""Fixtures: one calm daemon for the tests of a module, and daemons of a test's own where flags or a kill matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from agent_relay.testing.daemon import DaemonProcess

from .relay import Relay, calm_flags

StartRelay = Callable[..., Relay]


@pytest.fixture(scope="module")
def shared_daemon() -> Iterator[DaemonProcess]:
    daemon = DaemonProcess(*calm_flags())
    try:
        yield daemon.start()
    finally:
        daemon.remove()


@pytest.fixture
def relay(shared_daemon: DaemonProcess) -> Iterator[Relay]:
    """The module's daemon; every client of the test is gone, and known to be gone, before the next test begins."""
    relay = Relay(shared_daemon)
    yield relay
    relay.close()


@pytest.fixture
def start_relay() -> Iterator[StartRelay]:
    """Starts a daemon with these flags (calm where they say nothing), for this test alone."""
    started: list[tuple[DaemonProcess, Relay]] = []

    def start(*flags: str) -> Relay:
        daemon = DaemonProcess(*calm_flags(*flags))
        relay = Relay(daemon)
        started.append((daemon, relay))
        daemon.start()
        return relay

    yield start
    for daemon, relay in started:
        daemon.kill()
        relay.close()
        daemon.remove()
