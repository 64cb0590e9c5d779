"""A daemon with a lively scene on it, to look at the dashboard with: agents that talk, ask, work and spend, until Ctrl-C.

    python scripts/dashboard_scene.py --port 3999
    python scripts/dashboard_scene.py --agents 50 --messages 100000 --quiet
    python scripts/dashboard_scene.py --terminals        # and two programs in real terminals

It prints the dashboard's address. Everything is kept in a folder of its own and removed at the end, unless --directory names one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from agent_relay.cli.project.http_server import find_page_address, wait_for_http_place
from agent_relay.protocol.payloads import ControlPayload
from agent_relay.sdk.client import RelayClient
from agent_relay.testing.daemon import DaemonProcess

SCENE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
EVIDENCE = ("transcript", "composer empty again", "busy marker", "hook answered")
WORDS = tuple(
    "cache token retry schema lint deploy branch review flaky timeout index parser socket queue merge cursor patch".split()  # noqa: SIM905
)
TERMINAL_TURNS = [
    {"when": "permission", "busy_ms": 300, "dialog": {"question": "Do you want to run `make deploy`?"}, "say": ["Done."]},
    {
        "when": ".",
        "busy_ms": 1500,
        "say": ["\x1b[32m✓\x1b[0m compiled 214 modules", "\x1b[33mwarning\x1b[0m: 2 unused imports", "Ready."],
    },
]
ENDLESS_CAPACITY = "--queue-capacity=200000"
BATCH = 500  # of messages in flight while many are sent
PAUSE_S = 1.6


class Scene:
    """Agents on a daemon that is already there."""

    def __init__(self, daemon: DaemonProcess, seed: int = 7) -> None:
        self.daemon = daemon
        self.agents: dict[str, RelayClient] = {}
        self._random = random.Random(seed)
        self._tasks: set[asyncio.Task[None]] = set()
        self._steps = 0

    async def enter(self, about: dict[str, Any]) -> RelayClient:
        client = RelayClient(
            about["name"], socket=self.daemon.socket, cli=about["cli"], control=True, reconnect_attempts=None,
            meta={"cwd": "/srv/shop", "model": about.get("model")},
        )  # fmt: skip
        client.on_control = lambda control: self.obey(about, control)
        await client.connect()
        for channel in about.get("channels", []):
            await client.join(channel)
        self.agents[about["name"]] = client
        self.say_state(about)
        self._keep(asyncio.create_task(self._read(client, about)))
        return client

    def say_state(self, about: dict[str, Any], state: str | None = None) -> None:
        said = {"state": state or about["state"], "waitingFor": about.get("waiting_for") if state is None else None}
        doors = {"door": about.get("door"), "doorNote": about.get("door_note")}
        self.agents[about["name"]].report("agent.state", **{name: value for name, value in (said | doors).items() if value})

    def obey(self, about: dict[str, Any], control: ControlPayload) -> None:
        """As a wrapper does: what was decided is carried out, a pause is told."""
        client = self.agents[about["name"]]
        match control.command:
            case "approve" | "deny":
                resolution = "approved" if control.command == "approve" else "denied"
                client.report("permission.resolved", requestId=control.id, resolution=resolution, resolvedBy="door")
                self.say_state(about, "working")
            case "answer":
                client.report("question.resolved", questionId=control.id, answer=control.text, resolvedBy="door")
                self.say_state(about, "working")
            case "pause" | "resume":
                client.report("agent.state", state="idle", paused=control.command == "pause", door=about.get("door", "typing"))

    async def _read(self, client: RelayClient, about: dict[str, Any]) -> None:
        async for message in client.messages():
            await message.ack(door=about.get("door", "typing"), evidence=self._random.choice(EVIDENCE))
            if self._random.random() < 0.7:
                client.report("message.read", messageId=message.id, evidence="transcript")

    async def tell(self, line: dict[str, Any]) -> None:
        sender = self.agents[line["from"]]
        await sender.send(line["to"], line["body"].strip(), kind=line.get("kind", "message"), thread=line.get("thread"))

    def ask(self) -> None:
        """The permissions and questions of the scene, each under a new id."""
        for number, asked in enumerate(SCENE["permissions"]):
            fields = {name: asked[name] for name in ("tool", "command", "description", "options")}
            self.agents[asked["agent"]].report("permission.requested", requestId=f"per_{number}", isExact=True, **fields)
        for number, asked in enumerate(SCENE["questions"]):
            self.agents[asked["agent"]].report(
                "question.requested", questionId=f"que_{number}", question=asked["question"], options=asked["options"]
            )

    def work(self, about: dict[str, Any]) -> None:
        """One piece of an agent's work, as events: a tool, its output, what it cost."""
        client, draw = self.agents[about["name"]], self._random
        self._steps += 1
        item, now = f"item_{self._steps}", _now_ms()
        duration = draw.randint(80, 9000)
        client.report(
            "item.started",
            itemId=item,
            itemType=draw.choice(["tool_call", "thinking", "message", "test_run"]),
            startedAt=now - duration,
        )
        client.report("item.delta", itemId=item, delta={"type": "text", "content": " ".join(draw.choices(WORDS, k=8))})
        client.report("item.completed", itemId=item, completedAt=now, duration=duration)
        client.report(
            "file.operation",
            operation=draw.choice(["read", "edit", "write"]),
            filePath=f"src/{draw.choice(WORDS)}.py",
            linesChanged=draw.randint(1, 60),
        )
        client.report(
            "command.executed", command=f"pytest tests/{draw.choice(WORDS)}", exitCode=int(draw.random() < 0.2), duration=duration
        )
        client.report(
            "tokens.used",
            model=about["model"],
            inputTokens=draw.randint(2_000, 60_000),
            outputTokens=draw.randint(200, 6_000),
            cacheReadTokens=draw.randint(0, 90_000),
        )

    async def chat(self) -> None:
        """Goes on for ever: small talk, work and changing states."""
        members = [about for about in SCENE["agents"] if about["name"] in self.agents and about["state"] != "offline"]
        while True:
            await asyncio.sleep(PAUSE_S)
            one, other = self._random.sample(members, 2)
            await self.tell({"from": one["name"], "to": other["name"], "body": self.sentence()})
            self.work(one)
            if one["state"] in {"idle", "working"}:
                self.say_state(one, self._random.choice(["idle", "working", "working"]))

    def sentence(self) -> str:
        one, other = self._random.sample(WORDS, 2)
        return str(self._random.choice(SCENE["small_talk"])).format(one=one, other=other)

    async def flood(self, count: int) -> None:
        """Many messages, as fast as the daemon takes them."""
        names = list(self.agents)
        threads = [None, None, None, *(f"task-{number}" for number in range(40))]
        for start in range(0, count, BATCH):
            size = min(BATCH, count - start)
            pairs = [self._random.sample(names, 2) for _ in range(size)]
            sends = [
                self.agents[one].send(other, self.sentence(), retry_for=60, thread=self._random.choice(threads))
                for one, other in pairs
            ]
            await asyncio.gather(*sends)

    async def leave(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(client.close() for client in self.agents.values()))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _now_ms() -> int:
    return int(time.time() * 1000)


@asynccontextmanager
async def open_scene(daemon: DaemonProcess, *, agents: int = 0, messages: int = 0, asks: bool = True) -> AsyncIterator[Scene]:
    """The scene of the file, with as many further agents and messages as wanted. `asks`: some of them wait for a person."""
    scene = Scene(daemon)
    extra = [
        {"name": f"worker-{number:02}", "cli": "codex", "model": "gpt-5.4-mini", "state": "idle"}
        for number in range(1, agents - len(SCENE["agents"]) + 1)
    ]
    try:
        for about in [*SCENE["agents"], *extra]:
            await scene.enter(about)
        gone = next(about["name"] for about in SCENE["agents"] if about["state"] == "offline")
        await scene.agents.pop(gone).close()
        await scene.agents["Lead"].send(gone, "Are you there? This cannot wait.", ttl_ms=1)
        await scene.flood(messages)
        for about in SCENE["agents"]:
            if about["name"] in scene.agents:
                for _ in range(6):
                    scene.work(about)
        for line in SCENE["talk"]:
            await scene.tell(line)
            await asyncio.sleep(0.03)
        if asks:
            scene.ask()
        yield scene
    finally:
        await scene.leave()


@asynccontextmanager
async def open_terminals(daemon: DaemonProcess) -> AsyncIterator[None]:
    """Two programs in real terminals, which tmux holds."""
    environ = os.environ | {"AGENT_RELAY_HOME": str(daemon.directory / "home")}
    where = ["--socket", daemon.socket, "--state-dir", str(daemon.state_dir)]
    relay = [sys.executable, "-m", "agent_relay"]
    names = ("Term-1", "Term-2")
    for name, look in zip(names, ("plain", "codex"), strict=True):
        script = daemon.directory / f"{name}.json"
        script.write_text(json.dumps({"look": look, "turns": TERMINAL_TURNS}))
        program = [sys.executable, "-m", "agent_relay.cli.demo.scripted_agent", "--script", str(script)]
        await _run([*relay, "wrap", "-n", name, "--detach", "--no-intro", *where, *program], environ)
    try:
        yield
    finally:
        for name in names:
            try:
                await _stop([*relay, "stop", *where, name], environ)
            except TimeoutError:
                raise AssertionError(f"{name} cannot be stopped.\n{_last_words(daemon, name)}") from None


async def _stop(command: list[str], environ: dict[str, str]) -> None:
    """Tried for a while: on a busy machine an agent may have lost its connection, and comes back."""
    async with asyncio.timeout(60):
        while True:
            try:
                await _run(command, environ)
            except subprocess.CalledProcessError:
                await asyncio.sleep(0.5)
            else:
                return


def _last_words(daemon: DaemonProcess, name: str) -> str:
    """Of the agent's wrapper, and of the daemon about it."""
    own = [path.read_text(errors="replace")[-4_000:] for path in daemon.state_dir.rglob("wrapper.log") if name in str(path)]
    about = [line for line in (daemon.state_dir / "daemon.log").read_text(errors="replace").splitlines() if f'"{name}"' in line]
    return "\n".join([*own, *about[-40:]])


async def _run(command: list[str], environ: dict[str, str]) -> None:
    await asyncio.to_thread(subprocess.run, command, env=environ, check=True, stdin=subprocess.DEVNULL)


async def play(options: argparse.Namespace) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    flags = [ENDLESS_CAPACITY] if options.messages else []
    daemon = DaemonProcess(f"--port={options.port}", *flags, directory=options.directory)
    if options.token:
        daemon.environ["AGENT_RELAY_API_TOKEN"] = options.token
    with daemon:
        async with AsyncExitStack() as stack:
            scene = await stack.enter_async_context(open_scene(daemon, agents=options.agents, messages=options.messages))
            if options.terminals:
                await stack.enter_async_context(open_terminals(daemon))
            daemon.wait_for_url()
            http = wait_for_http_place(str(daemon.state_dir))
            assert http is not None
            sys.stdout.write(f"{find_page_address(str(daemon.state_dir), http)}\n")
            sys.stdout.write(f"another code, after a minute: agent-relay open --state-dir {daemon.state_dir}\n")
            sys.stdout.flush()
            chatting = asyncio.create_task(ended.wait() if options.quiet else scene.chat())
            await asyncio.wait({chatting, asyncio.ensure_future(ended.wait())}, return_when=asyncio.FIRST_COMPLETED)
            chatting.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description="A daemon with a lively scene on it, to look at the dashboard with.")
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    parser.add_argument("--directory", help="where everything is kept; a temporary one by default")
    parser.add_argument("--agents", type=int, default=0, help="at least so many")
    parser.add_argument("--messages", type=int, default=0, help="so many before the scene begins")
    parser.add_argument("--terminals", action="store_true", help="two programs in real terminals as well")
    parser.add_argument("--token", help="the API token the daemon asks for")
    parser.add_argument("--quiet", action="store_true", help="nothing more happens once it is set up")
    asyncio.run(play(parser.parse_args()))


if __name__ == "__main__":
    main()
