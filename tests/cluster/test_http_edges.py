"""HTTP at every host: what works at the host that has the seat works at an edge, and is judged by the edge's own facts."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from agent_relay.daemon.system import owner_name
from agent_relay.protocol.places import ENV_NAME, ENV_SOCKET, ENV_TOKEN
from agent_relay.testing.daemon import DaemonProcess
from tests.cluster.hosts import Hosts, run_hosts
from tests.integration.arc.stage import Member, Stage
from tests.integration.arc.test_tls import TLS, TRUST, talk
from tests.integration.http_api.server import Wrapped
from tests.support.nats_servers import free_ports, run_servers

PATIENCE_S = 90.0  # a seat that is lost, and a busy machine
ME = owner_name()


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    """For tests that leave every host alive."""
    with run_hosts(3, 1, ["--port=0"]) as found:
        for daemon in found.daemons.values():
            daemon.wait_for_url()
        yield found


@pytest.fixture
def mortal_hosts() -> Iterator[Hosts]:
    with run_hosts(3, 1, ["--port=0"]) as found:
        for daemon in found.daemons.values():
            daemon.wait_for_url()
        yield found


def edges_of(hosts: Hosts) -> list[str]:
    return [name for name in hosts.daemons if name != hosts.seat]


def open_http(daemon: DaemonProcess) -> httpx.Client:
    return httpx.Client(base_url=daemon.wait_for_url(), timeout=PATIENCE_S, headers=daemon.api_headers)


def status_at(daemon: DaemonProcess, path: str = "/api/v1/status", **headers: str) -> int:
    return httpx.get(f"{daemon.wait_for_url()}{path}", headers=headers, timeout=PATIENCE_S).status_code


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.05)


def enter(http: httpx.Client) -> dict[str, str]:
    """The headers of a page that was let in there."""
    code = http.post("/api/v1/page-codes").json()["code"]
    answer = httpx.post(f"{http.base_url}/api/v1/page-keys", json={"code": code}, timeout=PATIENCE_S)
    assert answer.status_code == 201, answer.text
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0], "X-Relay-Page": answer.json()["key"]}


# --- what works ----------------------------------------------------------------------------------------------------------


def test_a_message_over_http_at_one_edge_is_read_at_another(hosts: Hosts) -> None:
    first, second = edges_of(hosts)
    with open_http(hosts[first]) as here, open_http(hosts[second]) as there, hosts[second].connect_sync("Bob") as bob:
        with there.stream("GET", "/api/v1/events/sse?types=message.exchanged") as stream:
            lines = stream.iter_lines()
            assert next(lines) == ": events follow"
            key = {"Idempotency-Key": "once"}
            sent = here.post("/api/v1/messages", json={"to": "Bob", "body": "over HTTP"}, headers=key)
            assert sent.status_code == 201, sent.text
            again = there.post("/api/v1/messages", json={"to": "Bob", "body": "over HTTP"}, headers=key)
            assert again.json()["messageId"] == sent.json()["messageId"]  # one relay, whichever host is asked
            with next(iter(bob.messages(timeout=PATIENCE_S))) as message:
                assert (message.from_, message.body) == (ME, "over HTTP")
            event = next(json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: "))
            assert event["messageId"] == sent.json()["messageId"]
        resumed = {"Last-Event-ID": str(event["_seq"] - 1)}
        with here.stream("GET", "/api/v1/events/sse?types=message.exchanged", headers=resumed) as stream:  # at another host
            found = next(line for line in stream.iter_lines() if line.startswith("id: "))
            assert found == f"id: {event['_seq']}"
        history = there.get("/api/v1/messages", params={"with": "Bob"}).json()["messages"]
        assert [found["body"] for found in history] == ["over HTTP"]
        for path in ("/", "/health", "/ready", "/metrics", "/openapi.json", "/docs"):
            assert here.get(path).status_code == 200, path


def test_an_arc_agent_at_an_edge_talks_to_a_socket_agent_at_another(hosts: Hosts) -> None:
    first, second = edges_of(hosts)
    stage = Stage(hosts[first])
    with stage.connect() as ann, hosts[second].connect_sync("Carol") as carol:
        ann.send(["Carol"], "from ARC")
        with next(iter(carol.messages(timeout=PATIENCE_S))) as message:
            assert (message.from_, message.body) == (ann.me, "from ARC")
        carol.send(ann.me, "back")
        assert ann.next()["payload"] == "back"
        assert ann.connection.ping().wait(PATIENCE_S)
        assert stage.http.get(f"/api/v1/agents/{ann.me}").json()["host"] == first
    stage.close()


def test_large_bodies_pass_and_too_large_ones_are_told(hosts: Hosts) -> None:
    edge = hosts[edges_of(hosts)[0]]
    limit = 1_048_576
    with open_http(edge) as http:
        body = "x" * (limit - 10_000)
        assert http.post("/api/v1/messages", json={"to": ME, "body": body}).status_code == 201
        port, size = http.base_url.port, 8 << 20  # more than the window of a tunnel and the system's buffers hold
    head = f"POST /api/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {edge.api_token}\r\n"
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as connection:
        connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n".encode())
        connection.sendall(b"x" * size)  # all of it before it reads
        assert b" 413 " in connection.makefile("rb").readline()


def test_a_client_that_does_not_read_stops_only_itself(hosts: Hosts) -> None:
    edge = hosts[edges_of(hosts)[0]]
    count = 16
    with open_http(edge) as http:
        assert http.post("/api/v1/messages", json={"to": ME, "body": "y" * 1_000_000}).status_code == 201
        port = http.base_url.port
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as slow:
            head = (
                f"GET /api/v1/messages?limit=1 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {edge.api_token}\r\n"
            )
            asked = [f"{head}\r\n"] * (count - 1) + [f"{head}Connection: close\r\n\r\n"]
            slow.sendall("".join(asked).encode())
            assert slow.recv(8) == b"HTTP/1.1"  # the answers have begun, and are more than the system keeps
            for _ in range(20):
                assert http.get("/api/v1/agents").status_code == 200
            rest = sum(len(part) for part in iter(lambda: slow.recv(1 << 20), b""))
    assert rest > count * 1_000_000


# --- who may come in -----------------------------------------------------------------------------------------------------


def test_every_host_has_a_token_of_its_own(hosts: Hosts) -> None:
    for name, daemon in hosts.daemons.items():
        assert status_at(daemon, **daemon.api_headers) == 200
        assert status_at(daemon) == 401
        assert status_at(daemon, Authorization="Bearer nonsense") == 401
        for other in (each for each in hosts.daemons if each != name):
            assert status_at(daemon, **hosts[other].api_headers) == 401, (name, other)


def test_guessing_at_an_edge_is_slow_and_keeps_nobody_else_waiting(hosts: Hosts) -> None:
    edge = hosts[edges_of(hosts)[0]]
    began = time.monotonic()
    for number in range(12):  # eight are free, then each takes twice as long as the last
        assert status_at(edge, Authorization=f"Bearer guess-{number}") == 401
        assert status_at(edge, **edge.api_headers) == 200
    assert time.monotonic() - began >= 0.1 + 0.2 + 0.4 + 0.8


def test_host_and_origin_are_those_of_the_edge(hosts: Hosts) -> None:
    first, second = (hosts[name] for name in edges_of(hosts))
    seat = hosts[hosts.seat]
    token = first.api_headers
    own = first.wait_for_url()
    assert status_at(first, **token, Origin=own) == 200
    for foreign in (seat.wait_for_url(), second.wait_for_url(), "http://example.com"):
        assert status_at(first, **token, Origin=foreign) == 403, foreign
        assert status_at(first, **token, Host=foreign.partition("://")[2]) == 403, foreign


def test_a_page_is_let_in_at_its_own_host_alone(hosts: Hosts) -> None:
    first, second = (hosts[name] for name in edges_of(hosts))
    with open_http(first) as http:
        page = enter(http)
    assert status_at(first, "/api/v1/agents", **page) == 200
    assert status_at(second, "/api/v1/agents", **page) == 401
    assert status_at(hosts[hosts.seat], "/api/v1/agents", **page) == 401


_ASK = """
import sys, urllib.request, urllib.error
request = urllib.request.Request(sys.argv[1] + "/api/v1/page-codes", method="POST",
    headers={"Authorization": "Bearer " + sys.argv[2]})
try:
    print(urllib.request.urlopen(request, timeout=90).status)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


def test_a_process_in_an_agents_terminal_is_known_at_its_own_host(hosts: Hosts) -> None:
    """The edge looks: at the seat there is no such process."""
    edge = hosts[edges_of(hosts)[0]]
    words = [sys.executable, "-I", "-c", _ASK, edge.wait_for_url(), edge.api_token]
    inside = {ENV_NAME: "Bob", ENV_TOKEN: "t", ENV_SOCKET: edge.socket}
    assert subprocess.check_output(words, env={}, text=True).strip() == "201"
    said = subprocess.check_output(words, env=inside, text=True)
    assert said.startswith("403 "), said
    assert "inside_agent" in said


def test_a_person_at_one_host_does_not_control_what_runs_on_another(hosts: Hosts) -> None:
    """Over HTTP as by the command line: the host that a request came to is where the person is."""
    first, second = edges_of(hosts)
    client = hosts[second].connect_sync("Dora", control=True)
    client.connect()
    dora = Wrapped(client)
    for name in (first, hosts.seat):
        with open_http(hosts[name]) as http:
            refused = http.post("/api/v1/agents/Dora/interrupt")
            error = refused.json()["error"]
            assert (refused.status_code, error["code"]) == (409, "PERMISSION_DENIED"), refused.text
            assert (error["details"]["setting"], error["details"]["value"]) == ("cluster_control", name)
    assert not dora.told
    with open_http(hosts[second]) as http:
        assert http.post("/api/v1/agents/Dora/interrupt").status_code == 200
    until(dora.heard.is_set, "the agent is interrupted from its own host")
    client.close()


# --- when something breaks ----------------------------------------------------------------------------------------------


def test_when_the_seat_dies_every_address_stays_and_clients_go_on(mortal_hosts: Hosts) -> None:
    hosts = mortal_hosts
    seat = hosts.seat
    urls = {name: hosts[name].wait_for_url() for name in edges_of(hosts)}
    clients = {name: open_http(hosts[name]) for name in urls}
    pages = {name: enter(http) for name, http in clients.items()}
    hosts[seat].kill()
    for name in urls:
        until(lambda name=name: _answers(clients[name]), f"{name} answers again")  # type: ignore[misc]
    assert {name: hosts[name].wait_for_url() for name in urls} == urls
    assert hosts.seat != seat
    for name, page in pages.items():
        assert status_at(hosts[name], "/api/v1/agents", **page) == 200, name  # nobody has to sign in again
    first, second = clients.values()
    sent = first.post("/api/v1/messages", json={"to": ME, "body": "after"})
    assert sent.status_code == 201, sent.text
    assert second.get(f"/api/v1/messages/{sent.json()['messageId']}").json()["body"] == "after"
    hosts[seat].start()
    until(lambda: status_at(hosts[seat], **hosts[seat].api_headers) == 200, "the old seat serves as an edge")
    first.close()
    second.close()


def _answers(http: httpx.Client) -> bool:
    try:
        return http.get("/api/v1/status", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


def test_a_host_without_its_cluster_answers_with_the_reason() -> None:
    (port,) = free_ports(1)
    flags = (f"--cluster=nats://127.0.0.1:{port}", "--cluster-host=a", "--cluster-project=demo", "--port=0")
    with DaemonProcess(*flags) as daemon:
        with open_http(daemon) as http:
            answer = http.post("/api/v1/messages", json={"to": "Bob", "body": "x" * 300_000})
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            error = answer.json()["error"]
            assert (error["code"], error["retryable"]) == ("SERVICE_UNAVAILABLE", True)
            assert "cannot reach its cluster" in error["message"]
            assert http.get("/ready").status_code == 503
            assert http.get("/health").json()["status"] == "ok"
            page = http.get("/", headers={"Accept": "text/html"})
            assert page.status_code == 503
            assert "cannot reach its cluster" in page.text
            assert http.get("/health", headers={"Host": "example.com"}).status_code == 403
        assert daemon.terminate() == 0


def test_a_host_with_tls_is_served_by_a_seat_that_has_no_port_at_all() -> None:
    with run_servers(1) as nats:
        hosts = Hosts(nats, 2)
        try:
            hosts["a"].start()  # most tests ask for no HTTP, and so does this host
            client = hosts["a"].connect_sync(observer=True)
            client.connect(wait=True)
            client.close()
            edge = hosts["b"]
            edge.flags = (*edge.flags, "--port=0", *TLS)
            edge.start()
            url = edge.wait_for_url()
            assert url.startswith("https://")
            with httpx.Client(base_url=url, verify=TRUST, headers=edge.api_headers, timeout=PATIENCE_S) as http:
                until(lambda: _answers(http), "the edge serves HTTP")
                assert hosts.seat == "a"
                assert http.get("/health", headers={"Origin": url}).status_code == 200
                assert http.get("/health", headers={"Origin": url.replace("https", "http")}).status_code == 403
                assert "Secure" in http.post("/api/v1/page-keys", json={"code": edge.api_token}).headers["set-cookie"]
                found = http.post("/register", json={"agent_id": "safe-1"})
            member = Member("safe-1", found.json()["token"])
            assert asyncio.run(talk(url, member, 6_000, hosts["a"].terminate)) == 1001  # it says goodbye to clients of every host
        finally:
            hosts.remove()


def test_an_arc_agent_at_an_edge_survives_a_seat_that_dies(mortal_hosts: Hosts) -> None:
    hosts = mortal_hosts
    seat = hosts.seat
    first, second = edges_of(hosts)
    stage = Stage(hosts[first])
    member = stage.register("ann-1")
    with hosts[second].connect_sync("Carol") as carol:
        with stage.connect(member) as ann:
            carol.send("ann-1", "before")
            before = ann.next()
            assert before["payload"] == "before"
            hosts[seat].kill()
            with pytest.raises(ConnectionClosed):
                ann.read_all()
        sent = carol.send("ann-1", "meanwhile")  # returns when the next seat has stored it
        assert sent.message_id
        until(lambda: _answers(stage.http), "the edge serves HTTP again")
        with stage.connect(member) as ann:  # the same token, at the same address
            frame = ann.next()
            if frame["id"] == before["id"]:  # whether it was read, nobody could write down
                frame = ann.next()
            assert frame["payload"] == "meanwhile"
            ann.send(["Carol"], "still here")
            with next(iter(carol.messages(timeout=PATIENCE_S))) as message:
                assert (message.from_, message.body) == ("ann-1", "still here")
    stage.close()


def test_a_stream_at_an_edge_goes_on_after_the_seat_died(mortal_hosts: Hosts) -> None:
    """The same events with the same numbers, from whichever host has the seat; none twice, and none missing."""
    hosts = mortal_hosts
    seat = hosts.seat
    first, _ = edges_of(hosts)
    with open_http(hosts[first]) as http:
        sent = [http.post("/api/v1/messages", json={"to": ME, "body": f"before {n}"}).json()["messageId"] for n in range(3)]
        seen = _read_exchanged(http, 0, 3)
        hosts[seat].kill()
        until(lambda: _answers(http), "the edge serves HTTP again")
        sent += [http.post("/api/v1/messages", json={"to": ME, "body": f"after {n}"}).json()["messageId"] for n in range(3)]
        seen += _read_exchanged(http, seen[-1][0], 3)
    assert [message for _, message in seen] == sent
    numbers = [number for number, _ in seen]
    assert numbers == sorted(set(numbers))


def _read_exchanged(http: httpx.Client, after: int, count: int) -> list[tuple[int, str]]:
    """Numbers and messages, as a client that resumes reads them."""
    found: list[tuple[int, str]] = []
    headers = {"Last-Event-ID": str(after)}
    with http.stream("GET", "/api/v1/events/sse?types=message.exchanged", headers=headers) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                event = json.loads(line.removeprefix("data: "))
                if event["type"] == "message.exchanged":  # a seat that was killed leaves a `stream.gap`
                    found.append((event["_seq"], event["messageId"]))
                if len(found) == count:
                    break
    return found
