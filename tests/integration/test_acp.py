"""Agents that speak the Agent Client Protocol, under a real daemon and real terminals: scripted, by the official package."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_relay.protocol.errors import RelayError
from agent_relay.terminal.acp.door_server import is_below
from tests.integration.stage import BACKENDS, Agent, Stage, Window, until

pytestmark = pytest.mark.terminals
PROGRAM = Path(__file__).with_name("acp_agent.py")
ANSWERS = [{"when": "hello", "steps": [{"say": ["->relay:Carol ", "so long"]}]}, {}]
ASKS = [{"when": "build", "steps": [{"run": "rm -rf build"}, {"say": "->relay:Carol done"}]}, {}]


class Acp:
    """A scripted agent called `gemini`, and what it has seen."""

    def __init__(self, stage: Stage, turns: Sequence[dict[str, Any]] = ANSWERS, **script: Any) -> None:
        self.stage = stage
        self.program = stage.folder / "gemini"
        (stage.folder / "script.json").write_text(json.dumps({"folder": str(stage.folder), "turns": turns, **script}))
        self.program.write_text(f"#!/bin/sh\nexec {sys.executable} {PROGRAM} {stage.folder}/script.json\n")
        self.program.chmod(0o755)

    def start(self, backend: str = "tmux", *options: str, intro: bool = False, window: Window | None = None) -> Agent:
        words = ["-n", "Bob", "--backend", backend, *([] if intro else ["--no-intro"]), *self.stage.where, "--acp", *options]
        process = self.stage.run([*words, str(self.program)], window)
        bob = Agent("Bob", process, self.stage.folder / "none.jsonl", self.stage.daemon.state_dir, window)
        self.stage.agents.append(bob)
        until(lambda: "acp is open" in bob.log or process.poll() is not None, "Bob has a session")
        assert process.poll() is None, process.communicate()
        return bob

    def events(self, kind: str) -> list[dict[str, Any]]:
        path = self.stage.folder / "record.jsonl"
        found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [event for event in found if event["event"] == kind]

    @property
    def prompts(self) -> list[str]:
        """The last text of each: the one before it may be the introduction."""
        return [event["texts"][-1] for event in self.events("prompt")]

    @property
    def told(self) -> list[str]:
        """Bodies of the messages it was given, each as often as it was."""
        return re.findall(r"^Relay message from \w+ \[[0-9a-f]{8}\]: (.*)$", "\n".join(self.prompts), re.MULTILINE)


def described(stage: Stage) -> dict[str, Any]:
    agents = json.loads(stage.command("agents", "--json").stdout)["agents"]
    return next(dict(agent) for agent in agents if agent["name"] == "Bob")


def requests(stage: Stage) -> list[dict[str, Any]]:
    return list(described(stage)["requests"])


def happened(stage: Stage, *types: str) -> list[dict[str, Any]]:
    """Events of Bob, of these types."""
    done = stage.command("events", "--json", "--since", "0", "--types", ",".join(types))
    return [json.loads(line) for line in done.stdout.splitlines()]


def receipts(stage: Stage, body: str) -> list[str]:
    """How Bob's messages with this body ended."""

    async def ask() -> list[str]:
        async with stage.daemon.connect(observer=True) as relay:
            found = (await relay.history(to="Bob")).messages
            return [str(each["message_id"]) for each in found if each["payload"]["body"] == body]

    (id_,) = asyncio.run(ask())
    trail = json.loads(stage.command("explain", id_, "--json").stdout)["trail"]
    return [" ".join(filter(None, (each["event"], each["detail"]))) for each in trail]


# --- messages ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_message_is_a_prompt_that_its_turn_shows_to_be_read(stage: Stage, backend: str) -> None:
    agent = Acp(stage)
    bob = agent.start(backend, intro=True)
    assert described(stage)["door"] == "acp"
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "hello")
        assert carol.receive(timeout=60).body == "so long"
        carol.send("Bob", "and more")
        until(lambda: len(agent.events("end")) == 2, "the second turn has ended")
    assert agent.told == ["hello", "and more"]
    first, second = (event["texts"] for event in agent.events("prompt"))
    assert len(first) == 2
    assert first[0].startswith("Agent Relay: you are Bob")  # with the first prompt, and no turn of its own
    assert len(second) == 1
    stage.settled("Bob", 2)
    *_, handed, injected, read = receipts(stage, "hello")
    assert handed.startswith("handed door acp")
    assert (injected, read) == ("injected door acp, seen: turn", "read seen: turn")
    (begun,) = agent.events("initialize")
    assert "read_text_file=False" in begun["capabilities"]
    assert "terminal=False" in begun["capabilities"]
    assert agent.events("new")[0]["servers"] == ["agent-relay"]  # the relay's tools
    bob.process.send_signal(signal.SIGTERM)
    bob.process.wait(30)
    until(lambda: not alive(agent.events("prompt")[0]["pid"]), "the agent has ended with its console")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_messages_that_come_while_it_works_are_prompts_of_their_own_in_order(stage: Stage) -> None:
    agent = Acp(stage, [{"when": "wait", "steps": [{"say": "well"}, {"until": "go"}]}, {}])
    agent.start("pty")
    bodies = [f"number {number}" for number in range(20)]
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "wait")
        until(lambda: agent.prompts, "it works")
        for body in bodies:
            carol.send("Bob", body)
        until(lambda: described(stage)["state"] == "working", "it is seen to work")
        (stage.folder / "go").touch()
        until(lambda: len(agent.events("end")) == 21, "all turns have ended")
    assert agent.told == ["wait", *bodies]
    stage.settled("Bob", 21)


def test_a_prompt_that_it_refuses_is_told_to_the_sender(stage: Stage) -> None:
    agent = Acp(stage, [{"when": "hello", "error": "The quota is used up"}, {}])
    agent.start("pty")
    with stage.daemon.connect_sync("Carol") as carol:
        with pytest.raises(RelayError, match="gemini could not take it: The quota is used up"):
            carol.send("Bob", "hello", wait=60)
        carol.send("Bob", "next")
        until(lambda: len(agent.events("end")) == 1, "the next one is a turn again")
    assert agent.told == ["hello", "next"]


# --- events -----------------------------------------------------------------------------------------------------------------


def test_what_it_does_is_told_as_events_while_it_does_it(stage: Stage) -> None:
    steps = [
        {"think": "hm"}, {"plan": ["first", "then"]}, {"say": ["Let me ", "look.\n"]}, {"until": "go"}, {"say": "Well."},
        {"edit": ["a.py", "x = 1\n", "x = 2\n"]},
    ]  # fmt: skip
    agent = Acp(stage, [{"steps": steps}])
    agent.start("pty")
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "hello")
        until(
            lambda: any("Let me look." in str(each) for each in happened(stage, "item.delta")),
            "text is told before the turn is over",
        )
        assert not agent.events("end")
        (stage.folder / "go").touch()
        until(lambda: happened(stage, "tokens.used"), "the turn is over")
    started = {each["item"]["itemType"] if "item" in each else each["itemType"] for each in happened(stage, "item.started")}
    assert started == {"thinking", "plan", "message", "tool_call"}
    assert len(happened(stage, "item.started")) == len(happened(stage, "item.completed"))
    text = "".join(each["delta"]["content"] for each in happened(stage, "item.delta") if each["delta"]["type"] == "text")
    assert "Let me look.\nWell." in text
    (touched,) = happened(stage, "file.operation")
    assert (touched["operation"], touched["linesChanged"]) == ("edit", 2)
    assert "-x = 1\n+x = 2" in touched["diff"]
    (used,) = happened(stage, "tokens.used")
    assert (used["inputTokens"], used["outputTokens"], used["cacheReadTokens"]) == (20, 10, 5)


# --- permissions ------------------------------------------------------------------------------------------------------------


def ask(stage: Stage, agent: Acp) -> str:
    with stage.daemon.connect_sync("Dave") as dave:
        dave.send("Bob", "build")
    until(lambda: requests(stage), "it asks")
    return str(requests(stage)[0]["id"])


@pytest.mark.parametrize(("word", "picked"), [("approve", "proceed_once"), ("deny", "cancel")])
def test_a_permission_is_answered_by_its_own_options_from_the_command_line(stage: Stage, word: str, picked: str) -> None:
    agent = Acp(stage, ASKS)
    agent.start()
    with stage.daemon.connect_sync("Carol") as carol:
        id_ = ask(stage, agent)
        (request,) = requests(stage)
        assert request["command"] == "rm -rf build"
        assert request["options"] == ["Always allow [proceed_always]", "Allow once [proceed_once]", "Reject [cancel]"]
        assert described(stage)["state"] == "waiting"
        done = stage.command("permissions", word, id_)
        assert done.returncode == 0, done
        assert carol.receive(timeout=60).body == "done"
    assert [event["picked"] for event in agent.events("permission")] == [picked]
    assert requests(stage) == []
    again = stage.command("permissions", word, id_)
    assert again.returncode != 0
    assert "There is no open permission" in again.stderr
    if word == "approve":
        until(lambda: [each["command"] for each in happened(stage, "command.executed")] == ["rm -rf build"], "it is recorded")


@pytest.mark.parametrize(
    ("said", "picked"), [({}, "proceed_once"), ({"option": "Always allow [proceed_always]"}, "proceed_always")]
)
def test_a_permission_is_answered_over_http(spawning: Stage, said: dict[str, str], picked: str) -> None:
    stage = spawning
    agent = Acp(stage, ASKS)
    agent.start()
    id_ = ask(stage, agent)
    call(stage, "POST", f"/agents/Bob/permissions/{id_}/approve", said)
    until(lambda: agent.events("permission"), "it is answered")
    assert agent.events("permission")[0]["picked"] == picked


def test_a_person_at_the_terminal_reads_it_all_and_picks_any_option(stage: Stage) -> None:
    agent = Acp(stage, ASKS)
    window = Window()
    agent.start("pty", window=window)
    until(lambda: b"Scripted Agent 7.1.2" in window.shown, "the session is there")
    window.type(b"please build it\r")
    until(lambda: b"2. Allow once" in window.shown, "it asks")
    window.type(b"1\r")
    until(lambda: agent.events("end"), "the turn goes on")
    assert agent.events("permission")[0]["picked"] == "proceed_always"
    assert agent.prompts[0] == "please build it"
    until(lambda: requests(stage) == [], "nothing is asked any more")
    until(lambda: "end turn" in stage.command("logs", "Bob").stdout, "the log has the transcript")
    resolved = happened(stage, "permission.resolved")
    assert resolved[-1]["resolution"] == "approved"
    window.type(b"\x04")
    assert stage.agents[0].process.wait(30) == 0
    assert window.is_as_before


def test_one_that_only_offers_to_allow_always_is_not_allowed_from_elsewhere(stage: Stage) -> None:
    agent = Acp(stage, ASKS, offers=["allow_always", "reject_once"])
    agent.start()
    id_ = ask(stage, agent)
    done = stage.command("permissions", "approve", id_)
    assert done.returncode != 0
    assert "Bob's own terminal" in done.stderr
    assert stage.command("permissions", "deny", id_).returncode == 0
    until(lambda: agent.events("permission"), "it is answered")
    assert agent.events("permission")[0]["picked"] == "cancel"


def test_an_agent_cannot_come_to_its_own_door(stage: Stage) -> None:
    """It would answer what it asks."""
    path = str(stage.daemon.state_dir / "team" / "Bob" / "acp.sock")
    agent = Acp(stage, [{"steps": [{"connect": path}]}])
    agent.start()
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "hello")
        until(lambda: agent.events("connected"), "it has tried")
    assert agent.events("connected")[0]["heard"] == ""
    assert described(stage)["door"] == "acp"


def test_a_process_is_below_those_it_comes_from() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert is_below(child.pid, os.getpid())
        assert not is_below(os.getppid(), os.getpid())
        assert is_below(0, os.getpid())  # it cannot be told
    finally:
        child.kill()
        child.wait()


# --- cancel -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_interrupt_cancels_the_turn_and_what_waits_goes_on(stage: Stage, backend: str) -> None:
    agent = Acp(stage, [{"when": "forever", "steps": [{"say": "on it"}, {"until": "never"}]}, *ANSWERS])
    agent.start(backend)
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "forever")
        until(lambda: agent.prompts, "it works")
        carol.send("Bob", "hello")
        done = stage.command("interrupt", "Bob")
        assert done.returncode == 0, done
        assert carol.receive(timeout=60).body == "so long"
    assert [event["cancelled"] for event in agent.events("end")] == [True, False]
    assert agent.told == ["forever", "hello"]
    stage.settled("Bob", 2)


def test_a_cancelled_turn_asks_nothing_any_more(stage: Stage) -> None:
    agent = Acp(stage, ASKS)
    agent.start()
    ask(stage, agent)
    assert stage.command("interrupt", "Bob").returncode == 0
    until(lambda: agent.events("end"), "the turn has ended")
    assert agent.events("permission")[0]["picked"] == "cancelled"
    until(lambda: requests(stage) == [], "nothing is asked any more")


# --- deaths -----------------------------------------------------------------------------------------------------------------


def test_an_agent_that_dies_before_it_took_a_message_gets_it_again(stage: Stage) -> None:
    agent = Acp(stage, [{"when": "fatal", "dies": "before"}, *ANSWERS])
    bob = agent.start()
    with stage.daemon.connect_sync("Carol") as carol:
        sent = carol.send("Bob", "fatal")
        until(lambda: len(agent.events("new")) >= 2, "it is started again")
        (stage.folder / "script.json").write_text(json.dumps({"folder": str(stage.folder), "turns": ANSWERS}))
        until(lambda: agent.events("end"), "it takes it")
        stage.settled("Bob", 1)
        assert sent.message_id
    assert bob.process.poll() is None
    assert set(agent.told) == {"fatal"}


def test_an_agent_that_dies_with_a_message_goes_on_with_its_session_and_gets_it_once(stage: Stage) -> None:
    agent = Acp(stage, [{"when": "fatal", "dies": "kept"}, *ANSWERS])
    agent.start()
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "fatal")
        until(lambda: agent.events("load"), "its session goes on")
        stage.settled("Bob", 1)
        carol.send("Bob", "hello")
        assert carol.receive(timeout=60).body == "so long"
    assert agent.told == ["fatal", "hello"]
    assert receipts(stage, "fatal")[-1] == "read seen: history"


def test_a_killed_agent_without_sessions_begins_a_new_one(stage: Stage) -> None:
    agent = Acp(stage, loads=False)
    agent.start(intro=True)
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "hello")
        assert carol.receive(timeout=60).body == "so long"
        stage.settled("Bob", 1)
        os.kill(agent.events("prompt")[0]["pid"], signal.SIGKILL)
        carol.send("Bob", "hello again")
        assert carol.receive(timeout=60).body == "so long"
    assert agent.told == ["hello", "hello again"]
    assert [len(event["texts"]) for event in agent.events("prompt")] == [2, 2]  # it is introduced again


def test_an_agent_of_two_processes_has_ended_with_the_first(stage: Stage) -> None:
    """As npm starts some: the second one keeps the connection, and need not notice."""
    agent = Acp(stage)
    agent.program.write_text(f"#!/bin/sh\n{sys.executable} {PROGRAM} {stage.folder}/script.json <&0\nexit\n")
    agent.start()
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "hello")
        assert carol.receive(timeout=60).body == "so long"
        second = int(agent.events("prompt")[0]["pid"])
        first = int(Path(f"/proc/{second}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(first, signal.SIGKILL)
        carol.send("Bob", "hello again")
        assert carol.receive(timeout=60).body == "so long"
    assert not alive(second)
    assert agent.told == ["hello", "hello again"]


def test_an_agent_that_always_dies_is_given_up(stage: Stage) -> None:
    agent = Acp(stage, [{"when": "", "dies": "before"}])
    bob = agent.start("pty")
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "fatal")
        assert bob.process.wait(60) == 1
    assert stage.owed("Bob") == ["fatal"]  # for whoever comes next
    assert "It has ended 4 times" in stage.command("logs", "Bob").stdout


def test_a_killed_wrapper_is_followed_by_one_that_goes_on_with_the_same_turn(stage: Stage) -> None:
    turns = [{"when": "long", "steps": [{"say": "->relay:Carol first\n"}, {"think": "hm"}, {"until": "go"}, {"run": "make"}]}, {}]
    agent = Acp(stage, turns)
    bob = agent.start()
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "long")
        assert carol.receive(timeout=60).body == "first"
        carol.send("Bob", "behind it")
        bob.process.kill()
        bob.process.wait()
        (stage.folder / "go").touch()
        agent.start()
        until(lambda: requests(stage), "the new wrapper tells what is asked")
        assert stage.command("permissions", "approve", requests(stage)[0]["id"]).returncode == 0
        until(lambda: len(agent.events("end")) == 2, "both turns have ended")
        stage.settled("Bob", 2)
        with pytest.raises(Exception, match="No message came"):
            carol.receive(timeout=1)  # what it said before is not told again
    assert agent.told == ["long", "behind it"]
    assert len(agent.events("new")) == 1


def test_a_killed_console_leaves_no_agent_and_its_session_goes_on_in_the_next(stage: Stage) -> None:
    agent = Acp(stage, [{"when": "long", "steps": [{"say": "well"}, {"until": "go"}]}, *ANSWERS])
    bob = agent.start("pty")
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "long")
        until(lambda: "read seen: turn" in receipts(stage, "long"), "it is read")
        carol.send("Bob", "hello")
        bob.process.kill()
        bob.process.wait()
        until(lambda: not alive(agent.events("prompt")[0]["pid"]), "the agent is gone")
        agent.start("pty")
        assert carol.receive(timeout=60).body == "so long"
        stage.settled("Bob", 2)
    assert agent.told == ["long", "hello"]
    assert len(agent.events("load")) == 1


def test_a_killed_daemon_disturbs_nobody(stage: Stage) -> None:
    agent = Acp(stage, [{"when": "long", "steps": [{"say": "->relay:Carol first\n"}, {"until": "go"}]}, *ANSWERS])
    agent.start()
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "long")
        until(lambda: agent.prompts, "it works")
        stage.daemon.kill()
        (stage.folder / "go").touch()
        until(lambda: agent.events("end"), "the turn ends without the daemon")
    stage.daemon.restart()
    with stage.daemon.connect_sync("Carol") as carol:
        assert carol.receive(timeout=60).body == "first"
        carol.send("Bob", "hello")
        assert carol.receive(timeout=60).body == "so long"
        stage.settled("Bob", 2)
    assert agent.told == ["long", "hello"]


# --- starting it --------------------------------------------------------------------------------------------------------------


def call(stage: Stage, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    url = f"{stage.daemon.wait_for_url()}/api/v1{path}"
    headers = {**stage.daemon.api_headers, "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return dict(json.load(answer) or {})


@pytest.fixture
def spawning(folder: Path) -> Any:
    """A daemon whose PATH has the scripted agent as `gemini`, and as `aider`."""
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}:{before}"
    stage = Stage(folder, "--port=0")
    os.environ["PATH"] = before
    yield stage
    stage.command("release", "Bob")
    stage.close()


@pytest.mark.parametrize("way", ["command", "http"])
def test_it_is_spawned_with_its_task(spawning: Stage, way: str) -> None:
    agent = Acp(spawning)
    with spawning.daemon.connect_sync("Carol") as carol:
        if way == "command":
            done = spawning.command("spawn", "Bob", "gemini", "hello", "--acp", "--cwd", str(spawning.folder))
            assert done.returncode == 0, done
        else:
            asked = {"agent": "Bob", "cli": "gemini", "task": "hello", "transport": "acp", "cwd": str(spawning.folder)}
            id_ = call(spawning, "POST", "/sessions", asked)["sessionId"]
            assert call(spawning, "GET", f"/sessions/{id_}", {})["transport"] == "acp"
        assert carol.receive(timeout=60).body == "so long"
    assert agent.told == ["hello"]
    assert described(spawning)["meta"]["transport"] == "acp"


def test_a_cli_that_does_not_speak_it_is_told_with_those_that_do(spawning: Stage) -> None:
    agent = Acp(spawning)
    agent.program.rename(spawning.folder / "aider")
    done = spawning.command("spawn", "Bob", "aider", "--acp", "--cwd", str(spawning.folder))
    assert done.returncode != 0
    assert "does not know how aider is started" in done.stderr
    for known in ("gemini", "opencode", "claude", "codex", "qwen", "copilot", "kimi", "vibe-acp"):
        assert known in done.stderr
    with pytest.raises(urllib.error.HTTPError) as refused:
        call(spawning, "POST", "/sessions", {"agent": "Bob", "cli": "gemini", "transport": "telepathy"})
    with refused.value:  # its connection is open until then
        assert refused.value.code == 422


def test_one_that_wants_a_sign_in_says_so_and_ends(stage: Stage) -> None:
    agent = Acp(stage, signs_in=True)
    process = stage.run(["-n", "Bob", "--backend", "pty", *stage.where, "--acp", str(agent.program)])
    assert process.wait(60) == 1
    process.communicate()
    assert "It wants you to sign in" in stage.command("logs", "Bob").stdout
    assert len(agent.events("initialize")) == 1  # nor is it started in another way
