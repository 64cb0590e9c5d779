"""The work of an agent, from its session file to the events: what it said, thought, ran and changed, and the sum at the end."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.sdk.sync import SyncRelayClient
from agent_relay.terminal.doors.versions import remember_version
from tests.integration.stage import DEADLINE_S, Stage, until

pytestmark = pytest.mark.terminals

# Looks like Claude Code as far as its profile looks; each message to it is a piece of work in its session file.
PROGRAM = r"""
import json, os, re, sys, time, tty, uuid
folder = os.path.join(os.environ["CLAUDE_CONFIG_DIR"], "projects", re.sub(r"[^A-Za-z0-9]", "-", os.getcwd()))
os.makedirs(folder, exist_ok=True)
session, rule, count = str(uuid.uuid4()), "\u2500" * 60, 0

def keep(kind, content, **more):
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + ".%03dZ" % (time.time() % 1 * 1000)
    message = {"role": kind, "content": content, "id": str(uuid.uuid4()), **more.pop("message", {})}
    line = {"type": kind, "uuid": str(uuid.uuid4()), "sessionId": session, "cwd": os.getcwd(), "timestamp": stamp,
            "message": message, **more}
    with open(os.path.join(folder, session + ".jsonl"), "a") as file:
        file.write(json.dumps(line) + "\n")

def work(number):
    ran, wrote = f"run-{number}", f"write-{number}"
    path = os.path.join(os.getcwd(), f"made-{number}.txt")
    keep("assistant", [{"type": "thinking", "thinking": "Test, then write."}])
    keep("assistant", [{"type": "tool_use", "id": ran, "name": "Bash", "input": {"command": "pytest -q"}}])
    keep("user", [{"type": "tool_result", "tool_use_id": ran, "content": "1 passed\nslow", "is_error": False}],
         toolUseResult={"stdout": "1 passed", "stderr": "slow"})
    keep("assistant", [{"type": "tool_use", "id": wrote, "name": "Write", "input": {"file_path": path, "content": "a\nb\n"}}])
    keep("user", [{"type": "tool_result", "tool_use_id": wrote, "content": "done", "is_error": False}],
         toolUseResult={"type": "create", "filePath": path, "content": "a\nb\n", "structuredPatch": []})
    usage = {"input_tokens": 100, "output_tokens": 11}
    keep("assistant", [{"type": "text", "text": f"->relay:Lead done {number}"}],
         message={"model": "claude-test", "stop_reason": "end_turn", "usage": usage})

def draw(draft, busy=""):
    os.write(1, ("\x1b[H\x1b[J" + "\r\n".join([*([busy, ""] if busy else []), rule, "\u276f\u00a0" + draft[:90], rule])).encode())

tty.setraw(0)
os.write(1, b"\x1b[?2004h")
draft, pasting = "", False
draw(draft)
while data := os.read(0, 65536):
    for token in re.findall(rb"\x1b\[20[01]~|\r|[^\r\x1b]+", data):
        if token in (b"\x1b[200~", b"\x1b[201~"):
            pasting = token == b"\x1b[200~"
        elif token == b"\r" and not pasting:
            keep("user", [{"type": "text", "text": draft}])
            asked, draft = "]: work" in draft, ""
            draw(draft, "\u273d Pondering\u2026 (1s)")
            if asked:
                count += 1
                work(count)
        else:
            draft += token.decode() if token != b"\r" else "\n"
        draw(draft)
"""


class Scene:
    def __init__(self, folder: Path) -> None:
        program = folder / "claude"
        program.write_text(f"#!{sys.executable}\n{PROGRAM}", "utf-8")
        program.chmod(0o700)
        allowed = "*_API_KEY,*_MODEL,CLAUDE_CONFIG_DIR"
        self.stage = Stage(folder, f"--spawn-allow={program}", f"--spawn-environment={allowed}", "--doors=off")
        self.lead = SyncRelayClient("Lead", socket=self.stage.daemon.socket, reconnect_attempts=None)
        self.lead.connect()
        variables = {
            "CLAUDE_CONFIG_DIR": str(folder / "claude-home"), "ANTHROPIC_MODEL": "claude-test", "TEST_API_KEY": "hunter2",
        }  # fmt: skip
        home = self.stage.daemon.directory / "home"
        home.mkdir(exist_ok=True)
        remember_version(str(program), os.environ, str(home), "2.1.325")
        spawned = self.lead.spawn("Bob", str(program), environment=variables, backend="pty", cwd=str(self.stage.project))
        self.session_id = spawned.session_id

    def ask_for_work(self, number: int) -> None:
        self.lead.send("Bob", "work")
        message = self.lead.receive(timeout=DEADLINE_S)
        assert (message.from_, message.body) == ("Bob", f"done {number}")
        message.ack()
        until(lambda: len(self.events("tokens.used")) == number, "the tokens are told")

    def events(self, *types: str) -> list[dict[str, Any]]:
        path = self.stage.daemon.state_dir / "events.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [event for event in map(json.loads, lines) if event["type"] in types]

    def close(self) -> None:
        running = [found["pid"] for found in self.lead.agents().sessions if found["status"] != "ended" and found["pid"]]
        if running:
            self.lead.release("Bob")
        self.lead.close(1)
        until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in running), "the wrapper ends")
        self.stage.close()


@pytest.fixture
def scene(folder: Path) -> Iterator[Scene]:
    made = Scene(folder)
    yield made
    made.close()


def test_work_is_told_as_it_was_recorded_and_summed_up_over_a_restart(scene: Scene) -> None:
    (started,) = until(lambda: scene.events("session.started"), "the start is told")
    assert (started["agent"]["model"], started["agent"]["version"]) == ("claude-test", "2.1.325")
    assert started["config"]["environment"] == {"ANTHROPIC_MODEL": "set", "CLAUDE_CONFIG_DIR": "set", "TEST_API_KEY": "set"}
    scene.ask_for_work(1)
    bob = scene.lead.agents().find("Bob")
    assert bob is not None
    assert {"ack", "control"} <= set(bob.capabilities)
    listed = json.loads(scene.stage.command("agents", "--json").stdout)["agents"]
    assert {tuple(agent["capabilities"]) for agent in listed if agent["name"] == "Bob"} == {bob.capabilities}

    types = [event["itemType"] for event in scene.events("item.started")]
    assert types == ["thinking", "test_run", "tool_call", "message"]
    assert len(scene.events("item.completed")) == 4
    assert [event["delta"]["content"] for event in scene.events("item.delta") if event["delta"]["type"] == "text"] == [
        "Test, then write.", "->relay:Lead done 1",
    ]  # fmt: skip
    (command,) = scene.events("command.executed")
    assert (command["command"], command["exitCode"], command["stdout"], command["stderr"]) == ("pytest -q", 0, "1 passed", "slow")
    (file,) = scene.events("file.operation")
    assert (file["operation"], file["linesChanged"], file["diff"]) == ("create", 2, "@@ -0,0 +1,2 @@\n+a\n+b")

    scene.stage.daemon.restart()
    until(lambda: (bob := scene.lead.agents().find("Bob")) is not None and bob.connected, "Bob comes back")
    scene.ask_for_work(2)
    scene.lead.release("Bob")
    (ended,) = until(lambda: scene.events("session.ended"), "the end is told")
    summary = ended["summary"]
    assert summary.pop("duration") > 0
    assert summary.pop("estimatedCost", 0) >= 0
    assert summary == {"itemCount": 8, "filesModified": 2, "commandsRun": 2, "totalTokens": 222}
    recorded = (scene.stage.daemon.state_dir / "events.jsonl").read_text("utf-8")
    assert "hunter2" not in recorded
