"""`arc` in a project whose daemon runs: no address is needed, and whoever runs the daemon may revoke."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from agent_relay.cli.main import main
from agent_relay.testing.daemon import DaemonProcess
from tests.arc.shell import Shell

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess("--port=0") as process:
        process.wait_for_url()
        yield process


@pytest.fixture
def shell(daemon: DaemonProcess, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    for name in ("AGENT_RELAY_ARC_TOKEN", "AGENT_RELAY_API_TOKEN", "AGENT_RELAY_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    return Shell(capsys, "--socket", daemon.socket, "--state-dir", str(daemon.state_dir))


def test_register_send_read_and_revoke(shell: Shell) -> None:
    token = shell.json("arc", "register", "web-one")["token"]
    shell("arc", "register", "web-two")
    sent = shell.json("arc", "send", "web-two", "over the web", "--as", "web-one")
    assert sent["id"].startswith("msg_")
    (line,) = shell("arc", "listen", "--as", "web-two", "--limit", "1", "--json").splitlines()
    heard = json.loads(line)
    assert (heard["id"], heard["from"], heard["payload"], heard["stored"]) == (sent["id"], "web-one", "over the web", True)
    assert "over the web" in shell("read", sent["id"])  # the same message in the project's own history
    listed = {agent["agent_id"]: agent for agent in shell.json("arc", "tokens")["agents"]}
    assert listed["web-one"]["kept_here"] is True
    assert listed["web-one"]["connected"] is False
    assert token not in shell("arc")
    shell("arc", "revoke", "web-one")
    assert "revoked" in shell("arc", "tokens")
    assert "No saved token" in shell("arc", "send", "web-two", "x", "--as", "web-one", status=1)


def test_what_had_waited_for_who_sends_is_shown_and_not_lost(shell: Shell) -> None:
    for name in ("talker", "waiting"):
        shell("arc", "register", name)
    for number in range(3):
        shell("arc", "send", "waiting", f"number {number}", "--as", "talker")
    sent = shell.json("arc", "send", "talker", "here I am", "--as", "waiting")
    assert [message["payload"] for message in sent["received"]] == ["number 0", "number 1", "number 2"]
    shown = shell("arc", "send", "*", "and I", "--as", "talker")
    assert "here I am" in shown


def test_what_was_handed_over_beyond_the_limit_is_said(daemon: DaemonProcess, capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell(capsys, "--socket", daemon.socket, "--state-dir", str(daemon.state_dir))
    for name in ("many-from", "many-to"):
        shell("arc", "register", name)
    sent = [shell.json("arc", "send", "many-to", str(number), "--as", "many-from")["id"] for number in range(3)]
    assert main(shell.words("arc", "listen", "--as", "many-to", "--limit", "1", "--json")) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["id"] == sent[0]
    advice = f"agent-relay arc listen --as many-to --since {sent[0]}"
    assert "2 more messages were delivered but not shown" in said.err
    assert advice in " ".join(said.err.split())
    lines = shell(*advice.split()[1:], "--limit", "2", "--json").splitlines()
    assert [json.loads(line)["id"] for line in lines] == sent[1:]


def test_tokens_are_found_when_the_daemon_listens_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    with DaemonProcess("--port=0") as daemon:
        shell = Shell(capsys, "--socket", daemon.socket, "--state-dir", str(daemon.state_dir))
        before = daemon.wait_for_url()
        shell("arc", "register", "moving")
        assert daemon.terminate() == 0
        with socket.create_server(("127.0.0.1", int(before.rsplit(":", 1)[1]))):  # so that it is not the same by chance
            daemon.start()
            assert daemon.wait_for_url() != before
        shell("arc", "send", "moving", "still me", "--as", "moving")
        assert shell.json("arc", "tokens")["agents"][0]["kept_here"] is True
        shell("arc", "revoke", "moving")
        assert shell.json("arc", "tokens")["agents"][0]["kept_here"] is False


def test_whoever_runs_the_daemon_revokes_without_the_token(shell: Shell, daemon: DaemonProcess) -> None:
    token = shell.json("arc", "register", "lost-token")["token"]
    (daemon.state_dir / "arc-tokens.json").unlink()
    shell("arc", "revoke", "lost-token")
    assert "nobody" in shell("arc", "revoke", "nobody", status=1)
    environ = {**os.environ, "AGENT_RELAY_ARC_TOKEN": token}
    words = [sys.executable, "-m", "agent_relay", *shell.words("arc", "send", "web-two", "x")]
    ran = subprocess.run(words, capture_output=True, text=True, env=environ, check=False, timeout=DEADLINE_S)
    assert (ran.returncode, "does not accept the token" in ran.stderr) == (1, True)


def test_listening_ends_with_ctrl_c_and_without_a_word(shell: Shell) -> None:
    shell("arc", "register", "listener")
    words = [sys.executable, "-m", "agent_relay", *shell.words("arc", "listen", "--as", "listener")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + DEADLINE_S
    while not _is_connected(shell, "listener"):
        assert time.monotonic() < deadline
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, out, err) == (130, "", "")


def test_listening_goes_on_when_the_time_for_a_request_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    """On one connection: it is the request that has to be said in time, not what becomes of it."""
    with DaemonProcess("--port=0", "--http-request-ms=1s") as daemon:
        port = int(daemon.wait_for_url().rsplit(":", 1)[1])
        shell = Shell(capsys, "--socket", daemon.socket, "--state-dir", str(daemon.state_dir))
        shell("arc", "register", "patient")
        shell("arc", "register", "sender")
        words = [sys.executable, "-m", "agent_relay", *shell.words("arc", "listen", "--as", "patient", "--limit", "1")]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + DEADLINE_S
        while not _is_connected(shell, "patient"):
            assert time.monotonic() < deadline
            assert process.poll() is None
        for _ in range(2):  # somebody who came later, and never says what it wants, is hung up on
            with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as mute:
                assert mute.recv(1) == b""
        told = shell("events", "--types", "agent.state", "--agent", "patient")
        assert (told.count("idle"), "offline" in told) == (1, False), told  # it came, and has not left since
        shell("arc", "send", "patient", "still there", "--as", "sender")
        out, err = process.communicate(timeout=DEADLINE_S)
        assert (process.returncode, "still there" in out, err) == (0, True, "")


def _is_connected(shell: Shell, name: str) -> bool:
    return any(agent["agent_id"] == name and agent["connected"] for agent in shell.json("arc", "tokens")["agents"])
