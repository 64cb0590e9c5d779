"""Agents that the daemon starts: real wrappers in real terminals, a daemon that is killed, programs that crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agent_relay.daemon.system import owner_name
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.sync import SyncRelayClient
from tests.integration.stage import BACKENDS, DEADLINE_S, Stage, until

pytestmark = pytest.mark.terminals
NAMES = ("Bob", "Carol")
TURNS = [
    {"when": "ping", "busy_ms": 20, "say": ["->relay:Lead pong"]},
    {"when": "finish", "busy_ms": 20, "exit": 0},
    {"when": "break", "busy_ms": 20, "exit": 7},
]


class Scene:
    """A daemon that may start two scripted agents, and Lead, who asks for them."""

    def __init__(self, folder: Path, *flags: str) -> None:
        allowed = ",".join(str(folder / f"{name}.sh") for name in NAMES)
        self.stage = Stage(folder, f"--spawn-allow={allowed}", *flags)
        self.programs = {name: self.stage.play(name, turns=TURNS)[0] for name in NAMES}
        self.lead = SyncRelayClient("Lead", socket=self.stage.daemon.socket, reconnect_attempts=None)
        self.lead.connect()

    def spawn(self, name: str = "Bob", task: str | None = None, **options: Any) -> str:
        return self.lead.spawn(name, self.programs[name], task, **options).session_id

    def session(self, name: str = "Bob") -> dict[str, Any]:
        """The last one of this name."""
        return [found for found in self.lead.agents().sessions if found["agent"] == name][-1]

    def ended(self, name: str = "Bob") -> tuple[str, int | None]:
        until(lambda: self.session(name)["status"] == "ended", f"{name} ends")
        found = self.session(name)
        return found["reason"], found["exit_code"]

    def submitted(self, name: str = "Bob") -> list[str]:
        record = self.stage.folder / f"{name}.jsonl"
        lines = record.read_text().splitlines() if record.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("}")]
        return [event["text"] for event in events if event["event"] == "submitted"]

    def messages(self, name: str = "Bob") -> list[str]:
        return [text.partition("]: ")[2] for text in self.submitted(name) if text.startswith("Relay message from Lead")]

    def starts(self, name: str = "Bob") -> int:
        record = self.stage.folder / f"{name}.jsonl"
        return record.read_text().count('"started"') if record.exists() else 0

    def connected(self, name: str = "Bob") -> bool:
        found = self.lead.agents().find(name)
        return found is not None and found.connected

    def events(self, *types: str) -> list[dict[str, Any]]:
        path = self.stage.daemon.state_dir / "events.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [event for event in map(json.loads, lines) if event["type"] in types]

    def close(self) -> None:
        sessions = self.lead.agents().sessions if self.stage.daemon.running else []
        self.lead.close(1)
        for found in sessions:
            if found["status"] != "ended" and found["pid"]:
                os.kill(found["pid"], signal.SIGCONT)
                os.kill(found["pid"], signal.SIGTERM)
        until(lambda: not any(is_alive(found["pid"]) for found in sessions if found["pid"]), "the wrappers end")
        self.stage.close()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def scene(folder: Path) -> Iterator[Scene]:
    made = Scene(folder)
    yield made
    made.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_agent_is_started_given_its_task_and_released(scene: Scene, backend: str) -> None:
    session_id = scene.spawn(task="ping", backend=backend, cwd=str(scene.stage.project), environment={"LANG": "C"})
    message = scene.lead.receive(timeout=DEADLINE_S)
    assert (message.from_, message.body) == ("Bob", "pong")
    message.ack()
    assert scene.messages() == ["ping"]
    bob = scene.lead.agents().find("Bob")
    assert bob is not None
    assert (bob.session_id, bob.meta["backend"], bob.meta["cwd"]) == (session_id, backend, str(scene.stage.project))
    found = scene.session()
    assert (found["session_id"], found["status"], found["spawned_by"], found["task"]) == (session_id, "running", "Lead", "ping")
    if backend == "tmux":
        shown = subprocess.run([*scene.stage.tmux, "list-sessions"], check=True, capture_output=True, text=True).stdout
        assert shown.startswith("Bob:")
    scene.lead.release("bob", "done")
    assert scene.ended() == ("released", scene.session()["exit_code"])
    assert not is_alive(found["pid"])
    until(lambda: not scene.connected())
    kinds = ("session.started", "agent.spawned", "session.ended", "agent.released")
    until(lambda: len(scene.events(*kinds)) == 4, "the events are written")
    assert [event["type"] for event in scene.events(*kinds)] == [kinds[0], kinds[1], kinds[3], kinds[2]]
    assert {event["sessionId"] for event in scene.events(*kinds)} == {session_id}
    assert scene.events("session.ended")[0]["reason"] == "released"
    again = scene.spawn(backend=backend)
    assert again != session_id


@pytest.mark.parametrize(("word", "reason", "code"), [("finish", "completed", 0), ("break", "crashed", 7)])
def test_how_a_program_ended_is_told_truly(scene: Scene, word: str, reason: str, code: int) -> None:
    scene.spawn(task=word)
    assert scene.ended() == (reason, code)
    with pytest.raises(RelayError, match="was not started by the daemon, or has ended"):
        scene.lead.release("Bob")


def test_a_wrapper_that_is_killed_is_a_crash(scene: Scene) -> None:
    scene.spawn(backend="pty")
    os.killpg(scene.session()["pid"], signal.SIGKILL)
    assert scene.ended()[0] == "crashed"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_killed_daemon_finds_its_agents_again(scene: Scene, backend: str) -> None:
    session_id = scene.spawn(task="first", backend=backend)
    until(lambda: scene.messages() == ["first"])
    pid = scene.session()["pid"]
    scene.stage.daemon.kill()
    assert is_alive(pid)
    scene.stage.daemon.start()
    until(scene.connected, "Bob comes back")
    found = scene.session()
    assert (found["session_id"], found["status"], found["pid"]) == (session_id, "running", pid)
    with pytest.raises(RelayError) as refused:
        scene.spawn()
    assert (refused.value.code, refused.value.details["reason"]) == (ErrorCode.PERMISSION_DENIED, "name_in_use")
    scene.lead.send("Bob", "ping")
    assert scene.lead.receive(timeout=DEADLINE_S).body == "pong"
    assert (scene.messages(), scene.starts()) == (["first", "ping"], 1)
    scene.lead.send("Bob", "break")
    assert scene.ended() == ("crashed", 7)


def test_one_that_ends_while_the_daemon_is_down_is_told_afterwards(scene: Scene) -> None:
    scene.spawn(backend="pty")
    pid = scene.session()["pid"]
    scene.stage.daemon.kill()
    os.kill(pid, signal.SIGTERM)
    until(lambda: not is_alive(pid))
    scene.stage.daemon.start()
    reason, code = scene.ended()
    assert reason == "crashed"
    assert code is not None
    assert not list((scene.stage.daemon.state_dir / "sessions").iterdir())


def test_a_release_goes_on_in_the_next_daemon(scene: Scene) -> None:
    scene.spawn(backend="pty")
    pid = scene.session()["pid"]
    os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as elsewhere:
        released = elsewhere.submit(scene.lead.release, "Bob")
        until(lambda: scene.session()["status"] == "ending")
        scene.stage.daemon.kill()
        scene.stage.daemon.start()
        os.kill(pid, signal.SIGCONT)
        released.result(DEADLINE_S)
    assert scene.ended()[0] == "released"


def test_what_may_not_be_started_is_refused(scene: Scene) -> None:
    for asked, reason in (
        (("Bob", "/bin/sh"), "cli_not_allowed"),
        (("Bob", "claude; rm -rf /"), "cli_not_allowed"),
        (("Bob", "goose"), "cli_not_found"),
    ):
        with pytest.raises(RelayError) as refused:
            scene.lead.spawn(*asked)
        assert (refused.value.code, refused.value.details["reason"]) == (ErrorCode.INVALID_TARGET, reason)
        assert asked[1] in refused.value.message
    for folder, reason in (("no/such/folder", "cwd_not_found"), ("..", "cwd_not_allowed"), ("/", "cwd_not_allowed")):
        with pytest.raises(RelayError) as refused:
            scene.spawn(cwd=folder)
        assert refused.value.details["reason"] == reason
    for name in ("LD_PRELOAD", "PATH", "AGENT_RELAY_API_KEY", "X=Y_MODEL"):
        with pytest.raises(RelayError) as refused:
            scene.spawn(environment={name: "x"})
        assert refused.value.details["reason"] == "environment_not_allowed"
    assert scene.lead.agents().sessions == []


def test_what_cannot_be_started_says_why(folder: Path) -> None:
    scene = Scene(folder, "--spawn-allow=python3,/no/such/program")
    try:
        with pytest.raises(RelayError, match="python3 runs what is typed") as failed:
            scene.lead.spawn("Bob", "python3")
        assert (failed.value.code, failed.value.details["reason"]) == (ErrorCode.SERVICE_UNAVAILABLE, "start_failed")
        with pytest.raises(RelayError, match="is not installed"):
            scene.lead.spawn("Bob", "/no/such/program")
    finally:
        scene.close()


def test_there_are_limits(folder: Path) -> None:
    scene = Scene(folder, "--max-agents=1", "--spawns-per-minute=2")
    try:
        scene.spawn("Bob")
        with pytest.raises(RelayError) as refused:
            scene.spawn("Carol")
        assert (refused.value.code, refused.value.details["reason"]) == (ErrorCode.RATE_LIMITED, "too_many_agents")
        scene.lead.release("Bob")
        scene.spawn("Carol")
        scene.lead.release("Carol")
        with pytest.raises(RelayError) as refused:
            scene.spawn("Bob")
        assert refused.value.details["reason"] == "too_fast"
        assert refused.value.retry_after_ms is not None
    finally:
        scene.close()


# --- as people and agents ask for it ----------------------------------------------------------------------------------------


def test_the_command_line_starts_and_ends_agents(scene: Scene) -> None:
    done = scene.stage.command("spawn", "Bob", scene.programs["Bob"], "ping", "--json", "--cwd", str(scene.stage.folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"name": "Bob", "session_id": scene.session()["session_id"]}
    assert scene.session()["cwd"] == str(scene.stage.folder)
    assert scene.session()["spawned_by"] == owner_name()
    assert scene.lead.receive(timeout=DEADLINE_S).body == "pong"
    again = scene.stage.command("spawn", "Bob", scene.programs["Bob"])
    assert (again.returncode, again.stderr) == (1, "agent-relay: An agent Bob already exists; choose another name.\n")
    assert scene.stage.command("spawn", "Carol", "goose").stderr.startswith("agent-relay: 'goose' is not installed")
    assert scene.stage.command("release", "Bob").stdout == "Bob is released\n"
    assert scene.ended()[0] == "released"
    assert scene.stage.command("release", "Bob").returncode == 1


def test_agents_start_and_end_agents(scene: Scene) -> None:
    carol = scene.programs["Carol"]
    turns = [
        {"when": "(->relay-[0-9a-f]{8}:)spawn", "busy_ms": 20, "say": [rf'\1spawn Carol {carol} "ping"']},  # of the introduction
        {"when": "Carol was started", "busy_ms": 20, "say": ["->relay:release Carol"]},
        {"when": "Carol was released", "busy_ms": 20, "say": ["->relay:Lead it is done"]},
    ]
    boss = scene.stage.start("Boss", "pty", intro=True, turns=turns)
    (asked,) = until(lambda: json.loads(scene.stage.command("permissions", "--json").stdout)["permissions"], "a person is asked")
    assert scene.stage.command("permissions", "approve", asked["id"]).returncode == 0
    until(lambda: scene.lead.receive(timeout=DEADLINE_S).body == "it is done")
    assert scene.ended("Carol")[0] == "released"
    assert (scene.session("Carol")["spawned_by"], scene.session("Carol")["task"]) == ("Boss", "ping")
    inside = boss.shell
    done = scene.stage.command("spawn", "Bob", scene.programs["Bob"], "finish", "--json", **inside)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["session_id"] == scene.session()["session_id"]
    assert scene.session()["spawned_by"] == "Boss"
    assert scene.ended() == ("completed", 0)
    failed = scene.stage.command("release", "Bob", **inside)
    assert (failed.returncode, "has ended" in failed.stderr) == (1, True)
