"""A host of a cluster and a daemon alone: neither writes what the other one has, until the host has left."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from agent_relay.daemon.store_at_rest import find_copied
from agent_relay.interpreter import run_module
from agent_relay.testing.daemon import DaemonFailed, DaemonProcess
from tests.cluster.hosts import joined, run_hosts
from tests.cluster.test_presence import run, wait_until
from tests.support.nats_servers import run_servers

ALONE = "--durability=full"


def test_a_host_starts_alone_only_once_it_has_left_its_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    with run_hosts(2, servers=1) as hosts:
        daemon = hosts[next(name for name in hosts.daemons if name != hosts.seat)]
        database = str(daemon.state_dir / "messages.sqlite")
        code, printed = run(capsys, daemon, "cluster", "leave", "--yes")
        assert code == 1
        assert "agent-relay down" in printed  # not under a running daemon
        with joined(daemon, "Alice") as alice, joined(daemon, "Bob") as bob:
            alice.send("Bob", "kept on every host")
            with bob.receive(timeout=60):
                pass
        wait_until(lambda: read_messages(capsys, daemon) == ["kept on every host"], "the message is not there")
        before = find_copied(database)
        with joined(daemon, "Carol"):  # a record behind the message, so that the message is in the copy
            wait_until(lambda: find_copied(database) > before, "the copy does not follow")
        daemon.kill()
        assert (daemon.state_dir / "cluster.json").exists()
        in_cluster = daemon.flags

        with pytest.raises(DaemonFailed, match=r"copy of its cluster.*agent-relay cluster leave"):
            daemon.restart(ALONE)
        assert not (daemon.state_dir / "cluster.json").exists()  # of the daemon that was killed
        copied = find_copied(database)
        code, printed = run(capsys, daemon, "cluster", "leave")
        assert code == 0
        assert f"up to record {copied:,}" in printed
        assert find_copied(database) == copied  # only shown
        daemon.restart(*in_cluster)  # and it goes on as a host
        with joined(daemon, "Dan"):
            pass

        daemon.kill()
        code, printed = run(capsys, daemon, "cluster", "leave", "--yes", "--json")
        assert json.loads(printed)["has_left"] is True
        daemon.restart(ALONE)
        assert read_messages(capsys, daemon) == ["kept on every host"]
        assert json.loads(run(capsys, daemon, "status", "--json")[1])["cluster"] is None
        assert "nothing to leave" in run(capsys, daemon, "cluster", "leave")[1]
        with pytest.raises(DaemonFailed, match="Move the file away"):
            daemon.restart(*in_cluster)


def test_up_waits_until_a_host_has_the_seat(tmp_path: Path) -> None:
    place = ["--socket", str(tmp_path / "relay.sock"), "--state-dir", str(tmp_path / "state")]

    def call(*words: str) -> str:
        done = subprocess.run(
            [*run_module("agent_relay"), *words, *place], env=os.environ | {"AGENT_RELAY_HOME": str(tmp_path)}, cwd=tmp_path,
            check=False, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    with run_servers(1) as nats:
        cluster = [f"--cluster={nats.urls[0]}", "--cluster-project=demo", "--cluster-replicas=1"]
        try:
            assert "first, one of 1 host; this host has the seat" in call("up", "--cluster-host=first", "--no-http", *cluster)
            assert "this host has the seat" in call("status")  # at once
            assert json.loads(call("up", "--json"))["cluster"]["seat"] == "first"
        finally:
            call("down")


def read_messages(capsys: pytest.CaptureFixture[str], daemon: DaemonProcess) -> list[str]:
    code, printed = run(capsys, daemon, "history", "--json")
    return [message["payload"]["body"] for message in json.loads(printed)["messages"]] if code == 0 else []
