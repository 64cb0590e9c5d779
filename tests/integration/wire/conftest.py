"""Fixtures: one calm daemon for the tests of a module, and daemons of a test's own where flags or a kill matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from agent_relay.testing.daemon import DaemonProcess

from .relay import Relay, calm_flags

StartRelay = Callable[..., Relay]


@pytest.fixture(scope="module")
def shared_daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess(*calm_flags()) as daemon:
        yield daemon


@pytest.fixture
def relay(shared_daemon: DaemonProcess) -> Iterator[Relay]:
    """The module's daemon; every client of the test is gone, and known to be gone, before the next test begins."""
    relay = Relay(shared_daemon)
    yield relay
    relay.close()


@pytest.fixture
def start_relay(start_relay_daemon: Callable[..., DaemonProcess]) -> Iterator[StartRelay]:
    """Starts a daemon with these flags (calm where they say nothing), for this test alone."""
    started: list[Relay] = []

    def start(*flags: str) -> Relay:
        started.append(Relay(start_relay_daemon(*calm_flags(*flags))))
        return started[-1]

    yield start
    for relay in started:
        relay.daemon.kill()
        relay.close()
