"""A user whom `allowed_uids` lets in, at the socket: messages are theirs, control is not."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.testing.daemon import DaemonProcess
from tests.integration.http_api.server import Wrapped
from tests.security.stranger import STRANGER_UID, needs_root, run_as_stranger

pytestmark = needs_root

SECRET = "the-launch-code-is-0000"
# `said(...)` says HELLO and then each frame, and prints how each is answered.
TALK = """
line = socket.socket(socket.AF_UNIX)
line.settimeout(20)
line.connect(sys.argv[1])
stream = line.makefile("rb")
def say(kind, payload, id, **more):
    raw = json.dumps({"v": 2, "type": kind, "id": id, "ts": 1, "payload": payload, **more}).encode()
    line.sendall(struct.pack(">I", len(raw)) + raw)
def hear(id):
    while True:
        (size,) = struct.unpack(">I", stream.read(4))
        frame = json.loads(stream.read(size))
        said = frame["payload"]
        if id in (said.get("reply_to"), said.get("ack_id"), said.get("nack_id")):
            return frame
say("HELLO", {"agent": "Guest", "version": 2, "capabilities": {"ack": True, "control": True, "events": True}}, "hello")
hear("hello")
for number, (kind, payload, more) in enumerate(json.loads(sys.argv[2])):
    say(kind, payload, "c-%d" % number, **more)
    frame = hear("c-%d" % number)
    print(json.dumps([frame["type"], frame["payload"]]))
"""


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # the way to the socket must be open for them
        made = DaemonProcess(f"--allowed-uids={STRANGER_UID}", "--spawn-allow=/bin/sh")
        made.socket = str(Path(folder) / "relay.sock")
        with made:
            yield made


@pytest.fixture(scope="module")
def bob(daemon: DaemonProcess) -> Iterator[Wrapped]:
    with daemon.connect_sync("Bob", control=True) as client, daemon.connect_sync("Carol") as carol:
        wrapped = Wrapped(client)
        wrapped.ask_permission("p-1")
        carol.send("Bob", SECRET)
        yield wrapped


def talk(daemon: DaemonProcess, *frames: tuple[str, dict[str, object], dict[str, object]]) -> list[tuple[str, dict[str, object]]]:
    lines = run_as_stranger(TALK, daemon.socket, json.dumps(frames)).splitlines()
    return [tuple(json.loads(line)) for line in lines]


def test_they_cannot_command_approve_start_or_look(daemon: DaemonProcess, bob: Wrapped) -> None:
    before = len(bob.told)
    frames: list[tuple[str, dict[str, object], dict[str, object]]] = [
        ("CONTROL", {"command": "input", "agent": "Bob", "text": "rm -rf /\n"}, {}),
        ("CONTROL", {"command": "approve", "agent": "Bob", "id": "p-1"}, {}),
        ("CONTROL", {"command": "stop", "agent": "Bob"}, {}),
        ("SPAWN", {"name": "Eve", "cli": "/bin/sh"}, {}),
        ("RELEASE", {"name": "Bob"}, {}),
        ("CONTROL", {"command": "retry_dead_letter", "id": "msg_00000000000000000000000000"}, {}),
        ("SUBSCRIBE", {"topic": "$events"}, {}),
        ("HISTORY", {"view": "events"}, {}),
        ("HISTORY", {"view": "conversations"}, {}),
        ("HISTORY", {"with": "Bob"}, {}),
    ]
    answers = talk(daemon, *frames)
    assert [(kind, payload["code"]) for kind, payload in answers] == [("ERROR", "PERMISSION_DENIED")] * len(frames)
    assert len(bob.told) == before


def test_they_exchange_messages_and_read_their_own(daemon: DaemonProcess, bob: Wrapped) -> None:
    sent, history, agents = talk(
        daemon, ("SEND", {"body": "hello"}, {"to": "Bob"}), ("HISTORY", {}, {}), ("LIST_AGENTS", {}, {})
    )  # fmt: skip
    assert sent[1]["stage"] == "stored"
    assert SECRET not in json.dumps([history, agents])
    assert "Run it?" not in json.dumps(agents)
    assert bob.client.receive(timeout=60).body in {"hello", SECRET}
