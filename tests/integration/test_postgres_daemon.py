"""Whole daemons on PostgreSQL: nothing is lost with them, only one has a project, and the password is nowhere to be seen."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.interpreter import run_module
from agent_relay.testing.daemon import DaemonFailed, DaemonProcess
from agent_relay.testing.raw_client import RawClient
from tests.support.postgres_server import ESCAPED_PASSWORD, PASSWORD, fresh_schema, server


class DaemonOnPostgres(DaemonProcess):
    def __init__(self, schema: str) -> None:
        super().__init__("--heartbeat-ms=60s", "--storage=postgres")
        self.environ = {"AGENT_RELAY_STORAGE_URL": server().url(schema, "relay", ESCAPED_PASSWORD)}


@pytest.fixture
def daemon() -> Iterator[DaemonOnPostgres]:
    with DaemonOnPostgres(fresh_schema()) as started:
        assert isinstance(started, DaemonOnPostgres)
        yield started


def test_what_was_sent_before_a_kill_is_delivered_once_after_it(daemon: DaemonOnPostgres) -> None:
    with RawClient(daemon.socket) as bob:
        bob.hello("Bob")
    with RawClient(daemon.socket) as alice:
        alice.hello("Alice")
        answers = [alice.answer(alice.send("Bob", f"m{place}")) for place in range(20)]
        assert {answer["type"] for answer in answers} == {"ACK"}
    daemon.restart()
    with RawClient(daemon.socket) as bob:
        bob.auto_ack = True
        bob.hello("Bob")
        frames = bob.deliveries(20)
        assert [frame["payload"]["body"] for frame in frames] == [f"m{place}" for place in range(20)]
        bob.expect_none("DELIVER")


def test_the_password_is_in_no_log_no_status_and_no_process_list(daemon: DaemonOnPostgres) -> None:
    shown = [run_relay(daemon.directory, "status"), run_relay(daemon.directory, "status", "--json")]
    assert "postgresql://relay@/postgres" in shown[1].stdout
    check_no_password_is_seen(daemon, "".join(done.stdout + done.stderr for done in shown))


def check_no_password_is_seen(daemon: DaemonProcess, status: str = "") -> None:
    process = Path(f"/proc/{daemon.pid}")
    seen = {
        "status": status,
        "output": daemon.output,
        "arguments": (process / "cmdline").read_text(),
        "environment": (process / "environ").read_bytes().decode(errors="replace"),
    } | {str(path): path.read_text(errors="replace") for path in daemon.state_dir.rglob("*") if path.is_file()}
    for where, text in seen.items():
        assert PASSWORD not in text, where
        assert ESCAPED_PASSWORD not in text, where


def test_a_password_from_its_file_or_variable_is_nowhere_to_be_seen_either(tmp_path: Path) -> None:
    given = server().url(fresh_schema(), "relay")
    file = tmp_path / "pgpass"
    file.write_text(f"localhost:*:postgres:relay:{PASSWORD}\n")  # PostgreSQL's word for a socket
    file.chmod(0o600)
    for environ in ({"PGPASSFILE": str(file)}, {"PGPASSWORD": PASSWORD}):
        daemon = DaemonProcess("--storage=postgres", f"--storage-url={given}")
        daemon.environ = environ
        with daemon, RawClient(daemon.socket) as alice:
            alice.hello("Alice")
            alice.send_stored("Alice", "hello")
            check_no_password_is_seen(daemon)
    file.chmod(0o644)  # PostgreSQL's own programs do not read it either, then
    daemon = DaemonProcess("--storage=postgres", f"--storage-url={given}", directory=tmp_path)
    daemon.environ = {"PGPASSFILE": str(file)}
    with pytest.raises(DaemonFailed, match="refused the login"):
        daemon.start()
    daemon.remove()


def test_a_second_daemon_is_refused_and_says_who_has_it(daemon: DaemonOnPostgres) -> None:
    second = DaemonOnPostgres("unused")
    second.environ = daemon.environ
    try:
        with pytest.raises(DaemonFailed):
            second.start()
        assert "is in use by the daemon of" in second.output
        assert f"process {daemon.pid}" in second.output
        assert PASSWORD not in second.output
        daemon.kill()
        second.start()
    finally:
        second.remove()


def run_relay(directory: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    home = {"AGENT_RELAY_HOME": str(directory / "home"), "AGENT_RELAY_HTTP": "false"}
    where = ["--socket", str(directory / "state" / "relay.sock"), "--state-dir", str(directory / "state")]
    return subprocess.run(
        [*run_module("agent_relay"), *words, *where], env=os.environ | home | environ, cwd=directory, capture_output=True,
        text=True, check=False, timeout=120,
    )  # fmt: skip


def test_a_password_in_a_flag_is_refused_with_the_ways_there_are(tmp_path: Path) -> None:
    url = server().url(fresh_schema(), "relay", ESCAPED_PASSWORD)
    done = run_relay(tmp_path, "up", "--storage", "postgres", "--storage-url", url)
    assert done.returncode == 2
    assert "~/.pgpass" in done.stderr
    assert ESCAPED_PASSWORD not in done.stderr


def test_a_password_in_a_flag_is_not_shown_either_where_a_daemon_runs_already(tmp_path: Path) -> None:
    """Which flags it was not started with is told with how to give them to `restart`."""
    with DaemonProcess(directory=tmp_path):
        url = server().url(fresh_schema(), "relay", ESCAPED_PASSWORD)
        done = run_relay(tmp_path, "up", "--storage", "postgres", "--storage-url", url)
    assert done.returncode == 2
    assert "~/.pgpass" in done.stderr
    assert ESCAPED_PASSWORD not in done.stdout + done.stderr


def test_a_history_is_copied_to_postgres_and_back(tmp_path: Path) -> None:
    schema = fresh_schema()
    with DaemonProcess("--heartbeat-ms=60s", directory=tmp_path) as old:
        with RawClient(old.socket) as bob:
            bob.hello("Bob")
        with RawClient(old.socket) as alice:
            alice.hello("Alice")
            for place in range(30):
                alice.answer(alice.send("Bob", f"m{place}"))
        refused = run_relay(
            tmp_path, "storage", "copy", "--from", "sqlite", "--to", "postgres", "--storage-url", server().url(schema)
        )
        assert refused.returncode == 1
        assert "agent-relay down" in refused.stderr
        old.terminate()
        copied = run_relay(
            tmp_path, "storage", "copy", "--from", "sqlite", "--to", "postgres", "--storage-url", server().url(schema), "--json"
        )
        assert copied.returncode == 0, copied.stderr
        answer = json.loads(copied.stdout)
        assert answer["verified"]
        assert answer["tables"]["messages"]["target"]["rows"] == 30
        again = run_relay(
            tmp_path, "storage", "copy", "--from", "sqlite", "--to", "postgres", "--storage-url", server().url(schema)
        )
        assert again.returncode == 1
        assert "holds messages already" in again.stderr
        other = server().url(fresh_schema())
        told = run_relay(tmp_path, "storage", "copy", "--from", "sqlite", "--to", "postgres", "--storage-url", other)
        assert f"agent-relay up --storage postgres --storage-url {shlex.quote(other)}" in told.stdout.replace("\n", " ")
        old.flags = ("--heartbeat-ms=60s", "--storage=postgres", f"--storage-url={server().url(schema)}")
        old.start()
        with RawClient(old.socket) as bob:
            bob.auto_ack = True
            bob.hello("Bob")
            assert [frame["payload"]["body"] for frame in bob.deliveries(30)] == [f"m{place}" for place in range(30)]
        old.terminate()
        back = tmp_path / "back" / "messages.sqlite"
        returned = run_relay(
            tmp_path, "storage", "copy", "--from", "postgres", "--to", "sqlite", "--storage-url", server().url(schema),
            "--storage-path", str(back),
        )  # fmt: skip
        assert returned.returncode == 0, returned.stderr
        old.flags = ("--heartbeat-ms=60s", f"--storage-path={back}")
        old.start()
        with RawClient(old.socket) as alice:
            alice.hello("Alice")
            assert len(alice.request("HISTORY", {"limit": 100})["messages"]) == 30
