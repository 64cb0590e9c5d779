"""Accounts and keys of NATS, as docs/cluster.md has them: projects that cannot read each other, and a host that is cut off."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import nkeys
import pytest
from nats.aio.client import Client

from agent_relay.testing.daemon import DaemonProcess
from tests.cluster.test_presence import roles, see, wait_until
from tests.support.nats_servers import NatsServer, free_ports

ACCOUNTS = """
accounts {{
  SHOP {{ jetstream: enabled, users: [{shop}] }}
  BLOG {{ jetstream: enabled, users: [{blog}] }}
}}
"""


class Keys:
    """A key for each host, in a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.public = {name: self._make(name) for name in ("a", "b", "x")}

    def _make(self, name: str) -> str:
        seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
        path = self.path(name)
        path.touch(0o600)
        path.write_bytes(seed)
        return str(nkeys.from_seed(bytearray(seed)).public_key.decode())

    def path(self, name: str) -> Path:
        return self._folder / f"{name}.nk"

    def accounts(self, shop: str, blog: str) -> str:
        listed = (", ".join(f"{{ nkey: {self.public[name]} }}" for name in names) for names in (shop, blog))
        return ACCOUNTS.format(shop=next(listed), blog=next(listed))


class Scene:
    """Hosts a and b of one project, and x of another that has the same name."""

    def __init__(self, folder: Path) -> None:
        self.keys = Keys(folder)
        port, monitor = free_ports(2)
        self.server = NatsServer(folder, "n1", port, monitor, self.keys.accounts("ab", "x"))
        self.config = folder / "n1.conf"
        self.url = f"nats://127.0.0.1:{port}"
        self.server.start()
        wait_until(self._is_ready, "the NATS server does not become ready")
        self.daemons = {name: self._host(name) for name in ("a", "b", "x")}

    def _is_ready(self) -> bool:
        try:
            return bool(self.server.look("healthz")["status"] == "ok")
        except OSError:
            return False

    def _host(self, name: str) -> DaemonProcess:
        return DaemonProcess(
            f"--cluster={self.url}", f"--cluster-host={name}", "--cluster-project=demo", "--cluster-replicas=1",
            f"--cluster-creds={self.keys.path(name)}",
        )  # fmt: skip

    def close(self) -> None:
        for daemon in self.daemons.values():
            daemon.remove()
        self.server.kill()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def test_one_project_cannot_read_another_and_a_host_can_be_cut_off(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    heard = asyncio.run(listen_while_shop_talks(scene))
    assert heard, "the listener heard not even its own project"
    assert all("shop" not in text and '"host":"a"' not in text for text in heard)
    wait_until(lambda: roles(see(capsys, scene.daemons["a"])) == {"a": "seat", "b": "edge"}, "a and b do not see each other")
    wait_until(lambda: roles(see(capsys, scene.daemons["x"])) == {"x": "seat"}, "x is not alone")

    before = scene.config.read_text()
    scene.config.write_text(before.replace(f", {{ nkey: {scene.keys.public['b']} }}", ""))
    assert scene.config.read_text() != before
    scene.server.signal(signal.SIGHUP)
    wait_until(lambda: "cannot reach its cluster" in see(capsys, scene.daemons["b"]).get("trouble", ""), "b is not cut off")
    wait_until(lambda: roles(see(capsys, scene.daemons["a"])).get("b") == "lost", "b is still heard")


async def listen_while_shop_talks(scene: Scene) -> list[str]:
    """Everything that a client with the key of the other project hears meanwhile, its streams among it."""
    listener, heard = Client(), list[str]()

    async def hear(message: object) -> None:
        heard.append(f"{message.subject} {message.data.decode('utf-8', 'replace')}")  # type: ignore[attr-defined]

    await listener.connect(scene.url, nkeys_seed=str(scene.keys.path("x")))
    try:
        await listener.subscribe(">", cb=hear)
        for name in ("a", "b", "x"):
            await asyncio.to_thread(scene.daemons[name].start)
            client = scene.daemons[name].connect(f"agent-{name}")
            await client.connect(wait=True)
            if name != "x":
                await client.send("agent-a", "shop secrets")
            await client.close()
        while not any('"host":"x"' in text for text in heard):
            await asyncio.sleep(0.05)
        records = await listener.request("$JS.API.STREAM.MSG.GET.RELAY_DEMO_LOG", b'{"seq": 2}', timeout=5)
        heard.append(records.data.decode())
        return heard
    finally:
        await listener.close()
