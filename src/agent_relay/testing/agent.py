"""A scripted agent under the relay: a program in a terminal of its own, wrapped as `agent-relay wrap` wraps an AI coding CLI.

    bob = AgentProcess.start(daemon, "Bob", turns=[{"when": "ready", "say": ["->relay:Alice quite ready"]}])
    bob.wait_for("submitted")
    bob.messages        # what the relay put before it
    bob.stop()

The script is that of `agent_relay.cli.demo.agent_script`. Only the process started here is ever signalled.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from agent_relay.cli.demo.agent_script import Script
from agent_relay.interpreter import run_module
from agent_relay.protocol.places import ENV_HOME, ENV_PREFIX
from agent_relay.testing.daemon import DaemonProcess

DEADLINE_S = 60.0  # a loaded machine takes many times what an idle one does
STOP_DEADLINE_S = 20.0
_POLL_S = 0.02
_OF_THE_TERMINAL = (ENV_PREFIX, "TMUX", "COLUMNS", "LINES")  # variables that would tell it of the terminal the tests run in
_MESSAGE = "Relay message from "


class AgentProcess:
    """A wrapper process and the record of the scripted agent in it."""

    def __init__(self, name: str, process: subprocess.Popen[str], record: Path) -> None:
        self.name = name
        self.process = process
        self.record = record
        self._events: list[dict[str, Any]] = []
        self._read_bytes = 0

    @classmethod
    def start(cls, daemon: DaemonProcess, name: str, *options: str, **script: Any) -> AgentProcess:
        """Returns when the program runs. `options` are those of `agent-relay wrap`; `script` has fields of the script."""
        folder = daemon.directory / "agents"
        folder.mkdir(exist_ok=True)
        words = run_module(
            "agent_relay", "wrap", "--name", name, "--backend=pty", "--no-intro", "--socket", daemon.socket,
            "--state-dir", str(daemon.state_dir), *options, "--", str(write_program(folder, name, **script)),
        )  # fmt: skip
        environ = {key: value for key, value in os.environ.items() if not key.startswith(_OF_THE_TERMINAL)}
        environ |= {"HOME": str(daemon.directory), ENV_HOME: str(daemon.directory / "home"), "TERM": "xterm-256color"}
        process = subprocess.Popen(
            words, cwd=folder, env=environ, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        agent = cls(name, process, folder / f"{name}.jsonl")
        try:
            agent.wait_for("started")
        except BaseException:
            agent.stop()
            raise
        return agent

    def __enter__(self) -> AgentProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        """The record so far. Only what is new is read: tests ask again and again, and there is a line for every byte."""
        if self.record.exists():
            with self.record.open("rb") as file:
                file.seek(self._read_bytes)
                whole, newline, _ = file.read().rpartition(b"\n")  # what follows is still being written
            self._read_bytes += len(whole + newline)
            self._events += [json.loads(line) for line in whole.splitlines()]
        return [event for event in self._events if not kind or event["event"] == kind]

    def wait_for(self, kind: str, count: int = 1) -> list[dict[str, Any]]:
        """The events of this kind, once there are so many; raises AssertionError where that does not happen."""
        deadline = time.monotonic() + DEADLINE_S
        while len(found := self.events(kind)) < count:
            if self.process.poll() is not None:
                raise AssertionError(f"{self.name} exited with {self.process.returncode}: {self.process.communicate()}")
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"{self.name} has {len(found)} of {count} events {kind!r}; the last are {self.events()[-5:]}"
                )
            time.sleep(_POLL_S)
        return found

    @property
    def submitted(self) -> list[str]:
        """Everything that was entered at its prompt, in order."""
        return [event["text"] for event in self.events("submitted")]

    @property
    def messages(self) -> list[str]:
        """The bodies of messages that the relay put before it, in order."""
        return [text.partition("]: ")[2] for text in self.submitted if text.startswith(_MESSAGE)]

    def stop(self) -> None:
        """Ends the wrapper, and with it the program."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.communicate(timeout=STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()


def write_program(folder: Path, name: str, **script: Any) -> Path:
    """A file that plays this script when it is run. Whatever arguments a wrapper adds for a real CLI, it ignores."""
    msgspec.convert(script, Script)  # a mistake is named here, and not on a screen that nobody sees
    played, program = folder / f"{name}.json", folder / f"{name}.sh"
    played.write_text(json.dumps(script))
    record = str(folder / f"{name}.jsonl")
    words = run_module("agent_relay.cli.demo.scripted_agent", "--script", str(played), "--record", record)
    program.write_text(f"#!/bin/sh\nexec {shlex.join(words)}\n")
    program.chmod(0o755)
    return program
