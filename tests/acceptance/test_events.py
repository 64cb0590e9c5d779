"""What agents do, told as events by a running daemon."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_relay.daemon.system import owner_name
from tests.integration.http_api.conftest import StartServer
from tests.integration.http_api.server import Server
from tests.integration.stage import Stage, until
from tests.unit.terminal.recorded_screens import SCREENS, sessions_of

RECORDED_IN = "/srv/team/relay1/proj"  # where the recorded sessions were held
_MOMENT = re.compile(r'"2026-11-15T06:[^"]*Z"')
# Of each CLI: the variable that moves its folder, what of the way is below it, and the tools of its longest recorded session.
CLIS = {
    "claude": ("CLAUDE_CONFIG_DIR", ".claude", ["Bash", "AskUserQuestion"]),
    "codex": ("CODEX_HOME", ".codex", ["exec_command", "apply_patch", "request_user_input"]),
    "gemini": ("GEMINI_CLI_HOME", "", ["run_shell_command", "write_file", "ask_user"]),
}


class Watched:
    """A wrapped program, and the session file that its CLI would keep: the test writes it."""

    def __init__(self, folder: Path, cli: str) -> None:
        self.stage = Stage(folder, "--port=0")
        variable, below, self.tools = CLIS[cli]
        self.stage.environ[variable] = str(folder / "cli")
        recorded = max(sessions_of(cli), key=lambda path: path.stat().st_size)
        way = str(recorded.relative_to(SCREENS / cli / "home" / below))
        spelled = re.sub(r"[^A-Za-z0-9]", "-", str(self.stage.project))
        self.file = folder / "cli" / way.replace("-srv-team-relay1-proj", spelled).replace("tmp/proj/", "tmp/project/")
        self.lines = recorded.read_text("utf-8").replace(RECORDED_IN, str(self.stage.project)).splitlines()
        bob = self.stage.start("Bob", "pty", "--cli", cli, intro=True, turns=[])
        self.server = Server(self.stage.daemon)
        # The words of the introduction, by which the wrapper knows that the file is Bob's.
        self.write({"introduction": json.loads((bob.team / "run.json").read_text())["mark"]})

    def write(self, *records: dict[str, Any]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(record | {"timestamp": datetime.now(UTC).isoformat()}) + "\n" for record in records)

    def replay(self) -> None:
        """As if all of it were said now."""
        now = json.dumps(datetime.now(UTC).isoformat())
        self.write(*(json.loads(_MOMENT.sub(now, line)) for line in self.lines))

    def events(self, *types: str) -> list[dict[str, Any]]:
        query = {"types": ",".join(types), "agent": "Bob", "limit": 1000}
        found: list[dict[str, Any]] = self.server.http.get("/api/v1/events", params=query).json()["events"]
        return found

    def close(self) -> None:
        self.server.close()
        self.stage.close()


@pytest.fixture
def watched(folder: Path, request: pytest.FixtureRequest) -> Iterator[Watched]:
    made = Watched(folder, request.param)
    yield made
    made.close()


@pytest.mark.terminals
@pytest.mark.parametrize("watched", CLIS, indirect=True)
def test_the_tools_of_each_cli_are_items(watched: Watched) -> None:
    """What Claude Code, Codex and Gemini CLI do with their tools is told: that one begins, what it is given, what it says, that
    it is done."""
    watched.replay()

    def tools() -> list[dict[str, Any]]:
        return [event for event in watched.events("item.started") if event["itemType"] == "tool_call"]

    def done() -> bool:
        ended = {event["itemId"] for event in watched.events("item.completed")}
        return len(tools()) == len(watched.tools) and all(event["itemId"] in ended for event in tools())

    until(done, "every tool is done")
    started = tools()
    assert [event["metadata"]["tool"] for event in started] == watched.tools
    assert {event["itemType"] for event in watched.events("item.started")} == {"tool_call", "message"}
    for event in started:
        mine = [
            each for each in watched.events("item.started", "item.delta", "item.completed") if each["itemId"] == event["itemId"]
        ]
        assert (mine[0]["type"], mine[1]["type"], mine[-1]["type"]) == ("item.started", "item.delta", "item.completed")
        assert mine[1]["delta"]["type"] == "tool_input"
        assert json.loads(mine[1]["delta"]["content"])
        assert all(each["delta"]["type"] == "tool_output" for each in mine[2:-1])
        assert mine[-1]["result"] == {"isError": True}  # the person refused each of them


@pytest.mark.terminals
@pytest.mark.parametrize("watched", CLIS, indirect=True)
def test_what_was_used_is_told_once_an_answer(watched: Watched) -> None:
    """The tokens of Claude Code's answers are told with their right numbers; Codex and Gemini CLI likewise."""
    watched.replay()
    answers = {"claude": 15, "codex": 18, "gemini": 15}[next(cli for cli, facts in CLIS.items() if facts[2] == watched.tools)]
    used = until(lambda: found if len(found := watched.events("tokens.used")) >= answers else None, "it is told")
    assert len(used) == answers
    assert {event["outputTokens"] for event in used} == {57}
    assert {event["inputTokens"] + event.get("cacheReadTokens", 0) for event in used} <= {1234, 1334}
    assert {event["agentName"] for event in used} == {"Bob"}
    assert len({event["usageId"] for event in used}) == answers


@pytest.mark.terminals
@pytest.mark.parametrize("watched", ["claude"], indirect=True)
def test_files_and_commands_are_told_when_they_were_touched_and_run(watched: Watched) -> None:
    """A file that an agent has changed and a command that it has run are told, with what the command printed."""

    def part(role: str, content: dict[str, Any]) -> dict[str, Any]:
        kind = "assistant" if role == "assistant" else "user"
        message = {"role": role, "content": [content]}
        return {"type": kind, "uuid": json.dumps(content), "cwd": str(watched.stage.project), "message": message}

    for id_, tool, given, said in (
        ("t1", "Bash", {"command": "ls"}, "notes.txt"),
        ("t2", "Write", {"file_path": "/p/a.py"}, "ok"),
    ):
        watched.write(part("assistant", {"type": "tool_use", "id": id_, "name": tool, "input": given}))
        watched.write(part("user", {"type": "tool_result", "tool_use_id": id_, "content": said}))
    (command,) = until(lambda: watched.events("command.executed"), "the command is told")
    assert (command["command"], command["exitCode"], command["stdout"]) == ("ls", 0, "notes.txt")
    (file,) = until(lambda: watched.events("file.operation"), "the file is told")
    assert (file["operation"], file["filePath"]) == ("write", "/p/a.py")


def test_every_message_that_is_routed_is_told_once(start_server: StartServer) -> None:
    """Whatever way a message is addressed, and over HTTP too, it is told once, with what it was addressed to."""
    server = start_server()
    alice, bob, carol = (server.join(name) for name in ("Alice", "Bob", "Carol"))
    bob.join("#dev")
    with carol.subscribe("code.>"):
        alice.send("Bob", "one")
        alice.send(["Bob", "Carol"], "several")
        alice.send("*", "all")
        alice.send("#dev", "channel")
        alice.send(None, "topic", topic="code.review")
    assert server.http.post("/api/v1/messages", json={"to": "Bob", "body": "http"}).status_code == 201

    def exchanged() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = server.http.get("/api/v1/events?types=message.exchanged").json()["events"]
        return found

    until(lambda: len(exchanged()) >= 6, "they are told")
    assert [(each["from"], each["to"], each["body"], each.get("channel")) for each in exchanged()] == [
        ("Alice", "Bob", "one", None), ("Alice", "Bob,Carol", "several", None), ("Alice", "*", "all", None),
        ("Alice", "#dev", "channel", "#dev"), ("Alice", "", "topic", "code.review"), (owner_name(), "Bob", "http", None),
    ]  # fmt: skip


def test_agents_that_only_answer_each_other_are_told(start_server: StartServer) -> None:
    """A loop is an event of each agent in it."""
    server = start_server("--loop-slow-after=3", "--loop-hold-after=4")
    pair = [server.join(name, control=True) for name in ("Alice", "Bob")]
    pair[0].report("agent.input")
    for hop in range(3):
        pair[hop % 2].send(pair[(hop + 1) % 2].name, f"hop {hop}")
        pair[(hop + 1) % 2].receive(timeout=30).ack()

    def told() -> set[str]:
        found = server.http.get("/api/v1/events?types=loop.detected").json()["events"]
        return {event["_agentName"] for event in found}

    until(lambda: told() == {"Alice", "Bob"}, "both are told")


def test_who_only_sends_something_is_no_news(folder: Path) -> None:
    """A command that joins, sends and leaves tells of its message, and not of its coming and going."""
    stage = Stage(folder, "--port=0")
    server = Server(stage.daemon)
    try:
        server.join("Bob")
        done = stage.command("send", "Bob", "hello")
        assert done.returncode == 0, done.stderr
        server.join("Carol")  # the last to come: what was before her is told by then

        def events(kind: str) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = server.http.get(f"/api/v1/events?types={kind}").json()["events"]
            return found

        until(lambda: "Carol" in str(events("agent.state")), "Carol is told")
        assert [event["from"] for event in events("message.exchanged")] == [owner_name()]
        assert [event["_agentName"] for event in events("agent.state")] == ["Bob", "Carol"]
    finally:
        server.close()
        stage.close()
