"""What a running daemon leaves on the disk: private files, a picture of its agents, and not a word of what was said."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient

SECRETS = ("SECRETbody", "SECRETdata", "SECRETthread", "SECRETmeta", "SECRETreply", "SECRETnoise", "SECRETreason")
DEADLINE_S = 60.0  # a loaded machine takes many times what an idle one does


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess("--debug=true", "--message-ttl=5s", "--queue-capacity=5") as daemon:
        yield daemon


@pytest.fixture(scope="module")
def tokens(daemon: DaemonProcess) -> list[str]:
    """Traffic of every kind, with words in it that must not be found; returns every token that was handed out."""
    with RawClient(daemon.socket) as alice, RawClient(daemon.socket) as bob:
        alice.hello("Alice", cli="SECRETless", meta={"task": "SECRETmeta"})
        bob.hello("Bob")
        tokens = [alice.token, bob.token]
        meta = {"requires_ack": True, "sync": {"blocking": True, "correlationId": "c", "timeoutMs": 5_000}}
        alice.send_stored("Bob", "SECRETbody", payload={"data": {"x": "SECRETdata"}, "thread": "SECRETthread"}, meta=meta)
        bob.ack(bob.expect("DELIVER"), correlationId="c", responseData={"y": "SECRETreply"})
        alice.expect("ACK")
        alice.send("Nobody", "SECRETbody")
        alice.expect("NACK")
        alice.write(b"\x00\x00\x00\x0bSECRETnoise")
        alice.expect("ERROR")
        alice.say("SECRETnoise", {"body": "SECRETbody"})
        alice.say("HISTORY", {"search": "SECRETbody"})
        alice.expect("HISTORY_RESULT")
        alice.send_stored("Bob", "SECRETbody", meta={"ttl_ms": 200})
        alice.expect("NACK")
        bob.say("BYE", {"reason": "SECRETreason"})
        bob.wait_closed()
        with RawClient(daemon.socket) as thief:
            thief.greet("Alice", token=tokens[1])
        with RawClient(daemon.socket) as again:
            again.hello("Bob", token=tokens[1])
            tokens.append(again.token)
            again.flush()
        with RawClient(daemon.socket) as thief:
            thief.greet("Bob", token=tokens[1])
        alice.flush()
    return tokens


def log_lines(daemon: DaemonProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (daemon.state_dir / "daemon.log").read_text("utf-8").splitlines()]


def texts(daemon: DaemonProcess) -> dict[str, str]:
    """Everything the daemon has written but its database."""
    paths = [path for path in daemon.directory.rglob("*") if path.is_file() and not path.name.startswith("messages.sqlite")]
    return {path.name: path.read_text("utf-8", "replace") for path in paths}


def test_no_file_but_the_database_and_the_events_holds_what_was_said(daemon: DaemonProcess, tokens: list[str]) -> None:
    found = {(name, secret) for name, text in texts(daemon).items() for secret in SECRETS if secret in text}
    # The type of a frame is no secret, however strange: `--debug` shows it.
    # A message is an event, with its text, in a file that is its owner's alone.
    assert found <= {("daemon.log", "SECRETnoise"), ("events.jsonl", "SECRETbody"), ("events.jsonl", "SECRETthread")}
    assert "SECRETnoise" not in "".join(json.dumps(line) for line in log_lines(daemon) if line["event"] not in {"heard", "said"})


def test_no_file_at_all_holds_a_token(daemon: DaemonProcess, tokens: list[str]) -> None:
    everything = b"".join(path.read_bytes() for path in daemon.directory.rglob("*") if path.is_file())
    assert b"Alice" in everything
    assert [token for token in tokens if token.encode() in everything] == []


def test_the_log_tells_who_came_and_went_and_what_went_wrong(daemon: DaemonProcess, tokens: list[str]) -> None:
    events = {line["event"] for line in log_lines(daemon)}
    assert {"listening", "connected", "disconnected", "dead_letter", "session_revoked", "heard", "said"} <= events
    assert all({"ts", "level", "event"} <= set(line) for line in log_lines(daemon))
    (listening,) = [line for line in log_lines(daemon) if line["event"] == "listening"]
    assert (listening["socket"], listening["pid"]) == (daemon.socket, daemon.pid)


def test_nobody_else_can_look(daemon: DaemonProcess, tokens: list[str]) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in daemon.state_dir.iterdir()}
    assert stat.S_IMODE(os.stat(daemon.state_dir).st_mode) == 0o700
    assert {"relay.sock", "relay.pid", "relay.lock", "messages.sqlite", "agents.json", "daemon.log"} <= set(modes)
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}


def test_the_pid_file_names_the_daemon(daemon: DaemonProcess) -> None:
    assert (daemon.state_dir / "relay.pid").read_text() == f"{daemon.pid}\n"


def agents_file(path: Path) -> dict[str, dict[str, Any]]:
    return {agent["name"]: agent for agent in json.loads(path.read_text("utf-8"))["agents"]}


def test_agents_json_follows_who_is_here(daemon: DaemonProcess) -> None:
    path = daemon.state_dir / "agents.json"

    def wait_for(**expected: Any) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while agents_file(path).get("Zoe") != expected:
            assert time.monotonic() < deadline, path.read_text()
            time.sleep(0.02)

    with RawClient(daemon.socket) as zoe:
        session = zoe.hello("Zoe", cli="claude")["session_id"]
        wait_for(name="Zoe", cli="claude", connected=True, sessionId=session)
    wait_for(name="Zoe", cli="claude", connected=False, sessionId=session)
