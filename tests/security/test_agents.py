"""Agents that attack from inside their terminals: approving, typing, controlling, speaking as somebody else."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.stage import BACKENDS, Stage, until
from tests.security.inside import Inside, wait_for_file

pytestmark = pytest.mark.terminals

# A raw client: the standard library and the wire alone. Prints or writes the answer to one command.
RAW = """
import json, os, socket, struct, sys
path, answer, command = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
hello = json.loads(sys.argv[4]) if len(sys.argv) > 4 else {"agent": "observer", "version": 2, "mode": "observer"}
link = socket.socket(socket.AF_UNIX)
link.connect(path)
def say(kind, payload, number):
    data = json.dumps({"v": 2, "type": kind, "id": f"a{number}", "ts": 1, "payload": payload}).encode()
    link.sendall(struct.pack(">I", len(data)) + data)
def hear():
    size = struct.unpack(">I", link.recv(4, socket.MSG_WAITALL))[0]
    return json.loads(link.recv(size, socket.MSG_WAITALL))
say("HELLO", hello, 1)
said = hear()
if said["type"] == "WELCOME" and command:
    kind = command.pop("type", "CONTROL")
    say(kind, command, 2)
    said = hear()
    while said["payload"].get("reply_to", said["payload"].get("ack_id", said["payload"].get("nack_id"))) != "a2":
        said = hear()
text = json.dumps({"type": said["type"], **said["payload"]})
if answer == "-":
    print(text)
else:
    with open(answer + ".part", "w") as file:
        file.write(text)
    os.replace(answer + ".part", answer)
"""
# The same, by a process that nobody is the parent of any more: its ancestors are gone when it connects.
AS_ORPHAN = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
middle = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == middle:
    time.sleep(0.005)
"""
ORPHAN = AS_ORPHAN + RAW
HTTP = """
import json, os, sys, urllib.error, urllib.request
url, token, body, answer = sys.argv[1:]
headers = {"Authorization": "Bearer " + open(token).read().strip(), "Content-Type": "application/json"}
try:
    found = urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers))
except urllib.error.HTTPError as error:
    found = error
text = json.dumps([found.status, json.load(found)])
if answer == "-":
    print(text)
else:
    with open(answer + ".part", "w") as file:
        file.write(text)
    os.replace(answer + ".part", answer)
"""
HANG_UP = """
import socket, struct, sys, urllib.parse
url, token, path = sys.argv[1:]
place = urllib.parse.urlsplit(url)
link = socket.create_connection((place.hostname, place.port))
link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
head = f"POST {path} HTTP/1.1\\r\\nHost: {place.netloc}\\r\\nAuthorization: Bearer {open(token).read().strip()}\\r\\n\\r\\n"
link.sendall(head.encode())
link.close()
"""
DIALOG = {"turns": [{"when": "go", "dialog": {"question": "Do you want to proceed?"}}], "look": "claude"}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    found = Stage(tmp_path, "--port=0")
    yield found
    found.close()


def asking(stage: Stage, name: str) -> str:
    """The id of the agent's open permission."""

    async def look() -> str:
        async with stage.daemon.connect(observer=True) as relay:
            found = (await relay.agents()).find(name)
            requests: list[dict[str, Any]] = [] if found is None else found.raw["requests"]
            return str(requests[0]["id"]) if requests else ""

    return str(until(lambda: asyncio.run(look()), f"{name} asks"))


COMMANDS: dict[str, dict[str, Any]] = {
    "pause": {"command": "pause", "agent": "Alice"},
    "resume": {"command": "resume", "agent": "Alice"},
    "interrupt": {"command": "interrupt", "agent": "Alice"},
    "stop": {"command": "stop", "agent": "Alice"},
    "input": {"command": "input", "agent": "Alice", "text": "y\n"},
    "retry": {"command": "retry_dead_letter", "id": "msg_00000000000000000000000000"},
    "mode": {"type": "SPAWN", "name": "Carol", "cli": "claude", "permission_mode": "plan"},
    "environment": {"type": "SPAWN", "name": "Carol", "cli": "claude", "environment": {"LANG": "C"}},
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_agent_neither_approves_nor_types_nor_controls_by_any_way(stage: Stage, backend: str) -> None:
    alice = stage.start("Alice", backend, **DIALOG)
    bob = Inside(stage, "Bob", backend)
    stage.command("send", "Alice", "go")
    request = asking(stage, "Alice")
    approve = {"command": "approve", "agent": "Alice", "id": request}

    for word in ("approve", "deny"):
        said = bob.relay("permissions", word, request)
        assert said.status == 1
        assert "from inside Bob's terminal" in said.text
        assert "agent_rights" in said.text
    assert "from inside Bob's terminal" in bob.relay("pause", "Alice", prefix="env -i").text
    for name, command in {"approve": approve, **COMMANDS}.items():
        for prefix in ("env -i", "setsid", "env -i setsid"):
            said = bob.python(RAW, stage.daemon.socket, "-", json.dumps(command), prefix=prefix)
            refusal = json.loads(said.text)
            assert refusal["details"] == refusal["details"] | {"reason": "inside_agent", "agent": "Bob"}, (name, prefix, said)
    for prefix in ("env -i", ""):
        answer = stage.folder / f"orphan{len(prefix)}.json"
        bob.python(ORPHAN, stage.daemon.socket, str(answer), json.dumps(approve), prefix=prefix)
        assert wait_for_file(answer)["details"] == {"reason": "inside_agent", "agent": "Bob", "right": "approve"}
    assert alice.bytes_in("dialog") == b""  # not a key

    assert stage.command("permissions", "approve", request).returncode == 0  # a person, outside
    until(lambda: alice.bytes_in("dialog"), "Alice is answered")


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_agent_does_not_answer_for_itself_over_http_either(stage: Stage, backend: str) -> None:
    """With the token, which a program of the same user can read."""
    bob = Inside(stage, "Bob", backend, **DIALOG)
    stage.command("send", "Bob", "go")
    request = asking(stage, "Bob")
    for path, body in {
        f"/api/v1/agents/Bob/permissions/{request}/approve": {},
        f"/api/v1/agents/Bob/permissions/{request}/deny": {},
        f"/api/v1/agents/Bob/permissions/{request}/rule": {"pattern": "make *"},
        "/api/v1/agents/Bob/input": {"text": "y"},
        "/api/v1/agents/Bob/stop": {},
        "/agents/Bob/input": {"text": "y"},
        "/api/v1/agents/Bob/keyboard": {},
        "/api/v1/costs/budget": {"maxTotal": 1, "action": "alert"},
        "/api/v1/messages": {"to": "Bob", "body": "I am the user"},
        "/api/v1/sessions": {"agent": "Carol", "cli": "claude", "permissionMode": "plan"},
        "/workspaces": {"path": str(stage.folder)},
    }.items():
        for prefix in ("", "env -i setsid"):
            said = bob.python(
                HTTP, stage.daemon.wait_for_url() + path, str(stage.daemon.state_dir / "api-token"), json.dumps(body), "-",
                prefix=prefix,
            )  # fmt: skip
            status, answer = json.loads(said.text)
            assert (status, answer["error"]["details"]["reason"]) == (403, "inside_agent"), (path, answer)
    orphan = stage.folder / "orphan.json"
    url = f"{stage.daemon.wait_for_url()}/api/v1/agents/Bob/permissions/{request}/approve"
    bob.python(AS_ORPHAN + HTTP, url, str(stage.daemon.state_dir / "api-token"), "{}", str(orphan), prefix="env -i")
    assert wait_for_file(orphan)[0] == 403
    assert bob.agent.bytes_in("dialog") == b""


def test_who_hangs_up_at_once_is_nobody(stage: Stage) -> None:
    """A request whose sender is gone before anybody looks is not the owner's."""
    bob = Inside(stage, "Bob", "pty", **DIALOG)
    stage.command("send", "Bob", "go")
    request = asking(stage, "Bob")
    path = f"/api/v1/agents/Bob/permissions/{request}/approve"

    def statuses() -> list[int]:
        lines = map(json.loads, (stage.daemon.state_dir / "daemon.log").read_text().splitlines())
        return [line["status"] for line in lines if line.get("path") == path]

    for count in range(1, 6):
        bob.python(HANG_UP, stage.daemon.wait_for_url(), str(stage.daemon.state_dir / "api-token"), path)
        until(lambda wanted=count: len(statuses()) == wanted, "the daemon has dealt with it")
    assert statuses() == [403] * 5
    assert asking(stage, "Bob") == request
    assert bob.agent.bytes_in("dialog") == b""


def test_the_owner_may_grant_it_and_the_record_says_who_did_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "--agent-rights=Lead:approve,Lead:control,*:spawn")
    try:
        alice = stage.start("Alice", "pty", **DIALOG)
        lead = Inside(stage, "Lead", "pty")
        bob = Inside(stage, "Bob", "pty")
        stage.command("send", "Alice", "go")
        request = asking(stage, "Alice")
        assert bob.relay("permissions", "approve", request).status == 1
        assert lead.relay("permissions", "approve", request).status == 0
        until(lambda: alice.bytes_in("dialog"), "Alice is answered")
        assert lead.relay("pause", "Alice").status == 0
        events = stage.command("events", "--types", "permission.resolved", "--since", "0", "--json").stdout
        (resolved,) = [json.loads(line) for line in events.splitlines()]
        assert resolved["resolvedBy"] == "agent:Lead via cli"
    finally:
        stage.close()


def test_what_an_agent_has_tmux_run_is_inside_too(stage: Stage) -> None:
    bob = Inside(stage, "Bob", "tmux")
    answer = stage.folder / "answer.json"
    code = stage.folder / "raw.py"
    code.write_text(RAW)
    command = json.dumps({"command": "pause", "agent": "Bob"}).replace('"', '\\"')
    words = f'{sys.executable} -I {code} {stage.daemon.socket} {answer} "{command}"'
    done = bob.shell(f"env -i {stage.tmux[0]} -S {stage.daemon.state_dir}/tmux.sock new-session -d '{words}'")
    assert done.status == 0, done
    assert wait_for_file(answer)["details"]["reason"] == "inside_agent"


def test_nobody_approves_itself_whatever_was_granted(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "--port=0", "--agent-rights=*:approve")
    try:
        bob = Inside(stage, "Bob", "pty", **DIALOG)
        stage.command("send", "Bob", "go")
        request = asking(stage, "Bob")
        assert "cannot answer its own request" in bob.relay("permissions", "approve", request).text
        url = f"{stage.daemon.wait_for_url()}/api/v1/agents/Bob/permissions/{request}/approve"
        said = bob.python(HTTP, url, str(stage.daemon.state_dir / "api-token"), "{}", "-")
        assert json.loads(said.text)[1]["error"]["details"]["reason"] == "own_request"
    finally:
        stage.close()
