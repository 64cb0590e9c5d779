"""A daemon, real CLIs wrapped in tmux by the real command, and their models.

lab.start("claude", "Bob", [Turn(when="hello", say="->relay:Carol hi")])   # returns when it is idle and introduced
lab.send("Bob", "hello")                                                    # `agent-relay send`
with lab.client("Carol") as carol: carol.receive(timeout=60).body           # a real client
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from agent_relay.sdk.sync import SyncRelayClient
from agent_relay.terminal.backends.tmux_program import find_tmux
from agent_relay.terminal.backends.tmux_server import TmuxServer
from agent_relay.testing.daemon import DaemonProcess
from scripts.real_clis import is_installed, read_manifest
from tests.real_clis.clis import RealCli, environment_of
from tests.real_clis.model.script import Script, Turn
from tests.real_clis.model.server import ModelServer
from tests.real_clis.more_clis import ALL_CLIS

DEADLINE_S = 240.0  # a start on a machine that does much else; what goes well takes seconds
STOP_S = 20.0
_POLL_S = 0.05
_INHERITED = ("PATH", "PYTHONPATH", "LANG")
_MESSAGE = re.compile(r"Relay message from \w+ \[[0-9a-f]{8}\]: (.*)")
_T = TypeVar("_T")


def until(condition: Callable[[], _T], what: str, about: Callable[[], str] = str, deadline_s: float = DEADLINE_S) -> _T:
    """What the condition gives, once it gives something; `about` says more when it never does."""
    deadline = time.monotonic() + deadline_s
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(_POLL_S)
    raise AssertionError(f"It did not happen: {what}.\n{about()}")


class Agent:
    """One wrapped CLI. `model` is what it speaks to."""

    def __init__(
        self, name: str, cli: RealCli, model: ModelServer, process: subprocess.Popen[str], environ: Mapping[str, str],
        state_dir: Path,
    ) -> None:  # fmt: skip
        self.name, self.cli, self.model = name, cli, model
        self.process, self.environ = process, environ
        self.team = state_dir / "team" / name
        self._tmux = TmuxServer(find_tmux(), str(state_dir / "tmux.sock")).base

    def until(self, condition: Callable[[], _T], what: str, deadline_s: float = DEADLINE_S) -> _T:
        return until(condition, f"{self.name} ({self.cli.name}): {what}", self.describe, deadline_s)

    def describe(self) -> str:
        """For the report of a failure."""
        given = "\n".join(f"- {text[-300:]!r}" for text in self.model.given[-6:])
        return f"--- screen\n{self.screen}\n--- log\n{self.log[-3000:]}\n--- the model was given\n{given}\n{self.model.unknown}"

    # --- what is to be seen ----------------------------------------------------------------------------------------------

    @property
    def screen(self) -> str:
        return self._run("capture-pane", "-p", "-t", f"={self.name}:").rstrip()

    @property
    def log(self) -> str:
        return _read(self.team / "wrapper.log")

    @property
    def inbox(self) -> str:
        return _read(self.team / "inbox.md")

    @property
    def is_asking(self) -> bool:
        return self.cli.dialog in self.screen

    @property
    def dialog(self) -> str:
        """The rows of the open dialog."""
        screen = self.screen
        return screen[screen.find(self.cli.dialog) :]

    @property
    def is_idle(self) -> bool:
        """As the wrapper sees it."""
        states = re.findall(r"state: (\w+)", self.log)
        return bool(states) and states[-1] == "idle"

    @property
    def program_pid(self) -> int:
        return int(self._run("list-panes", "-t", f"={self.name}:", "-F", "#{pane_pid}"))

    def told(self) -> list[str]:
        """The first lines of the messages the model was given as ours, in order, each as often as it was given."""
        return _MESSAGE.findall("\n".join(self.model.given) + "\n")

    def times_told(self, body: str) -> int:
        return self.told().count(body)

    # --- its model -------------------------------------------------------------------------------------------------------

    def play(self, *turns: Turn) -> None:
        """Another script from now on. What the old one is dripping goes on."""
        self.model.script = Script(turns)

    # --- what a person does ----------------------------------------------------------------------------------------------

    def press(self, *keys: str) -> None:
        """tmux's names: Enter, BSpace, y."""
        self._run("send-keys", "-t", f"={self.name}:", *keys)

    def type(self, text: str) -> None:
        self._run("send-keys", "-t", f"={self.name}:", "-l", "--", text)

    def approve(self) -> None:
        """Permits what the open dialog asks for."""
        self.press(*self.cli.approve)

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=False, timeout=STOP_S)
        return done.stdout


class Lab:
    """`releases`: by CLI, another version than that of the manifest, in the folder of that name below `installed`."""

    def __init__(self, installed: Path, releases: Mapping[str, str] | None = None) -> None:
        self.installed = installed
        self._releases = releases or {}
        self.folder = Path(tempfile.mkdtemp(prefix="relay-rc-"))
        self.project = self.folder / "project"
        (self.project / "build").mkdir(parents=True)
        (self.project / "build" / "out.o").write_text("made")
        self.agents: list[Agent] = []
        self.daemon = DaemonProcess().start()

    # --- agents ----------------------------------------------------------------------------------------------------------

    def start(
        self, cli_name: str, name: str, turns: Sequence[Turn] = (), *options: str, doors: bool = False, flags: Sequence[str] = (),
        tools: bool = False,
    ) -> Agent:  # fmt: skip
        """Returns when the CLI is up: has read its introduction or, with `doors`, has one open. `flags` are the CLI's own. With
        `tools` it is set up by `agent-relay init` first."""
        agent = self.begin(cli_name, name, turns, *options, doors=doors, flags=flags, tools=tools)
        process = agent.process

        def is_up() -> bool:
            return " is open (" in agent.log if doors else bool(agent.model.answered)

        agent.until(lambda: is_up() or process.poll() is not None, "a door is open" if doors else "it is introduced")
        if process.poll() is not None:
            raise AssertionError(f"{name} ({cli_name}) ended: {process.communicate()[1]}")
        return agent

    def begin(
        self, cli_name: str, name: str, turns: Sequence[Turn] = (), *options: str, doors: bool = False, flags: Sequence[str] = (),
        tools: bool = False,
    ) -> Agent:  # fmt: skip
        """The same, without waiting for anything."""
        cli, model = ALL_CLIS[cli_name], ModelServer(turns)
        home = self.folder / f"home-{name}"
        environment = environment_of(home)
        launch = cli.prepare(home, self.project, model.url)
        environ = {**self._environ(cli_name), **environment, **launch.environment}
        if doors and cli.admit is not None:
            cli.admit(home, environ)
        if tools:
            self._give_tools(cli_name, home, environ)
        how = ["--backend", "tmux", *([] if doors else ["--no-doors"])]
        words = ["-n", name, *how, *options, *self._where, *launch.argv, *flags]
        model.__enter__()
        process = self._wrap([sys.executable, "-m", "agent_relay", *words], environ)
        agent = Agent(name, cli, model, process, environ, self.daemon.state_dir)
        self.agents.append(agent)
        return agent

    def _give_tools(self, cli_name: str, home: Path, environ: dict[str, str]) -> None:
        """By the command; and what a person says once to claude, that it may use the servers of the project."""
        done = subprocess.run(
            [sys.executable, "-m", "agent_relay", "init", cli_name, "--yes"], cwd=self.project, env=environ,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        if cli_name == "claude":
            seen = json.loads((home / ".claude.json").read_text("utf-8"))
            seen["projects"][str(self.project)]["enabledMcpjsonServers"] = ["agent-relay"]
            (home / ".claude.json").write_text(json.dumps(seen), "utf-8")
            environ["ENABLE_TOOL_SEARCH"] = "false"  # a real model looks for a tool first; the scripted one knows it

    def wrap_again(self, agent: Agent) -> None:
        """The same command once more; returns when a door is open. The wrapper before is killed if it still runs."""
        opened = agent.log.count(" is open (")
        agent.process.kill()
        agent.process.communicate()
        assert isinstance(agent.process.args, list)
        agent.process = self._wrap(agent.process.args, agent.environ)
        agent.until(lambda: agent.log.count(" is open (") > opened, "a door is open again")

    def _wrap(self, words: Sequence[str], environ: Mapping[str, str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            words, cwd=self.project, env=environ, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def _environ(self, cli_name: str) -> dict[str, str]:
        cli, installed = read_manifest()[cli_name], self.installed
        if release := self._releases.get(cli_name):
            cli, installed = cli._replace(version=release), installed / release
        if not is_installed(cli, installed):
            raise AssertionError(f"{cli_name} {cli.version} is not in {installed}: `make test-real-clis` installs it.")
        path = f"{cli.programs(installed)}{os.pathsep}{os.environ['PATH']}"
        return {**self._own_environ, "PATH": path, "TERM": "xterm-256color"}

    @property
    def _own_environ(self) -> dict[str, str]:
        """Nothing of the person's, least of all their keys."""
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        return {**inherited, "HOME": str(self.folder), "AGENT_RELAY_HOME": str(self.folder / "relay")}

    @property
    def _where(self) -> list[str]:
        return ["--socket", self.daemon.socket, "--state-dir", str(self.daemon.state_dir)]

    # --- the other end ---------------------------------------------------------------------------------------------------

    def send(self, to: str, text: str, sender: str = "Dave") -> str:
        """By the command; returns the id."""
        done = self.command("send", to, text, "--from", sender, "--json")
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout)["message_id"])

    def explain(self, message_id: str) -> dict[str, dict[str, Any]]:
        """The steps that the command tells, by their names."""
        return _by_name(json.loads(self.command("explain", message_id, "--json").stdout)["trail"])

    def trail(self, message_id: str) -> dict[str, dict[str, Any]]:
        """The same, asked for without starting a process."""

        async def ask() -> list[dict[str, Any]]:
            async with self.daemon.connect(observer=True) as relay:
                return (await relay.message(message_id)).trail

        return _by_name(asyncio.run(ask()))

    def evidence(self, message_id: str) -> str:
        """By what the agent is known to have read it; else by what it was seen to be taken."""
        found = {name: str(step.get("evidence") or "") for name, step in self.explain(message_id).items()}
        return found.get("read") or found.get("injected") or ""

    def command(self, *words: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "agent_relay", *words, *self._where], cwd=self.project,
            env={**self._own_environ, **(environ or {})}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip

    def client(self, name: str) -> SyncRelayClient:
        return self.daemon.connect_sync(name)

    def wait_until_settled(self, agent: Agent, count: int) -> None:
        """So many messages were sent to it, and the daemon owes it none of them."""

        async def ask() -> tuple[int, int]:
            async with self.daemon.connect(observer=True) as relay:
                page = await relay.history(to=agent.name, limit=500)
                mine = (await relay.agents()).find(agent.name)
                assert mine is not None
                return len(page.messages), mine.queue_depth + mine.inflight

        agent.until(lambda: asyncio.run(ask()) == (count, 0), f"it has acknowledged {count}")

    def close(self) -> None:
        for agent in self.agents:
            agent.model.script.release()
            if agent.process.poll() is None:
                agent.process.send_signal(signal.SIGTERM)
        for agent in self.agents:
            with contextlib.suppress(subprocess.TimeoutExpired):
                agent.process.communicate(timeout=STOP_S)
            agent.process.kill()
            agent.process.communicate()
            agent.model.close()
        socket = self.daemon.state_dir / "tmux.sock"
        if socket.exists():
            subprocess.run([*TmuxServer(find_tmux(), str(socket)).base, "kill-server"], capture_output=True, check=False)
        self.daemon.remove()
        shutil.rmtree(self.folder, ignore_errors=True)


def receive(client: SyncRelayClient, agent: Agent) -> str:
    """The next message to the client, which the agent is to write."""
    try:
        return client.receive(timeout=DEADLINE_S).body
    except TimeoutError:
        raise AssertionError(f"Nothing came from {agent.name}.\n{agent.describe()}") from None


def _by_name(trail: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {str(step["event"]): step for step in trail}


def _read(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.exists() else ""
