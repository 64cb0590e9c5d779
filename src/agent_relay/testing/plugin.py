"""The pytest plugin: fixtures alone. It adds no hook, no option and no fixture that a test has not asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.testing.agent import AgentProcess
    from agent_relay.testing.clock import ManualClock
    from agent_relay.testing.daemon import DaemonProcess


@pytest.fixture
def relay_daemon() -> Iterator[DaemonProcess]:
    """A daemon for this test: a process of its own in a directory of its own, removed afterwards."""
    from agent_relay.testing.daemon import DaemonProcess

    with DaemonProcess() as daemon:
        yield daemon


@pytest.fixture
def start_relay_daemon() -> Iterator[Callable[..., DaemonProcess]]:
    """Starts daemons with flags of their own: `start_relay_daemon("--port=0")`. All are removed afterwards."""
    from agent_relay.testing.daemon import DaemonProcess

    made: list[DaemonProcess] = []

    def start(*flags: str, **environ: str) -> DaemonProcess:
        daemon = DaemonProcess(*flags)
        daemon.environ = environ
        made.append(daemon)
        return daemon.start()

    yield start
    for daemon in made:
        daemon.remove()


@pytest.fixture
def start_relay_agent(relay_daemon: DaemonProcess) -> Iterator[Callable[..., AgentProcess]]:
    """Starts scripted agents in terminals, under the test's `relay_daemon`: `start_relay_agent("Bob", turns=[…])`."""
    from agent_relay.testing.agent import AgentProcess

    made: list[AgentProcess] = []

    def start(name: str, *options: str, **script: object) -> AgentProcess:
        made.append(AgentProcess.start(relay_daemon, name, *options, **script))
        return made[-1]

    yield start
    for agent in made:
        agent.stop()


@pytest.fixture
def relay_clock() -> ManualClock:
    """A clock that stands still until the test moves it."""
    from agent_relay.testing.clock import ManualClock

    return ManualClock()
