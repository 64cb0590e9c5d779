"""`agent-relay mcp` with the official client over standard input and output, against a real daemon."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from agent_relay.daemon.system import owner_name
from agent_relay.protocol.mcp.tools import TOOLS
from agent_relay.testing.daemon import DaemonProcess
from tests.integration.stage import Stage
from tests.security.inside import Inside

DEADLINE_S = 120.0
ME = owner_name()
Call = Callable[..., Awaitable[str]]


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as found:
        with found.connect_sync(ME):
            pass  # the person has been here before, so agents can write to them
        yield found


def make_parameters(daemon: DaemonProcess, cwd: Path | None = None, **environ: str) -> StdioServerParameters:
    own = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_RELAY_")}
    where = ["--socket", daemon.socket, "--state-dir", str(daemon.state_dir)]
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "agent_relay", "mcp", *where],
        env={**own, "AGENT_RELAY_HOME": str(daemon.directory / "home"), **environ},
        cwd=str(cwd or daemon.directory),
    )


@asynccontextmanager
async def connected(daemon: DaemonProcess, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
    environ = {name: options.pop(name) for name in list(options) if name.startswith("AGENT_RELAY_")}
    parameters = make_parameters(daemon, options.pop("cwd", None), **environ)
    async with asyncio.timeout(DEADLINE_S), Client(parameters, mode=mode, **options) as client:
        yield client


async def call(client: Client, tool: str, /, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return str(getattr(result.content[0], "text", ""))


async def refused(client: Client, tool: str, /, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.content
    return str(getattr(result.content[0], "text", ""))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_of_either_protocol_sends_and_receives(daemon: DaemonProcess, mode: str) -> None:
    async def scene() -> None:
        bob_name = f"Bob-{mode}"
        async with connected(daemon, mode) as client, daemon.connect(bob_name) as bob:
            assert [tool.name for tool in (await client.list_tools()).tools] == [tool.name for tool in TOOLS]
            assert f"You are {ME}" in await call(client, "relay_status")
            assert bob_name in await call(client, "relay_agents")

            assert "for 1 recipient" in await call(client, "relay_send", to=bob_name, text="review auth.py", thread="t1")
            message = await bob.receive(DEADLINE_S)
            assert (message.from_, message.body, message.thread) == (ME, "review auth.py", "t1")
            await message.ack()
            assert f"{bob_name}: delivered" in await call(client, "relay_status", id=message.id)

            await message.reply("looks good", ack=False)
            for _ in range(2):
                assert "> looks good" in await call(client, "relay_inbox", peek=True)
            assert "> looks good" in await call(client, "relay_inbox")
            assert "looks good" not in await call(client, "relay_inbox")
            assert "> review auth.py" in await call(client, "relay_history", thread="t1")

    asyncio.run(scene())


def test_a_question_is_answered_or_told_why_not(daemon: DaemonProcess) -> None:
    async def scene() -> None:
        async with connected(daemon) as client, daemon.connect("Quiz") as quiz:
            asked = asyncio.create_task(call(client, "relay_ask", to="Quiz", text="ready?", seconds=60))
            question = await quiz.receive(DEADLINE_S)
            await question.reply("yes")
            assert await asked == "Quiz answered:\n> yes"
            assert "> yes" not in await call(client, "relay_inbox", peek=True)

            assert "No answer within 1 s" in await refused(client, "relay_ask", to="Quiz", text="still?", seconds=1)
            assert (await quiz.receive(DEADLINE_S)).body == "still?"

    asyncio.run(scene())


def test_a_reply_goes_to_whoever_wrote(daemon: DaemonProcess) -> None:
    async def scene() -> None:
        async with connected(daemon) as client, daemon.connect("Writer") as writer:
            sent = await writer.send(ME, "what now?", thread="plan")
            await call(client, "relay_reply", id=sent.message_id, text="go on")
            reply = await writer.receive(DEADLINE_S)
            assert (reply.body, reply.thread, reply.reply_to) == ("go on", "plan", sent.message_id)
            await reply.ack()
            assert "your own" in await refused(client, "relay_reply", id=reply.id, text="again")
            assert "There is no message" in await refused(client, "relay_reply", id="00000000", text="x")

    asyncio.run(scene())


def test_an_agent_outside_a_wrapper_takes_its_messages_once(daemon: DaemonProcess) -> None:
    async def scene() -> None:
        async with connected(daemon, AGENT_RELAY_NAME="Script") as client, daemon.connect("Boss") as boss:
            await call(client, "relay_join", channel="builds")
            receipt = await boss.send("Script", "one")
            await boss.send("#builds", "two")
            assert "> one" in await call(client, "relay_inbox", peek=True)
            taken = await call(client, "relay_inbox")
            assert taken.index("> one") < taken.index("> two")
            assert await call(client, "relay_inbox") == "Nothing waits for Script."
            await boss.join("#builds")
            await boss.set_topic_line("#builds", "What CI says")
            assert "#builds, 2 members: What CI says" in await call(client, "relay_agents")
            assert "not in #builds" in await call(client, "relay_join", channel="builds", leave=True)
            assert "#builds, 1 member: What CI says" in await call(client, "relay_agents")
            assert await receipt.delivered(DEADLINE_S)
            await call(client, "relay_send", to="Boss", text="done")
            assert (await boss.receive(DEADLINE_S)).from_ == "Script"

    asyncio.run(scene())


def test_votes_and_results_are_handed_in(daemon: DaemonProcess) -> None:
    async def scene() -> None:
        async with connected(daemon, AGENT_RELAY_NAME="Worker") as client, daemon.connect("Chief") as chief:
            await call(client, "relay_join", channel="#work")  # the name is known from here on
            proposal = await chief.propose("Use SQLite", ["Worker"])
            said = await call(client, "relay_vote", proposal=proposal.info.proposal_id, choice="approve", reason="simple")
            assert "Your vote counts: approve" in said
            assert "It is approved" in said
            assert (await proposal.outcome()).value == "approved"
            assert "must be approve" in await refused(client, "relay_vote", proposal="prop_x", choice="maybe")

            task = await chief.ask("Worker", "count the files", 60, thread="task-1")
            assert "task-1" in await call(client, "relay_result", task="task-1", value={"files": 3})
            reply = await chief.answer_to(task, DEADLINE_S)
            assert json.loads(reply.body) == {"files": 3}
            assert "first one counts" in await refused(client, "relay_result", task="task-1", value="another")
            assert "no task" in await refused(client, "relay_result", task="task-2", error="lost")
            assert "either" in await refused(client, "relay_result", task="task-1")

    asyncio.run(scene())


def test_hostile_arguments_are_refused_with_a_reason(daemon: DaemonProcess) -> None:
    async def scene() -> None:
        async with connected(daemon) as client, daemon.connect("Target") as target:
            for to in ("../../etc/passwd", "Bob\x1b[2J", "-rf", "a b", "\0", "x" * 100_000):
                said = await refused(client, "relay_send", to=to, text="x")
                assert said.isprintable(), said
                assert len(said) < 1_000
            assert "cannot be an agent's name" in await refused(client, "relay_spawn", name="a/b", cli="claude")
            assert "may not be started" in await refused(client, "relay_spawn", name="Fine", cli="/bin/sh -c id")
            assert "not a channel" in await refused(client, "relay_join", channel="a/../b")
            assert "There is no argument" in await refused(client, "relay_send", to="Target", text="x", **{"from": "Eve"})
            assert "must be text" in await refused(client, "relay_send", to="Target", text={"a": [1]})
            assert "file" in await refused(client, "relay_send", to="Target", text="x" * 3_000_000)
            assert "There is no tool" in await refused(client, "relay_destroy")
            await call(client, "relay_send", to="Target", text="still here \u202e ✓")
            assert (await target.receive(DEADLINE_S)).body == "still here \u202e ✓"

    asyncio.run(scene())


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")  # most clients still do it
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_subscribers_hear_of_new_messages(daemon: DaemonProcess, mode: str) -> None:
    async def scene() -> None:
        heard: asyncio.Queue[str] = asyncio.Queue()

        async def note(message: Any) -> None:
            uri = getattr(getattr(message, "params", None), "uri", None) or getattr(message, "uri", None)
            if uri is not None:
                heard.put_nowait(str(uri))

        async with connected(daemon, mode, message_handler=note) as client, daemon.connect(f"Herald-{mode}") as herald:
            listed = [str(each.uri) for each in (await client.list_resources()).resources]
            assert "relay://inbox" in listed
            if mode == "legacy":
                for uri in ("relay://inbox", "relay://thread/news"):
                    await client.subscribe_resource(uri)
                await herald.send(ME, "extra", thread="news")
                assert {await heard.get(), await heard.get()} == {"relay://inbox", "relay://thread/news"}
            else:
                async with client.listen(resource_subscriptions=["relay://thread/news"]) as events:
                    await herald.send(ME, "extra", thread="news")
                    event = await anext(aiter(events))
                    assert str(getattr(event, "uri", "")) == "relay://thread/news"
            found = await client.read_resource("relay://thread/news")
            assert "> extra" in str(getattr(found.contents[0], "text", ""))

    asyncio.run(scene())


def test_a_daemon_that_is_down_or_restarts(start_relay_daemon: Callable[..., DaemonProcess]) -> None:
    daemon = start_relay_daemon()

    async def scene() -> None:
        async with connected(daemon) as client:
            async with daemon.connect("Early") as early:
                asked = asyncio.create_task(call(client, "relay_ask", to="Early", text="there?", seconds=100))
                question = await early.receive(DEADLINE_S)
                daemon.kill()
                await asyncio.to_thread(daemon.start)
                await question.reply("there again")
                assert "there again" in await asked
            daemon.kill()
            assert "agent-relay up" in await refused(client, "relay_send", to="Early", text="x")
            assert "agent-relay up" in await refused(client, "relay_agents")
            daemon.start()
            assert "1 of them offline" in await call(client, "relay_send", to="Early", text="x")

    asyncio.run(scene())


# --- the process ------------------------------------------------------------------------------------------------------------

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Process:
    """The server as a client of no library sees it: lines."""

    def __init__(self, daemon: DaemonProcess) -> None:
        found = make_parameters(daemon)
        self.process = subprocess.Popen(
            [found.command, *found.args], env=found.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def say(self, *messages: Any) -> None:
        assert self.process.stdin is not None
        for message in messages:
            raw = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(raw + b"\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def begin(self) -> None:
        self.say(HELLO, READY)
        assert self.hear()["result"]["serverInfo"]["name"] == "agent-relay"

    def close(self) -> None:
        self.process.kill()
        with self.process:
            pass  # its pipes are closed


@pytest.fixture
def process(daemon: DaemonProcess) -> Iterator[Process]:
    found = Process(daemon)
    yield found
    found.close()


def ask_forever() -> dict[str, Any]:
    arguments = {"to": "Mute", "text": "?", "seconds": 600}
    return {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "relay_ask", "arguments": arguments}}


def test_it_ends_with_its_input_though_a_question_is_open(daemon: DaemonProcess, process: Process) -> None:
    with daemon.connect_sync("Mute") as mute:
        process.begin()
        process.say(ask_forever())
        mute.receive(DEADLINE_S)
        assert process.process.stdin is not None
        process.process.stdin.close()
        assert process.process.wait(DEADLINE_S / 4) == 0


def test_ctrl_c_ends_it_though_a_question_is_open(daemon: DaemonProcess, process: Process) -> None:
    with daemon.connect_sync("Mute") as mute:
        process.begin()
        process.say(ask_forever())
        mute.receive(DEADLINE_S)
        process.process.send_signal(signal.SIGINT)
        assert process.process.wait(DEADLINE_S / 4) == 130


def test_lines_that_are_no_messages_are_refused_and_the_next_is_read(process: Process) -> None:
    process.begin()
    for line in (b"{", b"\xff\xfe", b"[]", b'{"jsonrpc":"2.0"}', b'"' + b"x" * 9_000_000 + b'"'):
        process.say(line)
        assert process.hear()["error"]["code"] == -32700
    lone = (
        b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"relay_send","arguments":{"to":"A","text":"\\ud800"}}}'
    )
    process.say(lone)
    answer = process.hear()
    assert "error" in answer or answer["result"]["isError"]
    process.say({"jsonrpc": "2.0", "id": 4, "method": "tools/list"})
    assert len(process.hear()["result"]["tools"]) == len(TOOLS)


# --- inside a wrapped agent ----------------------------------------------------------------------------------------------------


@pytest.mark.terminals
def test_inside_a_wrapped_agent_the_tools_speak_as_it(folder: Path) -> None:
    stage = Stage(folder)
    try:
        agent = stage.start("Alice", "pty")

        async def scene() -> None:
            daemon = stage.daemon
            shell = {**agent.shell, "AGENT_RELAY_SOCKET": daemon.socket}
            async with connected(daemon, **shell) as client, daemon.connect("Bob") as bob:
                assert "You are Alice" in await call(client, "relay_status")
                await call(client, "relay_send", to="Bob", text="from the tool", thread="t")
                message = await bob.receive(DEADLINE_S)
                assert (message.from_, message.body, message.thread) == ("Alice", "from the tool", "t")
                await message.ack()

                asked = asyncio.create_task(call(client, "relay_ask", to="Bob", text="ready?", seconds=60))
                await (await bob.receive(DEADLINE_S)).reply("yes, Alice")
                assert await asked == "Bob answered:\n> yes, Alice"

                receipt = await bob.send("Alice", "typed once")
                assert await receipt.delivered(DEADLINE_S)  # by the wrapper: the tool has taken nothing from it
                shown = await call(client, "relay_inbox")
                assert "> typed once" in shown
                assert "You were given these already." in shown
                await call(client, "relay_reply", id=receipt.message_id, text="got it")
                reply = await bob.receive(DEADLINE_S)
                assert (reply.body, reply.reply_to) == ("got it", receipt.message_id)
                assert "mention you" in await call(client, "relay_join", channel="#dev", at_leisure=True)
                listed = next(each for each in (await bob.agents()).agents if each.name == "Alice")
                assert ("#dev" in listed.channels, listed.at_leisure) == (True, ("#dev",))
                assert "not in #dev" in await call(client, "relay_join", channel="#dev", leave=True)
                listed = next(each for each in (await bob.agents()).agents if each.name == "Alice")
                assert "#dev" not in listed.channels
                proposal = await bob.propose("Use SQLite", ["Alice"])
                said = await call(client, "relay_vote", proposal=proposal.info.proposal_id, choice="reject")
                assert "It is rejected" in said
                task = await bob.ask("Alice", "count", 60, thread="task-1")
                await call(client, "relay_result", task="task-1", error="There is nothing to count.")
                assert (await bob.answer_to(task, DEADLINE_S)).data == {"task": "task-1", "error": "There is nothing to count."}
                assert "No agent Bbo" in await refused(client, "relay_send", to="Bbo", text="x")
            assert agent.typed.count(b"typed once") == 1

            stolen = {**shell, "AGENT_RELAY_TOKEN": "0" * 64}
            async with connected(daemon, **stolen) as client:
                assert "another run" in await refused(client, "relay_send", to="Bob", text="x")

        asyncio.run(scene())
    finally:
        stage.close()


# A client that keeps everything from the server that it does not need, as some do.
_CLIENT = """
import json, os, subprocess, sys
kept = {name: os.environ[name] for name in ("PATH", "HOME")}
words = [sys.executable, "-P", "-m", "agent_relay", "mcp"]
with subprocess.Popen(words, env=kept, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
    for line in json.loads(sys.argv[1]):
        server.stdin.write(json.dumps(line) + chr(10))
        server.stdin.flush()
    print(server.stdout.readline(), server.stdout.readline())
    server.stdin.close()
"""


@pytest.mark.terminals
def test_a_server_that_was_told_nothing_of_the_wrapper_speaks_as_its_agent_too(folder: Path) -> None:
    stage = Stage(folder)
    try:
        alice = Inside(stage, "Alice", "pty")
        send = {"name": "relay_send", "arguments": {"to": "Bob", "text": "from below"}}
        lines = [HELLO, READY, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": send}]
        with stage.daemon.connect_sync("Bob") as bob:
            said = alice.python(_CLIENT, json.dumps(lines))
            assert "for 1 recipient" in said.text, said
            message = bob.receive(DEADLINE_S)
            assert (message.from_, message.body) == ("Alice", "from below")
            message.ack()
    finally:
        stage.close()


@pytest.mark.terminals
def test_an_agent_is_started_and_stopped(folder: Path) -> None:
    stage = Stage(folder, f"--spawn-allow={folder / 'Helper.sh'}")
    try:
        program = stage.play("Helper")[0]

        async def scene() -> None:
            async with connected(stage.daemon, cwd=stage.project) as client:
                started = await call(client, "relay_spawn", name="Helper", cli=program, task="look around")
                assert started == "Helper runs and can be written to."
                assert "Helper" in await call(client, "relay_agents")
                assert "> look around" in await call(client, "relay_history", **{"with": "Helper"})
                assert await call(client, "relay_release", name="Helper") == "Helper is stopped."

        asyncio.run(scene())
    finally:
        stage.close()
