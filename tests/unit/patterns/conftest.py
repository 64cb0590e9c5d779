from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent_relay.testing.daemon import DaemonProcess


@pytest.fixture(scope="package")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as process:
        yield process
