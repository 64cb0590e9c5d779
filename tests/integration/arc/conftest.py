from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from agent_relay.testing.daemon import DaemonProcess
from tests.integration.arc.stage import FREE, Stage


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """One daemon for all tests of a file that leave it as they found it."""
    with DaemonProcess("--port=0", *FREE) as daemon:
        found = Stage(daemon)
        yield found
        found.close()


@pytest.fixture
def make_stage(start_relay_daemon: Callable[..., DaemonProcess]) -> Iterator[Callable[..., Stage]]:
    """A daemon of the test's own, with flags of its own."""
    made: list[Stage] = []

    def make(*flags: str) -> Stage:
        made.append(Stage(start_relay_daemon("--port=0", *flags)))
        return made[-1]

    yield make
    for stage in made:
        stage.close()
