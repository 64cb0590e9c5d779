"""`doctor` about the hosts of a cluster, and about an engine that is not there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from agent_relay.cli.doctor.cluster import check_hosts
from agent_relay.cli.doctor.findings import Finding, Verdict
from agent_relay.cluster.jetstream import stream_settings
from agent_relay.daemon.cluster.check import EngineFinding, check_engine
from agent_relay.daemon.cluster.client import connect_cluster
from agent_relay.daemon.config import ClusterConfig
from agent_relay.protocol.hosts import ClusterFacts, HostFacts, HostRole
from agent_relay.version import __version__
from tests.support.nats_servers import NatsServer, free_ports, run_servers


def look(*hosts: HostFacts, seat: str = "a", trouble: str = "") -> list[Finding]:
    own = HostFacts("a", HostRole.SEAT, __version__, is_self=True)
    return list(check_hosts(ClusterFacts("demo", "a", seat, trouble, [own, *hosts])))


def test_hosts_that_are_well_are_one_line() -> None:
    assert [(found.verdict, found.text) for found in look(HostFacts("b", HostRole.EDGE, __version__))] == [
        (Verdict.OK, "2 hosts; a has the seat")
    ]


def test_another_version_a_wrong_clock_and_a_slow_copy_are_told_with_their_mend() -> None:
    found = look(
        HostFacts("b", HostRole.EDGE, "0.0.9"), HostFacts("c", HostRole.EDGE, __version__, clock_ms=-90_000),
        HostFacts("d", HostRole.EDGE, __version__, behind=5_000), HostFacts("e", HostRole.LOST, "0.0.9", clock_ms=90_000),
    )[1:]  # fmt: skip
    assert [(each.verdict, each.text.split()[0]) for each in found] == [
        (Verdict.NOTE, "b"), (Verdict.BAD, "c's"), (Verdict.NOTE, "d's"), (Verdict.NOTE, "e"),
    ]  # fmt: skip
    assert "0.0.9" in found[0].text
    assert "1 min 30 s behind" in found[1].text
    assert all(each.mend for each in found)


def test_a_cluster_in_which_nobody_has_the_seat_is_bad() -> None:
    assert look(seat="")[0].verdict is Verdict.BAD
    assert look(trouble="log_regressed: …")[0] == Finding("hosts", Verdict.BAD, "log_regressed: …")


def inspect(*servers: str, replicas: int = 1) -> list[EngineFinding]:
    config = ClusterConfig(list(servers), "demo", "a", replicas, None, None, None)

    async def collect() -> list[EngineFinding]:
        return [found async for found in check_engine(config)]

    return asyncio.run(collect())


def test_the_engine_is_looked_at_server_by_server() -> None:
    (port,) = free_ports(1)
    with run_servers(1) as servers:
        found = inspect(servers.urls[0], f"nats://127.0.0.1:{port}")
    assert [each.is_good for each in found] == [True, False, True, None]
    assert "nats-server 2." in found[0].text
    assert found[1].is_serious
    assert "no log RELAY_DEMO_LOG yet" in found[2].text
    assert "sync_interval: always" in found[3].mend


ACCOUNTS = """
system_account: SYS
no_auth_user: host
accounts {
  SYS { users: [{ user: admin, password: secret }], exports: [{ service: "$SYS.REQ.SERVER.PING.VARZ", accounts: [SHOP] }] }
  SHOP {
    jetstream: enabled, users: [{ user: host, password: secret }]
    imports: [{ service: { account: SYS, subject: "$SYS.REQ.SERVER.PING.VARZ" } }]
  }
}
"""


def make_log(url: str) -> None:
    config = ClusterConfig([url], "demo", "a", 1, None, None, None)

    async def make() -> None:
        async with connect_cluster(config) as client:
            settings = msgspec.json.encode(stream_settings(client.names, 1))
            answer = await client.ask_api(f"STREAM.CREATE.{client.names.stream}", settings)
            assert answer.error is None, answer.error

    asyncio.run(make())


@pytest.mark.parametrize(("sync", "is_good"), [("always", True), ("2m", False)])
def test_whether_each_server_flushes_is_seen_where_the_system_account_lets_the_project_ask(
    tmp_path: Path, sync: str, is_good: bool
) -> None:
    port, monitor = free_ports(2)
    server = NatsServer(tmp_path, "n1", port, monitor, ACCOUNTS, sync_interval=sync)
    url = f"nats://127.0.0.1:{port}"
    server.start()
    try:
        make_log(url)
        found = inspect(url)
    finally:
        server.kill()
    assert found[-1].is_good is is_good
    assert found[-1].text.startswith("n1 flushes every record" if is_good else "n1 does not flush every record")
    assert found[-1].is_serious is not is_good
