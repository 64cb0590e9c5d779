"""Two of three NATS servers are gone: every host refuses, says why wherever it is asked, and goes on when they are back."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.cluster.hosts import Hosts, joined, run_hosts
from tests.cluster.test_presence import PATIENCE_S, run, see, wait_until

WHY = "no majority"


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with run_hosts(2, servers=3, flags=("--port=0",)) as started:
        yield started


def test_without_a_majority_every_host_says_so_and_goes_on_afterwards(hosts: Hosts, capsys: pytest.CaptureFixture[str]) -> None:
    with joined(hosts["a"], "Alice") as alice:
        receipt = alice.send("Alice", "before")
    edge = next(name for name in hosts.daemons if name != hosts.seat)
    leader = hosts.servers.leader_of("RELAY_DEMO_LOG")
    lost = [leader, next(server for server in hosts.servers.servers if server is not leader)]
    for server in lost:
        server.kill()
    for daemon in hosts.daemons.values():
        wait_until(lambda daemon=daemon: WHY in see(capsys, daemon)["trouble"], "a host does not say that it is cut off")
        wait_until(lambda daemon=daemon: run(capsys, daemon, "status", "--json")[0] == 1, "a host still serves")
        assert WHY in json.loads(run(capsys, daemon, "status", "--json")[1])["cluster"]["trouble"]
        for words in (("status",), ("hosts",), ("explain", receipt.message_id), ("send", "Alice", "refused"), ("history",)):
            assert WHY in run(capsys, daemon, *words)[1], words
        answer = httpx.get(f"{daemon.wait_for_url()}/api/v1/agents", headers=daemon.api_headers, timeout=PATIENCE_S)
        assert (answer.status_code, WHY in answer.text, "Retry-After" in answer.headers) == (503, True, True)
    code, printed = run(capsys, hosts[edge], "doctor")
    assert code == 1
    for server in lost:
        assert f"nats://127.0.0.1:{server.port} cannot be reached" in printed
    assert "start that server" in printed

    for server in lost:
        server.start()
    with joined(hosts[edge], "Bob") as bob:
        bob.send("Alice", "after")
        bodies = [message["payload"]["body"] for message in bob.history(limit=10).messages]
    assert bodies == ["after", "before"]
    assert "stored from Alice" in run(capsys, hosts[edge], "explain", receipt.message_id)[1]
