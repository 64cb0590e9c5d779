"""The hosts of a cluster as their commands show them: who is there, who is lost, and what a host says that is cut off."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from agent_relay.cli.main import main
from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient
from tests.cluster.hosts import Hosts, run_hosts

PATIENCE_S = 90.0


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with run_hosts(3, servers=1) as found:
        yield found


def run(capsys: pytest.CaptureFixture[str], daemon: DaemonProcess, *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main([*words, "--socket", daemon.socket, "--state-dir", str(daemon.state_dir)])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def see(capsys: pytest.CaptureFixture[str], daemon: DaemonProcess) -> dict[str, Any]:
    code, printed = run(capsys, daemon, "hosts", "--json")
    return dict(json.loads(printed)) if code == 0 else {"hosts": []}


def roles(seen: dict[str, Any]) -> dict[str, str]:
    return {host["host"]: host["role"] for host in seen["hosts"]}


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_every_host_shows_the_others_and_says_when_it_is_cut_off(hosts: Hosts, capsys: pytest.CaptureFixture[str]) -> None:
    seat = hosts.seat
    edge, other = (name for name in hosts.daemons if name != seat)
    expected = {seat: "seat", edge: "edge", other: "edge"}
    with RawClient(hosts[edge].socket) as alice:
        alice.hello("Alice")
        for name in hosts.daemons:
            wait_until(lambda name=name: roles(see(capsys, hosts[name])) == expected, f"{name} does not see all hosts")
        wait_until(
            lambda: {h["host"]: h["agents"] for h in see(capsys, hosts[other])["hosts"]}[edge] == 1, "Alice is not counted"
        )
    assert see(capsys, hosts[edge])["seat"] == seat
    code, printed = run(capsys, hosts[edge], "status")
    assert code == 0
    assert f"{edge}, one of 3 hosts; {seat} has the seat" in printed
    assert f"messages.sqlite on host {seat}" in printed  # whose file it is that the answer names

    hosts[other].kill()
    wait_until(lambda: roles(see(capsys, hosts[edge])).get(other) == "lost", "a dead host is not lost")
    assert "not running" in run(capsys, hosts[other], "hosts")[1]  # its file is still there

    for server in hosts.servers.servers:
        server.kill()
    wait_until(lambda: "cannot reach its cluster" in see(capsys, hosts[edge])["trouble"], "nobody says that it is cut off")
    code, printed = run(capsys, hosts[edge], "hosts")
    assert code == 0
    assert "lost" in printed
    wait_until(lambda: "up, but cut off" in run(capsys, hosts[edge], "status")[1], "status does not say it")
    code, printed = run(capsys, hosts[edge], "status", "--json")
    assert code == 1
    assert json.loads(printed)["cluster"]["host"] == edge


def test_a_second_daemon_of_the_same_name_serves_nobody_until_the_first_has_gone(capsys: pytest.CaptureFixture[str]) -> None:
    with run_hosts(1, servers=1) as hosts:
        first = hosts["a"]
        with DaemonProcess(*first.flags) as second:
            wait_until(lambda: "--cluster-host" in see(capsys, second).get("trouble", ""), "the second does not notice")
            with RawClient(second.socket) as client:
                client.say("HELLO", {"agent": "Bob", "capabilities": {}})
                frame = client.expect("ERROR")
                assert frame["payload"]["code"] == "SERVICE_UNAVAILABLE"
                assert "is called a too" in frame["payload"]["message"]
            with RawClient(first.socket) as client:
                client.hello("Alice")
            first.kill()
            bob = second.connect_sync("Bob")
            bob.connect(wait=True)
            bob.close()


def test_an_excluded_host_serves_nobody_and_never_has_the_seat_until_it_is_included(capsys: pytest.CaptureFixture[str]) -> None:
    with run_hosts(2, servers=1) as hosts:
        seat = hosts.seat
        edge = next(name for name in hosts.daemons if name != seat)
        assert "cluster_control" in run(capsys, hosts[edge], "hosts", "exclude", seat)[1]
        assert "cannot be excluded" in run(capsys, hosts[seat], "hosts", "exclude", seat)[1]
        with RawClient(hosts[edge].socket) as bob:
            bob.hello("Bob")
            assert run(capsys, hosts[seat], "hosts", "exclude", edge)[0] == 0
            bob.wait_closed(PATIENCE_S)
        wait_until(lambda: "was excluded" in see(capsys, hosts[edge])["trouble"], "the excluded host does not know")
        with RawClient(hosts[edge].socket) as client:
            client.say("HELLO", {"agent": "Bob", "capabilities": {}})
            assert f"agent-relay hosts include {edge}" in client.expect("ERROR")["payload"]["message"]
        wait_until(lambda: "excluded" in run(capsys, hosts[seat], "hosts")[1], "the list does not show it")

        hosts[seat].restart()  # it is in nobody's way meanwhile, and what was decided holds
        alice = hosts[seat].connect_sync("Alice")
        alice.connect(wait=True)
        alice.close()
        assert all(note["event"] != "cluster_seated" for note in hosts.notes(edge))
        assert run(capsys, hosts[seat], "hosts", "include", edge)[0] == 0
        again = hosts[edge].connect_sync("Bob")
        again.connect(wait=True)
        again.close()


def test_http_lists_the_hosts(hosts_with_http: Hosts) -> None:
    daemon = hosts_with_http["a"]
    found = httpx.get(f"{daemon.wait_for_url()}/api/v1/hosts", headers=daemon.api_headers, timeout=PATIENCE_S).json()
    assert (found["host"], found["seat"], found["project"], found["trouble"]) == ("a", "a", "demo", "")
    (host,) = found["hosts"]
    assert (host["role"], host["isSelf"], host["behind"]) == ("seat", True, 0)


@pytest.fixture
def hosts_with_http() -> Iterator[Hosts]:
    with run_hosts(1, servers=1, flags=("--port=0",)) as found:
        yield found


def test_a_daemon_alone_has_no_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    with DaemonProcess("--port=0") as daemon:
        (daemon.state_dir / "relay.pid").unlink(missing_ok=True)  # it is written a moment after it answers
        code, printed = run(capsys, daemon, "hosts")
        assert code == 1
        assert "not part of a cluster" in printed
        found = httpx.get(f"{daemon.wait_for_url()}/api/v1/hosts", headers=daemon.api_headers, timeout=PATIENCE_S).json()
        assert found == {"project": "", "host": "", "seat": "", "trouble": "", "hosts": []}
