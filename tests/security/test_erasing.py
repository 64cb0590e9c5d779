"""What the owner erases, or what is too old, is gone: not one of the relay's files holds it any more."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from agent_relay.testing.daemon import DaemonProcess

SECRETS = (b"zebraquagga", b"xylophonist", b"wherewithal", b"quicksilver")
DEADLINE_S = 60.0


def until(is_so: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.02)


def files_with(folder: Path, *words: bytes) -> set[str]:
    """Words share their beginnings in the index, so their ends are looked for. Once more where a file was replaced meanwhile."""
    while True:
        with contextlib.suppress(FileNotFoundError):
            files = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
            return {str(file.relative_to(folder)) for file in files if any(word[2:] in file.read_bytes() for word in words)}


def run(daemon: DaemonProcess, *words: str) -> subprocess.CompletedProcess[str]:
    place = ("--socket", daemon.socket, "--state-dir", str(daemon.state_dir))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_RELAY_")}
    return subprocess.run(
        [sys.executable, "-m", "agent_relay", *words, *place], capture_output=True, text=True, check=False, timeout=60,
        env=environ | {"AGENT_RELAY_HOME": str(daemon.directory / "home")}, cwd=daemon.directory, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def leave_files(daemon: DaemonProcess, name: str) -> None:
    """As a wrapper does."""
    team, outbox = daemon.state_dir / "team" / name, daemon.state_dir / "outbox" / name
    for folder in (team, outbox):
        folder.mkdir(parents=True)
    (team / "inbox.md").write_text("## 2026-01-01 00:00:00 UTC  from Alice  [x]\n\n> zebraquagga\n\n")
    (team / "history.log").write_text("quicksilver\n")
    (team / "screen.json").write_text('{"rows": ["quicksilver"], "is_over": true}')
    (team / "live.cast").write_text("quicksilver\n")
    (outbox / "note.failed").write_text("TO: Alice\n\nquicksilver\n")


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    """Bob was told a secret and said one, has an open message to Carol, and is gone."""
    with DaemonProcess("--port=0") as made:
        with made.connect_sync("Alice") as alice, made.connect_sync("Bob") as bob:
            alice.send("Bob", "zebraquagga").stored()
            bob.receive(timeout=DEADLINE_S).ack()
            bob.send("Alice", "xylophonist").stored()
            alice.receive(timeout=DEADLINE_S).ack()
            bob.report("command.executed", sessionId="s", command="wherewithal", exitCode=0, duration=1)
            bob.report(
                "tokens.used", sessionId="s", agentName="Bob", model="claude-opus-4-5", inputTokens=1_000_000, outputTokens=0
            )
            with made.connect_sync("Carol"):
                pass
            bob.send("Carol", "quicksilver on its way").stored()
            alice.send("Carol", "for Carol alone").stored()
        until(lambda: (made.state_dir / "events.jsonl").read_bytes().count(b"tokens.used"), "it is recorded")
        leave_files(made, "Bob")
        yield made


def test_nothing_of_a_forgotten_agent_is_left_in_any_file(daemon: DaemonProcess) -> None:
    assert {"messages.sqlite-wal", "events.jsonl", "team/Bob/inbox.md"} <= files_with(daemon.state_dir, *SECRETS)
    done = run(daemon, "forget", "bob", "--yes", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["undelivered_from"], said["messages"]) == (1, 3)
    assert min(said["events"], said["files"]) >= 5
    assert files_with(daemon.state_dir, *SECRETS) == set()
    until(lambda: "Bob" not in (daemon.state_dir / "agents.json").read_text(), "it is no agent any more")
    assert files_with(daemon.state_dir, b"xxfor Carol alone")
    daemon.terminate()
    daemon.start()
    assert files_with(daemon.state_dir, *SECRETS) == set()
    with daemon.connect_sync("Carol") as carol:
        assert carol.receive(timeout=DEADLINE_S).body == "for Carol alone"


def test_costs_stay_as_numbers_and_the_name_is_gone_from_them(daemon: DaemonProcess) -> None:
    before = httpx.get(f"{daemon.wait_for_url()}/api/v1/costs", headers=daemon.api_headers).json()
    assert run(daemon, "forget", "Bob", "--yes").returncode == 0
    after = httpx.get(f"{daemon.wait_for_url()}/api/v1/costs", headers=daemon.api_headers).json()
    assert after["total"] == before["total"]
    assert (set(before["byAgent"]), set(after["byAgent"])) == ({"Bob"}, {"forgotten"})


def test_one_that_runs_is_not_forgotten(daemon: DaemonProcess) -> None:
    with daemon.connect_sync("Bob"):
        done = run(daemon, "forget", "Bob", "--yes")
        assert done.returncode != 0
        assert "Bob is running. Stop it first" in done.stderr
        refused = httpx.delete(f"{daemon.wait_for_url()}/api/v1/agents/Bob/data", headers=daemon.api_headers)
        assert (refused.status_code, refused.json()["error"]["details"]["reason"]) == (409, "agent_is_running")
    assert files_with(daemon.state_dir, *SECRETS)


def test_one_whose_wrapper_runs_without_a_connection_is_not_forgotten(daemon: DaemonProcess) -> None:
    lock = daemon.state_dir / "team" / "Bob" / "screen.lock"
    hold = (
        "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX); print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as wrapper:
        assert wrapper.stdout is not None
        assert wrapper.stdout.readline() == "held\n"
        done = run(daemon, "forget", "Bob", "--yes")
        wrapper.communicate("\n")
    assert done.returncode != 0
    assert "Bob is running" in done.stderr


def test_an_agent_cannot_have_anybody_forgotten(daemon: DaemonProcess) -> None:
    from agent_relay.protocol.errors import RelayError

    with daemon.connect_sync("Mallory") as mallory, pytest.raises(RelayError, match="Agents cannot erase"):
        mallory.forget("Bob")
    assert files_with(daemon.state_dir, *SECRETS)


def test_without_a_person_nobody_is_forgotten_unasked(daemon: DaemonProcess) -> None:
    done = run(daemon, "forget", "Bob")
    assert done.returncode != 0
    assert "--yes" in done.stderr
    assert files_with(daemon.state_dir, *SECRETS)


@pytest.mark.parametrize("answer", ["n", "y"])
def test_a_person_is_told_what_is_on_its_way_and_asked(daemon: DaemonProcess, answer: str) -> None:
    ours, theirs = pty.openpty()
    words = [
        sys.executable,
        "-m",
        "agent_relay",
        "forget",
        "Bob",
        "--socket",
        daemon.socket,
        "--state-dir",
        str(daemon.state_dir),
    ]
    with subprocess.Popen(words, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as asked:
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        said, complained = asked.communicate(timeout=60)
    os.close(ours)
    assert "1 message from Bob will never be delivered." in said
    assert "This cannot be undone." in said
    assert (files_with(daemon.state_dir, *SECRETS) == set()) == (answer == "y")
    assert ("Nothing was erased." in complained) == (answer == "n")


def test_everything_is_exported_as_lines_for_the_owner_alone(daemon: DaemonProcess) -> None:
    done = run(daemon, "export", "bob", "--output", "bob.jsonl")
    assert done.returncode == 0, done.stderr
    file = daemon.directory / "bob.jsonl"
    assert file.stat().st_mode & 0o777 == 0o600
    by_command = [json.loads(line) for line in file.read_text().splitlines()]
    answer = httpx.get(f"{daemon.wait_for_url()}/api/v1/agents/Bob/export", headers=daemon.api_headers)
    assert answer.headers["content-type"].startswith("application/octet-stream")
    by_http = [json.loads(line) for line in answer.text.splitlines()]
    for lines in (by_command, by_http):
        assert lines[-1] == {"kind": "end", "messages": 3, "events": lines[-1]["events"], "files": lines[-1]["files"]}
        bodies = {line["message"]["payload"]["body"] for line in lines if line["kind"] == "message"}
        assert bodies == {"zebraquagga", "xylophonist", "quicksilver on its way"}
        assert [line["name"] for line in lines if line["kind"] == "agent"] == ["Bob"]
        assert any(line["event"].get("command") == "wherewithal" for line in lines if line["kind"] == "event")
        files = {line["path"] for line in lines if line["kind"] == "file"}
        assert files - {"history.old.log"} == {"inbox.md", "history.log", "outbox/note.failed"}
    again = run(daemon, "export", "Bob", "--output", "bob.jsonl")
    assert again.returncode != 0
    assert "--force" in again.stderr


def test_what_is_too_old_goes_from_every_file() -> None:
    """Messages, events and the files of a wrapper that ended long ago; what is new stays."""
    with DaemonProcess() as daemon:
        leave_files(daemon, "Bob")
        leave_files(daemon, "Carol")
        old = time.time() - 40 * 86_400
        for file in [*(daemon.state_dir / "team/Bob").iterdir(), *(daemon.state_dir / "outbox/Bob").iterdir()]:
            os.utime(file, (old, old))
        os.utime(daemon.state_dir / "team/Bob", (old, old))
        daemon.terminate()
        daemon.start()  # the first sweep is at the start
        until(lambda: not (daemon.state_dir / "team/Bob").exists(), "its folder goes")
        until(lambda: not list((daemon.state_dir / "outbox/Bob").iterdir()), "what it left in its outbox goes")
        until(lambda: not files_with(daemon.state_dir / "team/Carol", b"zebraquagga"), "an old message goes from an inbox")
        assert (daemon.state_dir / "team/Carol/screen.json").exists()
