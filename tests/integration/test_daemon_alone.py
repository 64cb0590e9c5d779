"""A daemon alone pays nothing for several hosts and for PostgreSQL: it works without loading a line of either."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import httpx

from agent_relay.testing.daemon import DaemonProcess

PATIENCE_S = 30.0
FOREIGN = ("agent_relay.cluster", "agent_relay.daemon.cluster", "agent_relay.storage.postgres", "asyncpg", "nats", "nkeys")
LISTING = """
import atexit, json, pathlib, sys
listed = pathlib.Path(sys.argv.pop(1))
atexit.register(lambda: listed.write_text(json.dumps(sorted(sys.modules))))
from agent_relay.daemon.main import main
sys.exit(main())
"""


def use(daemon: DaemonProcess) -> None:
    with daemon.connect_sync("Alice") as alice, daemon.connect_sync("Bob") as bob:
        alice.send("Bob", "hello")
        with next(iter(bob.messages(timeout=PATIENCE_S))) as message:
            assert message.body == "hello"
        assert alice.history(limit=5).messages
    with httpx.Client(base_url=daemon.wait_for_url(), headers=daemon.api_headers, timeout=PATIENCE_S) as http:
        for path in ("/api/v1/hosts", "/api/v1/agents", "/metrics", "/ready", "/openapi.json"):
            assert http.get(path).status_code == 200, path


def modules_of(daemon: DaemonProcess, folder: Path, used: Callable[[DaemonProcess], None]) -> list[str]:
    """Those it has loaded by the end of its life."""
    listed = folder / "modules.json"
    daemon.command = [sys.executable, "-c", LISTING, str(listed)]
    with daemon:
        used(daemon)
        assert daemon.terminate() == 0
    return list(json.loads(listed.read_text("utf-8")))


def test_without_a_cluster_and_postgres_nothing_of_them_is_loaded(tmp_path: Path) -> None:
    found = modules_of(DaemonProcess("--port=0"), tmp_path, use)
    assert "agent_relay.storage.sqlite.store" in found
    assert [name for name in found if name.startswith(FOREIGN)] == []


def test_a_host_of_a_cluster_loads_them_and_the_list_shows_it(tmp_path: Path) -> None:
    host = DaemonProcess("--cluster=nats://127.0.0.1:1", "--cluster-project=demo")
    found = modules_of(host, tmp_path, lambda _daemon: None)
    assert {"agent_relay.cluster.seat", "agent_relay.daemon.cluster.host", "nats"} <= set(found)
