"""GET /arc: who is let in, and what is said before anything is upgraded."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
from websockets.sync.client import connect

from tests.integration.arc.stage import FREE, Client, Stage

KEY = "dGhlIHNhbXBsZSBub25jZQ=="


def test_the_welcome_is_flat_and_an_envelope(stage: Stage) -> None:
    member = stage.register()
    with stage.connect(member) as client:
        welcome = client.welcome
    flat = {name: welcome[name] for name in ("relay", "version", "capabilities", "extensions", "limits")}
    assert welcome["payload"] == flat | {"agent_id": member.id}
    assert (welcome["from"], welcome["to"], welcome["type"]) == ("relay", [member.id], "welcome")
    assert welcome["id"].startswith("msg_")
    assert isinstance(welcome["ts"], int)
    assert welcome["version"] == "1.0"
    assert {"broadcast", "direct", "subscribe"} <= set(welcome["capabilities"])
    assert {"persistence", "presence"} <= set(welcome["extensions"])
    assert welcome["limits"]["max_message_size"] == 65_536


def test_the_token_may_stand_in_the_query_and_is_never_logged(stage: Stage) -> None:
    member = stage.register()
    with connect(f"{stage.url.replace('http', 'ws', 1)}/arc?token={member.token}") as connection:
        assert Client(connection, member).welcome["to"] == [member.id]
    assert stage.try_upgrade("?token=tok_wrong-but-secret")[0] == 401
    logged = (stage.daemon.state_dir / "daemon.log").read_text() + stage.daemon.output
    assert "arc_refused" in logged
    assert member.token not in logged
    assert "wrong-but-secret" not in logged


def test_a_header_hides_the_query(stage: Stage) -> None:
    member = stage.register()
    assert stage.try_upgrade(f"?token={member.token}", Authorization="Bearer tok_wrong")[0] == 401
    assert stage.try_upgrade(f"?token={member.token}", Authorization="Basic abc")[0] == 401
    assert stage.try_upgrade("?token=tok_wrong", Authorization=f"Bearer {member.token}")[0] == 101


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer"}, {"Authorization": "Bearer tok_x"}, {"Authorization": "Bearer " + "t" * 5_000}]
)
def test_nobody_comes_in_without_a_token(make_stage: Callable[..., Stage], headers: dict[str, str]) -> None:
    status, said = make_stage(*FREE).try_upgrade(**headers)
    assert status == 401
    assert said["error"] == "unauthorized"
    assert said["www-authenticate"] == "Bearer"


def test_after_ten_failures_a_minute_an_address_is_told_to_wait(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE)
    member = stage.register()
    assert [stage.try_upgrade()[0] for _ in range(10)] == [401] * 10
    status, said = stage.try_upgrade()
    assert (status, said["error"]) == (429, "rate_limit")
    assert 1 <= int(said["retry-after"]) <= 60
    assert stage.http.post("/token/refresh").status_code == 429
    with socket.create_connection(("127.0.0.1", int(stage.url.rsplit(":", 1)[1])), source_address=("127.0.0.3", 0)) as other:
        assert _ask(other, stage).startswith("HTTP/1.1 429")  # another address of the same machine
    with stage.connect(member):
        pass  # who has a token is let in


def _ask(connection: socket.socket, stage: Stage, *lines: str, path: str = "/arc") -> str:
    """The head of the answer; the first frame may come with it."""
    head = [
        f"GET {path} HTTP/1.1", f"Host: {stage.url.removeprefix('http://')}", "Connection: Upgrade", "Upgrade: websocket", *lines,
    ]  # fmt: skip
    if not any(line.startswith("Sec-WebSocket-Key") for line in lines):
        head += [f"Sec-WebSocket-Key: {KEY}"]
    if not any(line.startswith("Sec-WebSocket-Version") for line in lines):
        head += ["Sec-WebSocket-Version: 13"]
    connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n")
    answer = b""
    while b"\r\n\r\n" not in answer:
        part = connection.recv(65_536)
        assert part, answer
        answer += part
    return answer.partition(b"\r\n\r\n")[0].decode()


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["Origin: https://evil.example"], 403),
        (["Sec-Fetch-Site: cross-site"], 403),
        (["Sec-WebSocket-Version: 8"], 426),
        (["Sec-WebSocket-Key: short"], 400),
        ([], 101),
    ],
)
def test_other_pages_and_half_requests_are_refused(stage: Stage, lines: list[str], status: int) -> None:
    member = stage.register()
    with socket.create_connection(("127.0.0.1", int(stage.url.rsplit(":", 1)[1]))) as connection:
        answer = _ask(connection, stage, f"Authorization: Bearer {member.token}", *lines)
        assert answer.startswith(f"HTTP/1.1 {status} ")
        if status == 101:
            assert "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in answer  # the answer of RFC 6455, 1.3
            assert "permessage-deflate" not in answer


def test_a_foreign_host_is_refused(stage: Stage) -> None:
    member = stage.register()
    with socket.create_connection(("127.0.0.1", int(stage.url.rsplit(":", 1)[1]))) as connection:
        head = f"GET /arc HTTP/1.1\r\nHost: evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: {KEY}"
        connection.sendall(f"{head}\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer {member.token}\r\n\r\n".encode())
        assert connection.recv(65_536).startswith(b"HTTP/1.1 403 ")


def test_there_is_one_place_for_websockets(stage: Stage) -> None:
    assert stage.try_upgrade(path="/elsewhere")[0] == 404
    plain = stage.http.get("/arc")
    assert (plain.status_code, plain.json()["error"]) == (426, "upgrade_required")


def test_one_address_has_so_many_connections(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(*FREE, "--arc-connections-per-address=2")
    members = [stage.register() for _ in range(3)]
    with stage.connect(members[0]), stage.connect(members[1]):
        assert stage.try_upgrade(Authorization=f"Bearer {members[2].token}")[0] == 429
    with stage.connect(members[2]):
        pass
