"""Who may join, by a token over TLS: a host with both works and shows the token nowhere, and any other one is told why not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.testing.daemon import DaemonProcess
from tests.cluster.hosts import joined
from tests.cluster.test_presence import wait_until
from tests.support.nats_servers import NatsServer, free_ports

TLS = Path(__file__).resolve().parents[1] / "data" / "tls"
TOKEN = "relay-correct-horse-battery"
SECURED = f"""
authorization {{ token: "{TOKEN}" }}
tls {{ cert_file: "{TLS / "cert.pem"}", key_file: "{TLS / "key.pem"}" }}
"""
PATIENCE_S = 60.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    port, monitor = free_ports(2)
    server = NatsServer(tmp_path, "n1", port, monitor, SECURED)
    server.start()
    yield server
    server.kill()


def make_host(server: NatsServer, name: str, *flags: str, token: str = TOKEN, scheme: str = "tls") -> DaemonProcess:
    host = DaemonProcess(
        f"--cluster={scheme}://127.0.0.1:{server.port}", f"--cluster-host={name}", "--cluster-project=demo",
        "--cluster-replicas=1", *flags,
    )  # fmt: skip
    host.environ = {"AGENT_RELAY_CLUSTER_TOKEN": token}
    return host


def trouble_of(host: DaemonProcess) -> str:
    path = host.state_dir / "cluster.json"
    return str(json.loads(path.read_text("utf-8"))["trouble"]) if path.exists() else ""


def shown_by(host: DaemonProcess) -> str:
    """All that others could see: its files, what it printed, its command line and its environment."""
    files = [path.read_bytes() for path in host.directory.rglob("*") if path.is_file()]
    process = [Path(f"/proc/{host.pid}/{page}").read_bytes() for page in ("cmdline", "environ")]
    listed = subprocess.run(["ps", "auxeww"], capture_output=True, check=True, timeout=PATIENCE_S).stdout
    return b"\n".join([*files, *process, *(line for line in listed.splitlines() if str(host.pid).encode() in line)]).decode(
        "utf-8", "replace"
    )


def test_hosts_meet_over_tls_and_show_their_token_nowhere(server: NatsServer) -> None:
    ca = f"--cluster-ca={TLS / 'cert.pem'}"
    with make_host(server, "a", ca) as first, make_host(server, "b", ca) as second:
        with joined(first, "Alice") as alice, joined(second, "Bob") as bob:
            alice.send("Bob", "over TLS")
            with next(iter(bob.messages(timeout=PATIENCE_S))) as message:
                assert message.body == "over TLS"
        for host in (first, second):
            seen = shown_by(host)
            assert "cluster-project=demo" in seen
            assert TOKEN not in seen


@pytest.mark.parametrize(
    ("flags", "token", "says"),
    [
        ((f"--cluster-ca={TLS / 'cert.pem'}",), "relay-wrong-horse", "Authorization"),
        ((), TOKEN, "CERTIFICATE_VERIFY_FAILED"),
    ],
    ids=["wrong token", "unknown authority"],
)
def test_a_host_that_may_not_join_says_why_and_shows_no_token(
    server: NatsServer, flags: tuple[str, ...], token: str, says: str
) -> None:
    with make_host(server, "a", *flags, token=token) as host:
        wait_until(lambda: says.lower() in trouble_of(host).lower(), f"it does not say {says}")
        assert token not in shown_by(host)


def test_a_token_is_not_said_to_a_server_without_tls_where_tls_was_asked_for(tmp_path: Path) -> None:
    port, monitor = free_ports(2)
    plain = NatsServer(tmp_path, "n1", port, monitor, f'authorization {{ token: "{TOKEN}" }}\ntrace: true\nlogtime: false')
    plain.start()
    try:
        with make_host(plain, "a", f"--cluster-ca={TLS / 'cert.pem'}") as host:
            wait_until(lambda: "no TLS" in trouble_of(host), "it does not say that the server has no TLS")
        assert "->> [CONNECT" not in (tmp_path / "n1.log").read_text("utf-8")
    finally:
        plain.kill()


def test_a_server_that_only_offers_tls_is_spoken_to_over_tls(tmp_path: Path) -> None:
    port, monitor = free_ports(2)
    lenient = NatsServer(tmp_path, "n1", port, monitor, f"{SECURED}\nallow_non_tls: true")
    lenient.start()
    try:
        with make_host(lenient, "a", f"--cluster-ca={TLS / 'cert.pem'}") as host, joined(host, "Alice"):
            connections = lenient.look("connz")["connections"]
        assert [bool(each.get("tls_version")) for each in connections] == [True]
    finally:
        lenient.kill()
