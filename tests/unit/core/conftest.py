"""A core in a test's hands and the clients most tests have. Property tests have no deadlines and keep no examples."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.support.harness import HarnessClient, RelayHarness

settings.register_profile("core", deadline=None, database=None)  # the machine may be busy
settings.load_profile("core")


@pytest.fixture
def relay() -> RelayHarness:
    return RelayHarness()


@pytest.fixture
def alice(relay: RelayHarness) -> HarnessClient:
    return relay.connect("Alice")


@pytest.fixture
def bob(relay: RelayHarness) -> HarnessClient:
    return relay.connect("Bob")


@pytest.fixture
def watcher(relay: RelayHarness) -> HarnessClient:
    return relay.connect("Watcher", mode="observer")
