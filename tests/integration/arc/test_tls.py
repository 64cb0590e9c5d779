"""TLS: wss and https on the same port, and a loud word where it is missing."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from agent_relay.daemon.config import ConfigError
from agent_relay.daemon.main import parse
from agent_relay.testing.daemon import DaemonProcess
from tests.integration.arc.stage import DEADLINE_S, FREE, Member, Stage

FILES = Path(__file__).parents[2] / "data" / "tls"
TLS = (f"--tls-cert={FILES / 'cert.pem'}", f"--tls-key={FILES / 'key.pem'}")
TRUST = ssl.create_default_context(cafile=str(FILES / "cert.pem"))


async def talk(url: str, member: Member, size: int, end: Callable[[], int]) -> int:
    """Fifty messages to itself, in order; the code that it is closed with after `end`. By asyncio: OpenSSL loses data of a
    connection that two threads read and write at once, as the blocking client does."""
    headers = {"Authorization": f"Bearer {member.token}"}
    address = f"{url.replace('https', 'wss')}/arc"
    async with (
        asyncio.timeout(2 * DEADLINE_S),
        connect(address, ssl=TRUST, additional_headers=headers, open_timeout=DEADLINE_S) as connection,
    ):
        assert json.loads(await connection.recv())["type"] == "welcome"
        for number in range(50):
            await connection.send(json.dumps({"to": [member.id], "payload": "x" * size + str(number)}))
        found = [json.loads(await connection.recv())["payload"][size:] for _ in range(50)]
        assert found == [str(number) for number in range(50)]
        assert await asyncio.to_thread(end) == 0
        with pytest.raises(ConnectionClosed) as closed:
            await connection.recv()
    assert closed.value.rcvd is not None, "the connection broke without a word"
    return closed.value.rcvd.code


def test_https_and_wss_on_one_port() -> None:
    with DaemonProcess("--port=0", *FREE, *TLS) as daemon:
        url = daemon.wait_for_url()
        assert url.startswith("https://")
        with httpx.Client(base_url=url, verify=TRUST, headers=daemon.api_headers) as http:
            found = http.post("/register", json={"agent_id": "safe-1"}, headers={"origin": url})
            assert found.status_code == 200
        member = Member("safe-1", found.json()["token"])
        assert asyncio.run(talk(url, member, 60_000, daemon.terminate)) == 1001


def test_beyond_loopback_without_tls_there_is_a_warning(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE)
    assert "warning" not in json.loads((stage.daemon.state_dir / "http.json").read_text())
    stage.daemon.environ["AGENT_RELAY_API_TOKEN"] = "secret"
    stage.daemon.restart("--port=0", "--host=0.0.0.0", *FREE)
    stage.find()
    assert "TLS" in json.loads((stage.daemon.state_dir / "http.json").read_text())["warning"]
    assert "WARNING" in stage.daemon.output
    assert "http_exposed" in (stage.daemon.state_dir / "daemon.log").read_text()
    stage.daemon.restart("--port=0", "--host=0.0.0.0", *FREE, *TLS)
    stage.find()
    assert "warning" not in json.loads((stage.daemon.state_dir / "http.json").read_text())


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (TLS[:1], "must be given together"),
        (TLS[1:], "must be given together"),
        ((TLS[0], f"--tls-key={__file__}"), "cannot be loaded"),
    ],
)
def test_files_that_cannot_be_used_are_named_before_anything_starts(tmp_path: Path, flags: tuple[str, ...], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        parse([f"--socket={tmp_path}/s", f"--state-dir={tmp_path}", *flags])
