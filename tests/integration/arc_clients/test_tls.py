"""The same over TLS, with a certificate of our own: trusted where it was named, refused where it was not."""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.arc import ArcClient, ArcClosed, ArcError, register
from agent_relay.testing.daemon import DaemonProcess

FOLDER = Path(__file__).parents[2] / "data" / "tls"
CERTIFICATE, KEY = FOLDER / "cert.pem", FOLDER / "key.pem"


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess("--port=0", f"--tls-cert={CERTIFICATE}", f"--tls-key={KEY}") as process:
        yield process


def test_a_certificate_that_is_named_is_trusted(daemon: DaemonProcess) -> None:
    async def main() -> None:
        url = daemon.wait_for_url()
        assert url.startswith("https://")
        trusting = ssl.create_default_context(cafile=CERTIFICATE)
        ours = await register(url, "secure", api_token=daemon.api_token, tls=trusting)
        async with ArcClient(url, ours.token, tls=trusting) as arc:
            assert await arc.send("secure", "to myself", confirm=True) is not None
            assert (await arc.receive(20)).payload == "to myself"

    asyncio.run(main())


def test_another_certificate_is_not(daemon: DaemonProcess) -> None:
    async def main() -> None:
        url = daemon.wait_for_url()
        with pytest.raises(ArcError, match="CERTIFICATE_VERIFY_FAILED"):
            await register(url, "trusting")
        with pytest.raises(ArcClosed, match="CERTIFICATE_VERIFY_FAILED"):
            await ArcClient(url, "tok_x").connect()

    asyncio.run(main())


def test_the_command_line_trusts_what_the_system_trusts(daemon: DaemonProcess) -> None:
    words = [sys.executable, "-m", "agent_relay", "arc", "register", "by-command", "--json", "--state-dir", str(daemon.state_dir)]
    daemon.wait_for_url()
    for file, status in ((str(CERTIFICATE), 0), (os.devnull, 1)):
        environ = {**os.environ, "SSL_CERT_FILE": file}
        ran = subprocess.run(words, capture_output=True, text=True, env=environ, check=False, timeout=60)
        assert ran.returncode == status, ran.stderr
