"""Who is let in: hosts, origins, tokens, content types, sizes, and tricks with paths."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from agent_relay.testing.daemon import DaemonFailed, DaemonProcess

from .conftest import StartServer
from .server import ME, SMALL_MESSAGE, Server, problem, until

TOKEN = "Geheim-42"
SMALL = 4_096


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    daemon = DaemonProcess("--port=0", f"--max-frame-bytes={SMALL}", "--cors-origins=https://pages.example.org")
    daemon.environ = {"AGENT_RELAY_API_TOKEN": TOKEN}
    with daemon:
        found = Server(daemon)
        yield found
        found.close()


def port_of(server: Server) -> int:
    return httpx.URL(server.url).port or 0


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "localhost",
        "127.0.0.1:1",
        "10.0.0.7:{port}",
        "localhost:{port}@evil",
        "127.0.0.1.nip.io:{port}",
        "",
        "[::1",
        "localhost:{port}/x",
        "0x7f.1:{port}",
    ],
)
def test_foreign_hosts_are_refused(server: Server, host: str) -> None:
    said = host.format(port=port_of(server))
    for path in ("/health", "/api/v1/agents", "/nothing"):
        assert problem(server.http.get(path, headers={"Host": said})) == (403, "PERMISSION_DENIED"), said


@pytest.mark.parametrize("host", ["localhost:{port}", "LOCALHOST:{port}", "127.0.0.1:{port}", "[::1]:{port}", "127.0.0.2:{port}"])
def test_own_hosts_are_not(server: Server, host: str) -> None:
    assert server.http.get("/health", headers={"Host": host.format(port=port_of(server))}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://localhost",
        "http://localhost:1",
        "https://localhost:{port}",
        "http://evil.example:{port}",
        "",
        "http://localhost:{port}.evil",
        "file://",
    ],
)
def test_foreign_pages_are_refused(server: Server, origin: str) -> None:
    headers = {"Origin": origin.format(port=port_of(server))}
    assert problem(server.http.get("/api/v1/agents", headers=headers)) == (403, "PERMISSION_DENIED")
    assert problem(server.http.post("/api/v1/messages", json={"to": ME, "body": "x"}, headers=headers))[0] == 403
    assert problem(server.http.options("/api/v1/messages", headers=headers))[0] == 403


def test_own_pages_are_not(server: Server) -> None:
    for host in ("localhost", "127.0.0.1"):
        answer = server.http.get("/api/v1/agents", headers={"Origin": f"http://{host}:{port_of(server)}"})
        assert answer.status_code == 200
        assert "access-control-allow-origin" not in answer.headers


def test_a_page_that_hides_its_origin_is_refused_too(server: Server) -> None:
    for site in ("cross-site", "same-site"):
        hidden = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        visit = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
        assert problem(server.http.get("/api/v1/events/sse", headers=hidden))[0] == 403
        assert server.http.get("/docs", headers=visit).status_code == 200
        assert problem(server.http.post("/api/v1/agents/x/stop", headers=visit))[0] == 403
    assert server.http.get("/health", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_pages_on_the_list_may_read_the_answer(guarded: Server) -> None:
    origin = {"Origin": "https://pages.example.org"}
    answer = guarded.http.get("/health", headers=origin)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "https://pages.example.org")
    preflight = guarded.http.options("/api/v1/messages", headers=origin | {"Authorization": f"Bearer {TOKEN}"})
    assert preflight.status_code == 204
    assert "Authorization" in preflight.headers["access-control-allow-headers"]
    bare = guarded.bare.options("/api/v1/messages", headers=origin | {"Access-Control-Request-Method": "POST"})
    assert bare.status_code == 204  # a browser sends no token with it
    assert problem(guarded.http.get("/health", headers={"Origin": "https://pages.example.org.evil"}))[0] == 403


@pytest.mark.parametrize(
    "said",
    [
        None,
        "",
        "Bearer",
        f"Bearer {TOKEN.lower()}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN} {TOKEN}",
        "Bearer \xe4",
    ],
)
def test_without_the_right_token_nobody_comes_in(guarded: Server, said: str | None) -> None:
    headers = {} if said is None else {"Authorization": said.encode("latin-1")}
    for path in (
        "/api/v1/agents",
        "/metrics",
        "/docs",
        "/openapi.json",
        "/workspaces",
        "/nothing",
        "/health/x",
        "/api/v1/events/sse",
    ):
        answer = guarded.bare.get(path, headers=headers)
        assert problem(answer) == (401, "PERMISSION_DENIED"), path
        assert answer.headers["www-authenticate"] == "Bearer"
    for path in ("/health", "/ready", "/"):
        assert guarded.bare.get(path, headers=headers).status_code == 200


def test_with_it_everybody_does(guarded: Server) -> None:
    for scheme in ("Bearer", "bearer"):
        assert guarded.http.get("/api/v1/agents", headers={"Authorization": f"{scheme} {TOKEN}"}).status_code == 200
    twice = [("Authorization", f"Bearer {TOKEN}"), ("Authorization", f"Bearer {TOKEN}")]
    assert guarded.bare.get("/api/v1/agents", headers=twice).status_code == 401


def test_neither_tokens_nor_bodies_are_logged(guarded: Server) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Request-Id": "my-request"}
    message = {"to": ME, "body": "SECRETbody"}
    assert guarded.http.post("/api/v1/messages?note=SECRETquery", json=message, headers=headers | {"X-Request-Id": "no"}).is_error
    answer = guarded.http.post("/api/v1/messages", json=message, headers=headers)
    assert (answer.status_code, answer.headers["x-request-id"]) == (201, "my-request")
    log = guarded.daemon.state_dir / "daemon.log"
    until(lambda: "my-request" in log.read_text(), "it is noted")
    (line,) = [line for line in map(json.loads, log.read_text().splitlines()) if line.get("request") == "my-request"]
    assert (line["method"], line["path"], line["status"]) == ("POST", "/api/v1/messages", 201)
    text = log.read_text()
    assert "SECRET" not in text
    assert TOKEN not in text


def test_strange_request_ids_are_not_passed_on(server: Server) -> None:
    for strange in ("a b", "x" * 65, "ä", '"'):
        assert server.http.get("/health", headers={"X-Request-Id": strange.encode()}).headers["x-request-id"] != strange


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json5",
        "application/json; charset=utf-16",
        "",
        "text/json",
        "application/jsonx, application/json",
    ],
)
def test_bodies_must_be_json(server: Server, kind: str) -> None:
    for path in ("/api/v1/messages", "/api/v1/agents/x/pause", "/api/v1/sessions", "/workspaces"):
        answer = server.http.post(path, content=SMALL_MESSAGE, headers={"Content-Type": kind})
        assert problem(answer) == (415, "INVALID_FORMAT"), path


def test_a_body_without_a_type_is_refused(server: Server) -> None:
    assert problem(server.http.post("/api/v1/messages", content=b"{}")) == (415, "INVALID_FORMAT")


def test_json_with_a_charset_is_taken(server: Server) -> None:
    answer = server.http.post(
        "/api/v1/messages", content=SMALL_MESSAGE, headers={"Content-Type": "application/json; charset=UTF-8"}
    )
    assert answer.status_code == 201


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"nonsense",
        b'"text"',
        b"[]",
        b"null",
        b'{"to":"x","body":"\xff"}',
        b"\xef\xbb\xbf{}",
        b'{"a":' * 5_000,
        b"[" * 100_000,
        b'{"to":"x","body":"\\ud800"}',
        b'{"to":1e999,"body":"x"}',
    ],
)
def test_broken_json_is_refused_with_a_sentence(server: Server, content: bytes) -> None:
    answer = server.http.post("/api/v1/messages", content=content, headers={"Content-Type": "application/json"})
    assert problem(answer) == (422, "INVALID_FORMAT")


def test_large_bodies_are_refused(guarded: Server) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    large = json.dumps({"to": ME, "body": "x" * SMALL}).encode()
    assert problem(guarded.http.post("/api/v1/messages", content=large, headers=headers)) == (413, "MESSAGE_TOO_LARGE")

    def parts() -> Iterator[bytes]:  # says nothing about its length
        for start in range(0, len(large), 1_000):
            yield large[start : start + 1_000]

    assert problem(guarded.http.post("/api/v1/messages", content=parts(), headers=headers)) == (413, "MESSAGE_TOO_LARGE")
    small = {"to": ME, "body": "x" * (SMALL // 2)}
    assert guarded.http.post("/api/v1/messages", json=small, headers=headers).status_code == 201


@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".",
        "%2e%2e",
        "..%2f..%2fetc%2fpasswd",
        "a%00b",
        "a%0d%0ab",
        "*",
        "#x",
        "x" * 5_000,
        "%ff",
        "a%20b",
        "%F0%9F%98%80",
        "a;b",
        "a%5cb",
        "-rf",
    ],
)
def test_tricks_with_names_find_nothing(server: Server, name: str) -> None:
    paths = [
        "/api/v1/agents/{}",
        "/api/v1/agents/{}/output",
        "/api/v1/agents/{}/screen",
        "/agents/{}",
        "/agents/{}/output",
        "/api/v1/sessions/{}",
        "/workspaces/{}",
        "/workspaces/{}/agents",
        "/api/v1/agents/{}/events/sse",
        "/api/v1/messages/{}",
    ]
    for path in paths:
        answer = raw_get(server, path.format(name))
        assert answer in {404, 422} or (answer == 200 and name in {"..", ".", "%2e%2e"}), path


def raw_get(server: Server, target: str) -> int:
    """As it is: a library would tidy the path up."""
    with socket.create_connection(("127.0.0.1", port_of(server)), 10) as connection:
        request = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port_of(server)}\r\nConnection: close\r\n"
        request += f"Authorization: Bearer {server.daemon.api_token}\r\n\r\n"
        connection.sendall(request.encode("latin-1"))
        return int(connection.makefile("rb").readline().split()[1])


def test_other_methods_are_named(server: Server) -> None:
    for method, path in (
        ("PUT", "/api/v1/agents"),
        ("DELETE", "/health"),
        ("PATCH", "/workspaces"),
        ("GET", "/api/v1/agents/x/pause"),
    ):
        answer = server.http.request(method, path)
        assert problem(answer) == (405, "ROUTE_NOT_FOUND")
        assert answer.headers["allow"]


def test_a_port_in_use_leaves_the_daemon_without_http(server: Server) -> None:
    with DaemonProcess(f"--port={port_of(server)}") as second:
        with pytest.raises(DaemonFailed, match="is in use; leave out --port to get the next free one"):
            second.wait_for_url()
        with second.connect_sync("Alice") as alice:
            assert alice.agents().find("Alice") is not None


def test_stopping_lets_answers_finish_and_streams_end(start_server: StartServer) -> None:
    server = start_server()
    with server.http.stream("GET", "/api/v1/events/sse?offset=0") as stream:
        lines = stream.iter_lines()
        assert next(lines) == ": events follow"
        assert server.daemon.terminate() == 0
        list(lines)  # it ends by itself, whole
    assert not (server.daemon.state_dir / "http.json").exists()


def test_at_the_end_whoever_waits_is_told_how_far_it_came(start_server: StartServer) -> None:
    server = start_server()
    bob = server.join("Bob")
    waits = {"to": "Bob", "body": "x", "await_ms": 60_000}
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(server.http.post, "/api/v1/messages", json=waits)
        until(lambda: bool(bob.history(limit=1).messages), "it is stored")
        assert server.daemon.terminate() == 0
        receipt = answer.result().json()
    assert (answer.result().status_code, receipt["delivered"], receipt["failure"]) == (201, False, "The daemon is stopping.")


def test_a_client_that_leaves_in_the_middle_is_no_failure_of_ours(server: Server) -> None:
    port = port_of(server)
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        head = f"POST /api/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        head += f"Authorization: Bearer {server.daemon.api_token}\r\nContent-Length: 99\r\n\r\n"
        connection.sendall(head.encode() + b'{"to":')
        connection.shutdown(socket.SHUT_WR)
    log = server.daemon.state_dir / "daemon.log"  # nobody is found behind the connection any more, so it is nobody's wish
    until(lambda: any('"status": 403' in line for line in log.read_text().splitlines()), "it is noted")
    assert "http_failed" not in log.read_text()


def test_whoever_has_shown_no_token_may_send_little(server: Server) -> None:
    large = b'{"code": "' + b"x" * 20_000 + b'"}'

    def parts() -> Iterator[bytes]:  # says nothing about its length
        for start in range(0, len(large), 1_000):
            yield large[start : start + 1_000]

    for path in ("/api/v1/page-keys", "/register"):
        for content in (large, parts()):
            answer = server.bare.post(path, content=content, headers={"Content-Type": "application/json"})
            assert answer.status_code == 413, path
