"""Agents that are started, steered and stopped on other hosts: real daemons, real wrappers in terminals, a real NATS server."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.sync import SyncRelayClient
from agent_relay.testing.agent import write_program
from agent_relay.testing.raw_client import RawClient
from tests.cluster.hosts import Hosts, run_hosts
from tests.cluster.test_presence import PATIENCE_S, run, wait_until

TURNS = [
    {"when": "ping", "busy_ms": 20, "say": ["->relay:Lead pong"]},
    {"when": "finish", "busy_ms": 20, "exit": 0},
]


class Scene:
    """Three hosts that let people on `a` control what runs there, and nobody else; and Lead, on `a`."""

    def __init__(self, folder: Path, hosts: Hosts) -> None:
        self.folder = folder
        self.hosts = hosts
        self.program = str(folder / "Bob.sh")
        self.lead = self.connect("a", "Lead")

    def connect(self, host: str, name: str) -> SyncRelayClient:
        client = SyncRelayClient(name, socket=self.hosts[host].socket, reconnect_attempts=None)
        client.connect(wait=True)
        return client

    def spawn(self, client: SyncRelayClient, host: str | None, task: str | None = None) -> str:
        return client.spawn("Bob", self.program, task, backend="pty", host=host).session_id

    def sessions(self) -> list[dict[str, Any]]:
        return self.lead.agents().sessions

    def status(self, session_id: str) -> tuple[str, str | None, int | None]:
        found = next((found for found in self.sessions() if found["session_id"] == session_id), None)
        return ("", None, None) if found is None else (found["status"], found["reason"], found["exit_code"])

    def is_there(self) -> bool:
        bob = self.lead.agents().find("Bob")
        return bob is not None and bob.connected

    @property
    def starts(self) -> int:
        record = self.folder / "Bob.jsonl"
        return sum(json.loads(line)["event"] == "started" for line in record.read_text().splitlines()) if record.exists() else 0

    def close(self) -> None:
        sessions = self.sessions()
        self.lead.close(1)
        for found in sessions:
            if found["status"] != "ended" and found["pid"]:
                os.kill(found["pid"], signal.SIGTERM)
        wait_until(lambda: not any(os.path.exists(f"/proc/{s['pid']}") for s in sessions if s["pid"]), "the wrappers end")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    program = write_program(tmp_path, "Bob", turns=TURNS)
    with run_hosts(3, servers=1, flags=(f"--spawn-allow={program}", "--cluster-control=a", "--port=0")) as hosts:
        made = Scene(tmp_path, hosts)
        yield made
        made.close()


def refused(call: Any) -> RelayError:
    with pytest.raises(RelayError) as caught:
        call()
    return caught.value


def test_an_agent_is_started_and_stopped_on_another_host_and_survives_every_daemon(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    lead, hosts = scene.lead, scene.hosts
    seat = hosts.seat
    home = "b" if seat != "b" else "c"
    session = scene.spawn(lead, home, "ping")
    message = lead.receive(timeout=PATIENCE_S)
    assert (message.from_, message.body) == ("Bob", "pong")
    message.ack()
    bob = lead.agents().find("Bob")
    assert bob is not None
    assert (bob.host, bob.meta["cwd"]) == (home, str(hosts[home].directory))
    assert (hosts[home].state_dir / "team" / "Bob").is_dir()
    assert [found["host"] for found in scene.sessions()] == [home]

    # Its terminal is shown at the seat; whoever wants to sit in front of it is told where it is.
    with httpx.Client(base_url=hosts[seat].wait_for_url(), headers=hosts[seat].api_headers, timeout=PATIENCE_S) as http:

        def shows_it() -> bool:
            shown = http.get("/api/v1/agents/Bob/output", params={"lines": 50}).json()
            return any("pong" in line for line in shown["lines"])

        wait_until(shows_it, "its terminal is not shown")  # its message is faster than its screen
        assert any(line.strip() for line in http.get("/api/v1/agents/Bob/screen").json()["lines"])
        with http.stream("GET", "/api/v1/terminals/stream", params={"agents": "Bob"}) as stream:
            assert next(line for line in stream.iter_lines() if line.startswith("event:")) == "event: snapshot"
    code, printed = run(capsys, hosts[seat], "attach", "Bob")
    assert (code, f"runs on host {home}" in printed) == (1, True), printed

    # Whoever has the seat dies: the next one has the book, and its host says what runs there.
    hosts[seat].kill()
    hosts[seat].start()
    wait_until(lambda: scene.status(session)[0] == "running" and scene.is_there(), "Bob is not found again")

    # The daemon of its own host dies: the wrapper runs on, and how it ends is heard.
    hosts[home].kill()
    hosts[home].start()
    wait_until(scene.is_there, "Bob does not come back")
    assert scene.starts == 1
    lead.send("Bob", "finish")
    wait_until(lambda: scene.status(session) == ("ended", "completed", 0), "the end of Bob is not heard")

    again = scene.spawn(lead, "c")
    lead.control("Bob", "pause")
    wait_until(lambda: lead.agents().find("Bob").paused, "Bob is not paused")  # type: ignore[union-attr]
    lead.control("Bob", "resume")
    lead.release("Bob")
    assert scene.status(again)[:2] == ("ended", "released")


def test_commands_say_where_an_agent_runs_and_show_its_terminal(
    scene: Scene, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = scene.hosts["a"]
    monkeypatch.chdir(here.directory)  # the same place of the project is meant on the other host
    code, printed = run(capsys, here, "spawn", "Bob", scene.program, "ping", "--backend", "pty", "--host", "b")
    assert code == 0, printed
    assert "Bob is running on host b" in printed
    assert "agent-relay logs Bob; on b also agent-relay attach Bob" in printed
    wait_until(lambda: "pong" in run(capsys, here, "logs", "Bob")[1], "its terminal is not shown")
    code, printed = run(capsys, here, "logs", "Bob", "--lines", "1")
    assert (code, len(printed.splitlines())) == (0, 1), printed
    for words in (("logs", "Bob", "--follow"), ("attach", "Bob")):
        code, printed = run(capsys, here, *words)
        assert (code, "runs on host b" in printed) == (1, True), printed
    assert run(capsys, scene.hosts["c"], "logs", "Nobody")[0] == 1


def test_the_agents_of_a_run_end_with_it_on_another_host_and_after_the_seat_moved(tmp_path: Path) -> None:
    program = write_program(tmp_path, "Bob", turns=TURNS)
    with run_hosts(3, servers=1, flags=(f"--spawn-allow={program}", "--cluster-control=a", "--run-grace=10m")) as hosts:
        scene = Scene(tmp_path, hosts)
        runner = scene.connect("a", "Runner")
        session = runner.spawn("Bob", scene.program, backend="pty", host="b", run="run-1").session_id
        wait_until(scene.is_there, "Bob does not come")
        hosts[hosts.seat].restart()
        wait_until(lambda: runner.agents().find("Runner") is not None, "nobody has the seat")
        wait_until(scene.is_there, "Bob does not come back")
        assert scene.status(session)[0] == "running"
        runner.close(1)
        scene.connect("a", "Runner").close(1)  # another session of that name ends the run at once, whatever the grace
        wait_until(lambda: scene.status(session)[:2] == ("ended", "released"), "nobody releases it")
        scene.close()


def test_a_permission_is_answered_from_another_host_that_may(scene: Scene) -> None:
    stranger = scene.connect("c", "Stranger")
    with RawClient(scene.hosts["b"].socket) as wrapper, ThreadPoolExecutor() as threads:
        wrapper.hello("Kim", capabilities={"control": True})
        asks = {"requestId": "p1", "tool": "Bash", "command": "make deploy", "description": "May I?", "isExact": True}
        wrapper.say("AGENT_EVENT", {"type": "permission.requested", "fields": asks})
        wait_until(lambda: bool(scene.lead.agents().find("Kim").requests), "nobody sees the request")  # type: ignore[union-attr]
        assert refused(lambda: stranger.control("Kim", "approve", request_id="p1")).details["reason"] == "host_control"
        answering = threads.submit(scene.lead.control, "Kim", "approve", request_id="p1")
        told = wrapper.expect("CONTROL")["payload"]
        assert (told["command"], told["id"]) == ("approve", "p1")
        fields = {"requestId": "p1", "resolution": "approved", "resolvedBy": "door"}
        wrapper.say("AGENT_EVENT", {"type": "permission.resolved", "fields": fields})
        assert answering.result(PATIENCE_S) == "Kim"
    stranger.close(1)


def test_a_question_is_answered_from_another_host_that_may(scene: Scene) -> None:
    def answer(host: str) -> httpx.Response:
        daemon = scene.hosts[host]
        url = f"{daemon.wait_for_url()}/api/v1/agents/Kim/questions/q1/answer"
        return httpx.post(url, json={"answer": "blue"}, headers=daemon.api_headers, timeout=PATIENCE_S)

    with RawClient(scene.hosts["b"].socket) as wrapper, ThreadPoolExecutor() as threads:
        wrapper.hello("Kim", capabilities={"control": True})
        asks = {"questionId": "q1", "question": "Which colour?", "options": ["red", "blue"]}
        wrapper.say("AGENT_EVENT", {"type": "question.requested", "fields": asks})
        wait_until(lambda: bool(scene.lead.agents().find("Kim").requests), "nobody sees the question")  # type: ignore[union-attr]
        refusal = answer("c")
        assert (refusal.status_code, refusal.json()["error"]["details"]["reason"]) == (409, "host_control")
        answering = threads.submit(answer, "a")
        told = wrapper.expect("CONTROL")["payload"]
        assert (told["command"], told["id"], told["text"]) == ("answer", "q1", "blue")
        fields = {"questionId": "q1", "answer": "blue", "resolvedBy": "door"}
        wrapper.say("AGENT_EVENT", {"type": "question.resolved", "fields": fields})
        assert answering.result(PATIENCE_S).json()["success"] is True
    wait_until(lambda: not scene.lead.agents().find("Kim").requests, "the question stays open")  # type: ignore[union-attr]


def test_each_host_decides_who_may_do_what_there(scene: Scene) -> None:
    scene.spawn(scene.lead, "b")
    stranger = scene.connect("c", "Stranger")
    try:
        for call in (
            lambda: stranger.control("Bob", "stop"),
            lambda: stranger.control("Bob", "input", "rm -rf ."),
            lambda: stranger.release("Bob"),
            lambda: stranger.spawn("Eve", scene.program, host="b"),
        ):
            error = refused(call)
            assert error.code is ErrorCode.PERMISSION_DENIED
            assert {key: error.details[key] for key in ("reason", "host", "setting", "value")} == {
                "reason": "host_control", "host": "b", "setting": "cluster_control", "value": "c",
            }  # fmt: skip
        stranger.send("Bob", "Messages go everywhere.")
        own = stranger.spawn("Eve", scene.program, backend="pty")  # on its own host, without a word
        assert {found["agent"]: found["host"] for found in scene.sessions()} == {"Bob": "b", "Eve": "c"}
        stranger.control("Eve", "interrupt")
        stranger.release("Eve")
        assert scene.status(own.session_id)[1] == "released"
        assert refused(lambda: stranger.spawn("Eve", scene.program, host="x")).details["reason"] == "host_not_found"
        error = refused(lambda: scene.lead.spawn("Eve", "/bin/cat", host="b"))  # by b's list of programs
        assert error.details["reason"] == "cli_not_allowed"
    finally:
        stranger.close(1)
    wait_until(scene.is_there, "Bob is gone")
