"""Hosts that leave, come late and fall behind; a log that has lost records; erasing: real daemons and real NATS servers."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import nats
import pytest

from agent_relay.daemon.cluster.check import EngineFinding, check_engine
from agent_relay.daemon.config import ClusterConfig
from agent_relay.sdk.sync import SyncRelayClient
from agent_relay.testing.daemon import DaemonFailed, DaemonProcess
from tests.cluster.hosts import STREAM, Hosts, run_hosts
from tests.support.nats_servers import free_ports

PATIENCE_S = 90.0
STANDING = "cluster_log_standing"


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with run_hosts(2, servers=1) as found:
        yield found


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.05)


def ask(hosts: Hosts, subject: str, payload: dict[str, Any] | None = None) -> dict[str, Any]:
    async def live() -> dict[str, Any]:
        client = await nats.connect(hosts.servers.urls[0])
        try:
            answer = await client.request(f"$JS.API.{subject}", json.dumps(payload).encode() if payload else b"", timeout=30)
            return dict(json.loads(answer.data))
        finally:
            await client.close()

    return asyncio.run(live())


def look_at_log(hosts: Hosts) -> dict[str, Any]:
    return dict(ask(hosts, f"STREAM.INFO.{STREAM}")["state"])


def events(hosts: Hosts, name: str, event: str) -> list[dict[str, Any]]:
    return [note for note in hosts.notes(name) if note["event"] == event]


def query(daemon: DaemonProcess, statement: str) -> list[Any]:
    with closing(sqlite3.connect(f"file:{daemon.state_dir / 'messages.sqlite'}?mode=ro", uri=True)) as connection:
        return connection.execute(statement).fetchall()


def position_of(daemon: DaemonProcess) -> int:
    return int(query(daemon, "SELECT coalesce(max(value), 0) FROM meta WHERE key = 'position'")[0][0])


def inspect(hosts: Hosts) -> list[EngineFinding]:
    async def collect() -> list[EngineFinding]:
        config = ClusterConfig(hosts.servers.urls, "demo", None, 1, None, None, None)
        return [found async for found in check_engine(config)]

    return asyncio.run(collect())


@contextmanager
def connected(daemon: DaemonProcess, name: str | None = None) -> Iterator[SyncRelayClient]:
    """Once it is let in: a host that has just lost or taken the seat lets nobody in for a moment."""
    client = daemon.connect_sync(name, observer=name is None)
    client.connect(wait=True)
    try:
        yield client
    finally:
        client.close()


def send_words(daemon: DaemonProcess, words: list[str], sender: str = "Alice") -> None:
    with connected(daemon, "Bob"):
        pass  # somebody to send to
    with connected(daemon, sender) as client:
        for word in words:
            client.send("Bob", word)


def read_words(daemon: DaemonProcess) -> list[str]:
    """Everything that Bob was sent, oldest first."""
    with connected(daemon) as client:
        return [message["payload"]["body"] for message in reversed(client.history(limit=500).messages)]


def other(hosts: Hosts, name: str) -> str:
    return next(each for each in hosts.daemons if each != name)


def test_a_seat_that_stops_gives_the_seat_back_and_nobody_waits(hosts: Hosts) -> None:
    seat = hosts.seat
    next_seat = other(hosts, seat)
    send_words(hosts[seat], ["one"])
    hosts[seat].terminate()
    wait_for(lambda: events(hosts, next_seat, "cluster_seated"), "the other host takes the seat")
    assert not events(hosts, next_seat, "cluster_seat_missed")  # it did not have to miss anybody
    send_words(hosts[next_seat], ["two"])
    hosts[seat].start()
    wait_for(lambda: position_of(hosts[seat]) == position_of(hosts[next_seat]), "the copies are the same")
    assert read_words(hosts[seat]) == ["one", "two"]


def test_a_host_that_comes_after_the_log_has_forgotten_takes_a_copy_of_the_database(hosts: Hosts) -> None:
    seat, late = hosts.seat, other(hosts, hosts.seat)
    send_words(hosts[seat], ["before"])
    wait_for(lambda: position_of(hosts[late]) == position_of(hosts[seat]), "both have it")
    hosts[late].terminate()
    words = [f"word {number}" for number in range(60)]
    send_words(hosts[seat], words)
    config = ask(hosts, f"STREAM.INFO.{STREAM}")["config"] | {"max_msgs": 20}
    assert "error" not in ask(hosts, f"STREAM.UPDATE.{STREAM}", config)
    assert look_at_log(hosts)["first_seq"] > 10
    assert any("max_msgs is 20, not -1" in found.text for found in inspect(hosts))  # doctor says so
    hosts[late].start()
    wait_for(lambda: events(hosts, late, "cluster_copy_arrived"), "the copy arrives")
    send_words(hosts[late], ["after"])  # through the seat, and back into the new copy
    wait_for(lambda: position_of(hosts[late]) == position_of(hosts[seat]), "it follows from there")
    hosts[seat].terminate()
    wait_for(lambda: events(hosts, late, "cluster_seated"), "it can take the seat")
    assert read_words(hosts[late]) == ["before", *words, "after"]
    assert not list(hosts[late].state_dir.glob("*.incoming*"))
    wait_for(lambda: not (hosts[seat].state_dir / "cluster-copy").exists(), "the giver has removed what it prepared")


def run_command(daemon: DaemonProcess, *words: str) -> tuple[int, dict[str, Any]]:
    environ = os.environ | {"AGENT_RELAY_HOME": str(daemon.directory / "home")}
    where = ["--socket", daemon.socket, "--state-dir", str(daemon.state_dir), "--json"]
    command = [sys.executable, "-m", "agent_relay", *words, *where]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environ, cwd=daemon.directory, timeout=PATIENCE_S
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else {"error": done.stderr}


def trouble_of(daemon: DaemonProcess) -> str:
    return str(json.loads((daemon.state_dir / "cluster.json").read_text("utf-8"))["trouble"])


def wait_for_standing(hosts: Hosts, standing: str) -> None:
    for name in hosts.daemons:
        wait_for(
            lambda name=name: standing in [note["standing"] for note in events(hosts, name, STANDING)], f"{name}: {standing}"
        )


def kill_all(hosts: Hosts) -> int:
    """Where the log ended. Every host has all of it, so all are stopped before they are asked: a seat still writes what its
    clients have read, and a host that outlives it claims the seat."""

    def stopped_with_all_of_it() -> bool:
        for daemon in hosts.daemons.values():
            os.kill(daemon.pid, signal.SIGSTOP)
        ends = look_at_log(hosts)["last_seq"]
        if all(position_of(daemon) == ends for daemon in hosts.daemons.values()):
            return True
        for daemon in hosts.daemons.values():
            os.kill(daemon.pid, signal.SIGCONT)
        return False

    wait_for(stopped_with_all_of_it, "every host has all of it")
    for daemon in hosts.daemons.values():
        daemon.kill()
    return int(look_at_log(hosts)["last_seq"])


def test_a_log_that_was_restored_from_an_older_backup_is_noticed_and_repaired(hosts: Hosts) -> None:
    (server,) = hosts.servers.servers
    send_words(hosts["a"], ["one", "two"])
    server.kill()
    backup = server.store.with_name("backup")
    shutil.copytree(server.store, backup)
    server.start()
    hosts.servers.wait_ready()
    send_words(hosts["b"], ["three", "four"])  # confirmed, and not in the backup
    ends = kill_all(hosts)
    server.kill()
    shutil.rmtree(server.store)
    backup.rename(server.store)
    server.start()
    hosts.servers.wait_ready()
    lost = ends - look_at_log(hosts)["last_seq"]
    assert lost > 0
    for daemon in hosts.daemons.values():
        daemon.start()
    wait_for_standing(hosts, "regressed")
    status, plan = run_command(hosts["a"], "cluster", "repair")
    assert (status, plan["missing"], plan["is_done"]) == (0, lost, False)
    assert look_at_log(hosts)["last_seq"] == ends - lost  # a dry run changes nothing, and nobody has claimed the seat
    status, plan = run_command(hosts["a"], "cluster", "repair", "--yes")
    assert (status, plan["refusal"], plan["is_done"]) == (0, "", True)
    send_words(hosts["b"], ["five"])
    assert read_words(hosts["a"]) == ["one", "two", "three", "four", "five"]
    for daemon in hosts.daemons.values():
        wait_for(lambda daemon=daemon: position_of(daemon) == look_at_log(hosts)["last_seq"], "it follows again")
        assert query(daemon, "SELECT count(*) FROM messages") == [(5,)]


def test_a_log_that_is_gone_is_never_begun_anew_over_a_copy_but_made_again_from_it(hosts: Hosts) -> None:
    send_words(hosts["a"], ["one", "two"])
    kill_all(hosts)
    assert ask(hosts, f"STREAM.DELETE.{STREAM}")["success"]
    for daemon in hosts.daemons.values():
        daemon.start()
    wait_for_standing(hosts, "absent")
    for daemon in hosts.daemons.values():
        wait_for(lambda daemon=daemon: "log_regressed" in trouble_of(daemon), "it says so")
    status, shown = run_command(hosts["a"], "status")
    assert (status, "cluster repair" in shown["cluster"]["trouble"]) == (1, True)
    assert ask(hosts, f"STREAM.INFO.{STREAM}")["error"]["err_code"] == 10059  # nobody has made another
    status, plan = run_command(hosts["b"], "cluster", "repair", "--yes")
    assert (status, plan["refusal"], plan["creates"], plan["is_done"]) == (0, "", True, True)
    send_words(hosts["b"], ["three"])
    assert read_words(hosts["a"]) == ["one", "two", "three"]


def test_a_log_that_is_gone_begins_behind_the_database_where_no_records_are_left(hosts: Hosts) -> None:
    send_words(hosts["a"], ["one", "two"])
    ends = kill_all(hosts)
    for daemon in hosts.daemons.values():
        shutil.rmtree(daemon.state_dir / "cluster-records")
    shutil.rmtree(hosts["b"].state_dir)  # a new host, which has to take a copy
    assert ask(hosts, f"STREAM.DELETE.{STREAM}")["success"]
    hosts["a"].start()
    wait_for(lambda: "log_regressed" in trouble_of(hosts["a"]), "it says so")
    status, plan = run_command(hosts["a"], "cluster", "repair", "--yes")
    assert (status, plan["refusal"], plan["missing"], plan["is_done"]) == (0, "", 0, True)
    hosts["b"].start()
    send_words(hosts["b"], ["three"])
    wait_for(lambda: events(hosts, "b", "cluster_copy_arrived"), "the new host takes a copy")
    assert look_at_log(hosts)["first_seq"] == ends + 1
    assert read_words(hosts["b"]) == ["one", "two", "three"]


def test_a_host_whose_records_the_log_went_on_without_says_so_and_comes_back_with_a_new_copy(hosts: Hosts) -> None:
    send_words(hosts["a"], ["only on a"])
    ends = kill_all(hosts)
    assert ask(hosts, f"STREAM.DELETE.{STREAM}")["success"]
    shutil.rmtree(hosts["b"].state_dir)  # it has copied nothing, so it begins the log anew
    hosts["b"].start()
    words = [f"word {number}" for number in range(ends)]
    send_words(hosts["b"], words)
    wait_for(lambda: look_at_log(hosts)["last_seq"] > ends, "the log goes on beyond what a has")
    hosts["a"].start()
    wait_for(lambda: "log_diverged" in trouble_of(hosts["a"]), "it says so")
    status, plan = run_command(hosts["a"], "cluster", "repair", "--yes")
    assert (status, plan["is_done"]) == (1, False)
    assert "is not the one that this host has copied" in plan["refusal"]
    assert read_words(hosts["a"]) == words  # its clients are served by the seat meanwhile
    hosts["a"].terminate()
    for found in (*hosts["a"].state_dir.glob("messages.sqlite*"), hosts["a"].state_dir / "cluster-records"):
        found.rename(hosts["a"].directory / found.name)
    hosts["a"].start()
    wait_for(lambda: position_of(hosts["a"]) == look_at_log(hosts)["last_seq"], "it follows again")
    assert query(hosts["a"], "SELECT count(*) FROM messages") == [(len(words),)]


def test_an_agent_that_is_forgotten_goes_out_of_every_copy(hosts: Hosts) -> None:
    seat, edge = hosts.seat, other(hosts, hosts.seat)
    send_words(hosts[edge], ["a secret of Eve"], sender="Eve")
    send_words(hosts[edge], ["stays"])
    folder = hosts[edge].state_dir / "team" / "Eve"
    folder.mkdir(parents=True)
    (folder / "inbox.md").write_text("a secret of Eve")
    status, told = run_command(hosts[edge], "forget", "Eve", "--yes")
    assert (status, told["messages"], told["log_days"]) == (0, 1, 30)  # and it says what NATS still has
    for daemon in hosts.daemons.values():
        wait_for(lambda daemon=daemon: query(daemon, "SELECT count(*) FROM messages") == [(1,)], "it is erased")
        wait_for(lambda daemon=daemon: not holds(daemon, b"a secret of Eve"), "nothing of it is in the files")
    wait_for(lambda: not folder.exists(), "its files went")
    hosts[seat].terminate()
    send_words(hosts[edge], ["after"])
    assert read_words(hosts[edge]) == ["stays", "after"]


def holds(daemon: DaemonProcess, words: bytes) -> bool:
    """Whether any file of the host has these bytes, but for what its agents were told about."""
    files = [path for path in daemon.state_dir.rglob("*") if path.is_file() and not path.name.startswith("events.jsonl")]
    return any(words in path.read_bytes() for path in files)


def test_a_project_with_messages_from_before_its_cluster_is_not_mixed_with_it() -> None:
    """What only this host has could never reach the others."""
    (port,) = free_ports(1)
    with DaemonProcess() as alone:
        send_words(alone, ["before the cluster"])
        alone.terminate()
        with pytest.raises(DaemonFailed, match="from before this project had a cluster"):
            alone.restart(f"--cluster=nats://127.0.0.1:{port}", "--cluster-project=demo", "--cluster-host=a")
