"""Accounts made by deploy/nats/make_accounts.py, with a real server: a project's relay works, and no other project sees it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import nats
import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from agent_relay.testing.daemon import DaemonProcess
from tests.support.nats_servers import NatsServer, free_ports

SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "nats" / "make_accounts.py"
PATIENCE_S = 60


def make_accounts(folder: Path, *projects: str) -> None:
    subprocess.run([sys.executable, str(SCRIPT), str(folder), *projects], check=True, timeout=PATIENCE_S)


class Listener:
    """Somebody with credentials of a project, who listens to all relays they can hear."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.subjects: list[str] = []

    @classmethod
    async def connect(cls, port: int, creds: Path) -> Listener:
        client = await nats.connect(f"nats://127.0.0.1:{port}", user_credentials=str(creds), allow_reconnect=False)
        listener = cls(client)

        async def heard(message: Msg) -> None:
            listener.subjects.append(message.subject)

        await client.subscribe("relay.>", cb=heard)
        await client.flush()
        return listener

    async def finds_log(self) -> bool:
        with contextlib.suppress(nats.errors.Error):
            return b'"last_seq"' in (await self.client.request("$JS.API.STREAM.INFO.RELAY_SHOP_LOG", b"", timeout=5)).data
        return False


async def compare(port: int, insider_creds: Path, outsider_creds: Path) -> None:
    """While the one hears the project, the other hears nothing."""
    insider, outsider = [await Listener.connect(port, creds) for creds in (insider_creds, outsider_creds)]
    async with asyncio.timeout(PATIENCE_S):
        while insider.subjects.count("relay.shop.alive") < 3:
            await asyncio.sleep(0.05)
    await outsider.client.flush()
    assert outsider.subjects == []
    assert (await insider.finds_log(), await outsider.finds_log()) == (True, False)
    await insider.client.close()
    await outsider.client.close()


async def is_let_in(port: int, creds: Path) -> bool:
    """In a process of its own: nats-py leaves a socket open where the server refuses it."""
    program = (
        "import asyncio, nats, sys\n"
        "async def quiet(error): pass\n"
        "asyncio.run(nats.connect(sys.argv[1], user_credentials=sys.argv[2], allow_reconnect=False, error_cb=quiet))\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, f"nats://127.0.0.1:{port}", str(creds), stderr=subprocess.PIPE
    )
    _, errors = await process.communicate()
    if process.returncode and b"Authorization" not in errors and b"refused" not in errors.lower():
        raise AssertionError(errors.decode())
    return process.returncode == 0


def test_one_project_cannot_read_another_and_a_host_can_be_excluded(tmp_path: Path) -> None:
    accounts = tmp_path / "accounts"
    make_accounts(accounts, "shop:a,b", "blog:a")
    creds = accounts / "creds"
    assert all(path.stat().st_mode & 0o077 == 0 for path in accounts.rglob("*") if path.suffix in {".creds", ".nk"})
    port, monitor = free_ports(2)
    server = NatsServer(tmp_path, "n1", port, monitor, f'include "{accounts.name}/accounts.conf"')
    server.start()
    shop = DaemonProcess(
        f"--cluster=nats://127.0.0.1:{port}", "--cluster-project=shop", "--cluster-replicas=1", "--cluster-host=a",
        f"--cluster-creds={creds / 'shop-a.creds'}", "--http=false",
    )  # fmt: skip
    try:
        shop.start()
        client = shop.connect_sync("Alice")
        client.connect(wait=True)
        client.send("Alice", "Hello.")
        client.close()
        asyncio.run(compare(port, creds / "shop-b.creds", creds / "blog-a.creds"))
        excluded = tmp_path / "kept-by-b.creds"
        excluded.write_bytes((creds / "shop-b.creds").read_bytes())
        before = (creds / "shop-a.creds").read_bytes()
        make_accounts(accounts, "shop:a,c", "blog:a")
        assert (creds / "shop-a.creds").read_bytes() == before
        assert not (creds / "shop-b.creds").exists()
        server.kill()
        server.start()
        assert asyncio.run(_until_let_in(port, creds / "shop-c.creds"))
        assert not asyncio.run(is_let_in(port, excluded))
    finally:
        shop.remove()
        server.kill()


async def _until_let_in(port: int, creds: Path) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            while not await is_let_in(port, creds):
                await asyncio.sleep(0.05)
            return True
    return False


@pytest.mark.parametrize("words", [[], ["shop"], ["Shop:a"], ["shop:"], ["shop:a,../b"]])
def test_a_list_that_cannot_be_used_is_refused(words: list[str], tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_accounts", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main([str(tmp_path / "accounts"), *words]) == 2
    assert not (tmp_path / "accounts").exists()
