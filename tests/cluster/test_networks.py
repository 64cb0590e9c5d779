"""Networks that can be cut: what is said over a cut one arrives when it is healed, and not before."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.support.networks import Gates, Network, make_network

QUIET_S = 0.5  # how long to listen before believing that nothing comes
PATIENCE_S = 30.0
# Two programs, each in its place: one answers with what it was told, the other prints the answer.
_ECHO = (
    "import socket\ns = socket.create_server(('{address}', {port}))\nwhile c := s.accept()[0]:\n  c.sendall(c.recv(9)); c.close()"
)
_ASK = "import socket\nc = socket.create_connection(('{address}', {port}))\nc.sendall(b'hello')\nprint(c.recv(9).decode())"


@pytest.mark.parametrize("make", [Gates, lambda: make_network(["a"], ["n1"])], ids=["gates", "the best there is here"])
def test_a_cut_host_reaches_nothing_until_it_is_healed(make: Callable[[], Network]) -> None:
    network = make()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    echo = subprocess.Popen([*network.prefix("n1"), sys.executable, "-c", _ECHO.format(address=network.address("n1"), port=port)])
    try:
        address, gate = network.port_to("a", "n1", port)
        command = [*network.prefix("a"), sys.executable, "-c", _ASK.format(address=address, port=gate)]
        asyncio.run(_until_it_answers(command))
        network.cut("a")
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asking:
            with pytest.raises(subprocess.TimeoutExpired):
                asking.communicate(timeout=QUIET_S)
            network.heal("a")
            said, _ = asking.communicate(timeout=PATIENCE_S)
        assert said == "hello\n"
    finally:
        echo.kill()
        echo.wait()
        network.close()


async def _until_it_answers(command: list[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.stdout == "hello\n":
            return
        assert time.monotonic() < deadline, done
