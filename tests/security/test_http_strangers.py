"""Another user of the machine at the HTTP port: gets nothing, changes nothing, and keeps nobody else out."""

from __future__ import annotations

import json
import os
import stat
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.transports.http.guesses import FREE
from tests.integration.http_api.server import Server, Wrapped, until
from tests.security.stranger import a_stranger_does, needs_root, run_as_stranger

pytestmark = needs_root

SECRET = "the-launch-code-is-0000"
MOST = 64  # connections that nobody knows
# `ask(method, path, body, headers)` → status and body; `line()` → an open connection.
TOOLS = """
url, port = sys.argv[1], int(sys.argv[1].rsplit(":", 1)[1])
def ask(method, path, body=None, headers={}):
    data = None if body is None else json.dumps(body).encode()
    head = {"Content-Type": "application/json", **headers} if body is not None else headers
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, data, head, method=method), timeout=60) as answer:
            return answer.status, answer.read(65536).decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
def line():
    return socket.create_connection(("127.0.0.1", port), 20)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    flags = ("--port=0", "--spawn-allow=/bin/sh", f"--http-connections-per-address={MOST}", "--max-sse=4")
    with DaemonProcess(*flags) as daemon:
        found = Server(daemon)
        yield found
        found.close()


@pytest.fixture(scope="module")
def bob(server: Server) -> Wrapped:
    wrapped = server.wrap("Bob")
    wrapped.ask_permission("p-1")
    server.http.post("/api/v1/messages", json={"to": "Bob", "body": SECRET}).raise_for_status()
    return wrapped


def attack(server: Server, code: str, *arguments: str) -> str:
    """What the stranger found out."""
    return run_as_stranger(script(code), server.url, *arguments, timeout_s=90)


def script(code: str) -> str:
    return TOOLS + "\n".join(line.removeprefix("    ") for line in code.strip("\n").splitlines())


def test_a_stranger_reads_nothing(server: Server, bob: Wrapped) -> None:
    paths = [
        "/api/v1/messages", "/api/v1/agents", "/api/v1/agents/Bob", "/api/v1/agents/Bob/output", "/api/v1/agents/Bob/screen",
        "/api/v1/permissions", "/api/v1/conversations", "/api/v1/events", "/api/v1/events/sse?offset=0",
        "/api/v1/terminals/stream?agents=Bob", "/api/v1/status", "/api/v1/sessions", "/metrics", "/agents", "/workspaces",
        "/agents/Bob/output", "/openapi.json", "/docs", "/api/v1/arc/agents",
    ]  # fmt: skip
    said = attack(server, 'print(json.dumps([ask("GET", path) for path in sys.argv[2:]]))', *paths)
    assert SECRET not in said
    assert [status for status, _ in json.loads(said)] == [401] * len(paths)
    assert SECRET in server.http.get("/api/v1/messages").text  # it is there


def test_a_stranger_types_approves_and_sends_nothing(server: Server, bob: Wrapped) -> None:
    before = len(bob.told)
    said = attack(
        server,
        """
    wanted = [
        ("/api/v1/agents/Bob/input", {"text": "rm -rf /\\n"}), ("/agents/Bob/input", {"text": "x"}),
        ("/api/v1/agents/Bob/permissions/p-1/approve", {}), ("/api/v1/agents/Bob/permissions/p-1/deny", {}),
        ("/api/v1/agents/Bob/stop", {}), ("/api/v1/agents/Bob/keyboard", {}), ("/agents/Bob/interrupt", {}),
        ("/api/v1/messages", {"to": "Bob", "body": "obey"}), ("/api/v1/costs/budget", {"maxTotal": 0}),
        ("/api/v1/page-codes", {}), ("/workspaces", {"path": "/"}),
    ]
    found = [ask("POST", path, body)[0] for path, body in wanted]
    found += [ask("DELETE", path)[0] for path in ("/agents/Bob", "/api/v1/page-keys", "/api/v1/arc/agents/x")]
    print(set(found))
    """,
    )
    assert said.strip() == "{401}"
    assert len(bob.told) == before
    assert [request["requestId"] for request in server.http.get("/api/v1/permissions").json()["permissions"]] == ["p-1"]


def test_a_stranger_runs_nothing_in_a_folder_of_its_own(server: Server) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        said = attack(
            server,
            """
    open(sys.argv[2] + "/trap.sh", "w").write("touch " + sys.argv[2] + "/sprung")
    print(ask("POST", "/api/v1/sessions", {"agent": "Eve", "cli": "/bin/sh", "cwd": sys.argv[2]})[0],
          ask("POST", "/workspaces/x/agents", {"agent": "Eve", "cli": "/bin/sh", "cwd": sys.argv[2]})[0])
    """,
            folder,
        )
        assert said.split() == ["401", "401"]
        assert "Eve" not in server.http.get("/api/v1/sessions").text
        (Path(server.daemon.directory) / "way-out").symlink_to(folder)
        for cwd in (folder, "way-out", f"../{Path(folder).name}"):  # nor does the owner, by mistake
            refused = server.http.post("/api/v1/sessions", json={"agent": "Eve", "cli": "/bin/sh", "cwd": cwd})
            assert (refused.status_code, refused.json()["error"]["details"]["reason"]) == (422, "cwd_not_allowed"), cwd
            assert "spawn_roots" in refused.json()["error"]["message"]
        assert not (Path(folder) / "sprung").exists()


def test_a_stranger_does_not_get_at_the_token(server: Server) -> None:
    state, pid = server.daemon.state_dir, server.daemon.pid
    server.bare.post("/api/v1/page-keys", json={"code": server.daemon.api_token}).raise_for_status()
    server.bare.cookies.clear()
    for name in ("api-token", "page-keys.json", "http.json", "daemon.log"):
        assert stat.S_IMODE((state / name).stat().st_mode) == 0o600, name
    server.daemon.directory.chmod(0o755)  # as a home may be: nothing above the state directory keeps them out
    files = [str(state / "api-token"), str(state / "page-keys.json"), str(state), f"/proc/{pid}/environ", f"/proc/{pid}/cwd/x"]
    said = attack(
        server,
        """
    for path in sys.argv[2:]:
        try:
            os.listdir(path) if os.path.isdir(path) else open(path, "rb").read()
            print("read", path)
        except PermissionError:
            print("refused")
    """,
        *files,
    )
    assert said.split() == ["refused"] * len(files)
    assert server.daemon.api_token.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert server.daemon.api_token not in (state / "daemon.log").read_text()


def test_guessing_is_slow_and_keeps_nobody_else_waiting(server: Server) -> None:
    code = """
    took = []
    def guess(number):
        began = time.monotonic()
        status, _ = ask("GET", "/api/v1/agents", headers={"Authorization": "Bearer guess-%d" % number})
        took.append((time.monotonic() - began, status))
    for number in range(8):
        guess(number)
    threads = [threading.Thread(target=guess, args=(number,)) for number in range(100, 180)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(json.dumps(took))
    """
    with ThreadPoolExecutor(1) as pool:
        stranger = pool.submit(attack, server, code)
        waits = []
        while not stranger.done():
            began = time.monotonic()
            assert server.http.get("/api/v1/agents").status_code == 200
            waits.append(time.monotonic() - began)
        took = json.loads(stranger.result())
    assert {status for _, status in took} <= {401, 429}
    assert max(seconds for seconds, _ in took) > 2  # the last ones were kept waiting
    assert statistics.median(waits) < 1  # the owner, from the same address, was not, though the machine may be busy once


def test_codes_are_not_guessed_either() -> None:
    """At a relay of their own: whoever has guessed before waits from the first one on."""
    code = """
    began = time.monotonic()
    print({ask("POST", "/api/v1/page-keys", {"code": "guess-%d" % n})[0] for n in range(int(sys.argv[2]))})
    print(time.monotonic() - began)
    """
    with DaemonProcess("--port=0") as daemon:
        server = Server(daemon)
        statuses, seconds = attack(server, code, str(FREE + 5)).splitlines()
        assert statuses == "{401}"
        assert float(seconds) > 2  # each of the last five waited twice as long as the one before
        made = server.http.post("/api/v1/page-codes").json()["code"]
        assert len(made) >= 22  # 128 bits
        assert server.bare.post("/api/v1/page-keys", json={"code": made}).status_code == 201
        server.close()


def test_connections_that_are_held_keep_nobody_out(server: Server) -> None:
    """While they are held: whoever was there stays, and whoever comes gets in."""
    code = """
    held, MOST = [], int(sys.argv[2])
    for number in range(4 * MOST):
        held.append(line())
        held[-1].sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n")
    gone, ends = set(), time.monotonic() + 30
    while len(gone) < 3 * MOST:  # those that nobody knew make room
        assert time.monotonic() < ends, len(gone)
        for each in held:
            each.setblocking(False)
            try:
                if each.recv(1) == b"":
                    gone.add(each)
            except BlockingIOError:
                pass
            except OSError:
                gone.add(each)
    print("held")
    time.sleep(1000)
    """
    known = HTTPConnection(urlsplit(server.url).netloc, timeout=60)  # it does not connect again by itself

    def ask() -> int:
        known.request("GET", "/api/v1/agents", headers=server.daemon.api_headers)
        answer = known.getresponse()
        answer.read()
        return answer.status

    assert ask() == 200
    with a_stranger_does(script(code), server.url, str(MOST)):
        assert ask() == 200
        newcomer = httpx.get(f"{server.url}/api/v1/agents", headers=server.daemon.api_headers, timeout=60)
        assert newcomer.status_code == 200
    known.close()


def test_streams_without_a_token_take_no_place(server: Server) -> None:
    code = """
    lines = [line() for _ in range(12)]
    for each in lines:
        each.sendall(b"GET /api/v1/events/sse HTTP/1.1\\r\\nHost: 127.0.0.1:%d\\r\\n\\r\\n" % port)
    print({each.recv(65536).split()[1] for each in lines})
    """
    assert attack(server, code).strip() == "{b'401'}"
    with httpx.stream("GET", f"{server.url}/api/v1/events/sse", headers=server.daemon.api_headers, timeout=60) as stream:
        assert stream.status_code == 200


def test_large_bodies_of_strangers_are_not_read(server: Server) -> None:
    code = """
    print(ask("POST", "/register", {"agent_id": "x" * 20000})[0], ask("POST", "/api/v1/page-keys", {"code": "x" * 20000})[0])
    """
    assert attack(server, code).split() == ["413", "413"]


def test_half_a_key_that_was_seen_elsewhere_opens_nothing(server: Server) -> None:
    """A browser sends the cookies of 127.0.0.1 to every port of it, so also to a server of the stranger's."""
    answer = httpx.post(f"{server.url}/api/v1/page-keys", json={"code": server.daemon.api_token}, timeout=60)
    cookie = answer.headers["set-cookie"].partition(";")[0]
    code = """
    cookie = sys.argv[2]
    print(ask("GET", "/api/v1/agents", headers={"Cookie": cookie})[0],
          ask("GET", "/api/v1/agents", headers={"Cookie": cookie, "X-Relay-Page": cookie.split("=")[1]})[0])
    """
    assert attack(server, code, cookie).split() == ["401", "401"]
    whole = {"Cookie": cookie, "X-Relay-Page": answer.json()["key"]}
    assert httpx.get(f"{server.url}/api/v1/agents", headers=whole, timeout=60).status_code == 200


def test_the_owner_is_still_there(server: Server, bob: Wrapped) -> None:
    """After all of the above."""
    approved = server.http.post("/api/v1/agents/Bob/permissions/p-1/approve", json={})
    assert approved.status_code == 200
    until(lambda: any(told.command == "approve" for told in bob.told), "Bob is told")
