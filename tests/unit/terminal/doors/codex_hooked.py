"""Codex's end of its hooks, as recorded of 0.166.0: it runs the hooks it was started with, and keeps a session file.

The records are those of the real program, without the fields nobody reads.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tomllib
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agent_relay.terminal.doors.codex.launch import CodexLauncher
from agent_relay.terminal.doors.door import Door
from agent_relay.terminal.doors.launch import AgentPlace, PreparedStart, Program
from tests.unit.terminal.doors.heard import Heard, play_on

# As the real program wrote it into its settings when a person chose "Trust all and continue".
TRUST = """
[hooks.state]

[hooks.state."/<session-flags>/config.toml:permission_request:0:0"]
trusted_hash = "sha256:491a0cdde827fcf2594f37d5bd795271dcb93c20b5bc8781fc26a78ed7300f8d"

[hooks.state."/<session-flags>/config.toml:user_prompt_submit:0:0"]
trusted_hash = "sha256:c7f6db5bbfa918ebe2cbc8a49e0b7fbcdfedbe7cb6e3c7a3546cd11d325567ba"

[hooks.state."/<session-flags>/config.toml:stop:0:0"]
trusted_hash = "sha256:5e49e85fb62c2206a54790ebf6caff37ad59c28dff40b6d488236b00093fef33"
"""
PROGRAM = f"#!{sys.executable}\nimport sys\nif sys.argv[1:] == ['--version']: print('codex-cli 0.166.0')\n"
PROGRAM += "if sys.argv[1:] == ['queue', '--help']: print('--thread <THREAD> --message <TEXT>')\n"
UNSERVED = "--no-daemon"  # started with it, Codex has no app-server of its own


class HookedCodex:
    """`hooks`: the commands it was started with, by their events."""

    def __init__(self, folder: Path) -> None:
        self.home, self.cwd = folder / "home", folder / "project"
        self.home.mkdir()
        self.cwd.mkdir()
        self.settings.write_text(TRUST)
        self.program = folder / "codex"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)
        self.environment: dict[str, str] = {}
        self.hooks: dict[str, str] = {}
        self.begin()

    @property
    def settings(self) -> Path:
        return self.home / "config.toml"

    def be_started(self, program: Program) -> None:
        self.environment = dict(program.environment)
        given = [word for word in program.argv if word.startswith("hooks.")]
        for event, groups in tomllib.loads("\n".join(given)).get("hooks", {}).items():
            ((hook,),) = (group["hooks"] for group in groups)
            self.hooks[event] = hook["command"]

    # --- its session file ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Another conversation, whose file is there with its first turn."""
        self.thread_id, self.turn_id = str(uuid.uuid4()), ""
        self.path = self.home / "sessions" / "2026" / "11" / "15" / f"rollout-2026-11-15T20-07-45-{self.thread_id}.jsonl"

    def write(self, kind: str, **payload: Any) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps({"timestamp": "2026-11-15T20:07:48.104Z", "type": kind, "payload": payload}) + "\n")

    def complete(self, kind: str, **more: Any) -> None:
        item = {"type": kind, "id": f"msg_{uuid.uuid4()}", **more}
        self.write("event_msg", type="item_completed", thread_id=self.thread_id, turn_id=self.turn_id, item=item)

    # --- its hooks -------------------------------------------------------------------------------------------------------

    async def hook(self, event: str, **given: Any) -> dict[str, Any]:
        """What it prints, as JSON; nothing where there is no such hook."""
        common = {
            "session_id": self.thread_id, "turn_id": self.turn_id, "transcript_path": str(self.path), "cwd": str(self.cwd),
            "hook_event_name": event, "model": "scripted-model", "permission_mode": "default",
        }  # fmt: skip
        output = await self.run_hook(event, json.dumps({**common, **given}).encode())
        return json.loads(output) if output else {}

    async def run_hook(self, event: str, given: bytes) -> bytes:
        if event not in self.hooks:
            return b""
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", self.hooks[event], env={"PATH": os.environ["PATH"], **self.environment},
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, error = await process.communicate(given)
        assert (process.returncode, error) == (0, b"")  # 2 is a refusal, and anything else a warning on the screen
        return output

    # --- what it does ----------------------------------------------------------------------------------------------------

    async def prompt(self, text: str = "go") -> None:
        """A turn begins."""
        self.turn_id = str(uuid.uuid4())
        if not self.path.exists():
            self.write("session_meta", session_id=self.thread_id, id=self.thread_id, cwd=str(self.cwd))
        self.write("event_msg", type="task_started", turn_id=self.turn_id)
        await self.hook("UserPromptSubmit", prompt=text)
        self.complete("UserMessage", client_id=str(uuid.uuid4()), content=[{"type": "text", "text": text}])

    async def end(self) -> str:
        """The turn would end; returns what a hook makes it go on with, of which the agent is then told."""
        output = await self.hook("Stop", stop_hook_active=False, last_assistant_message="Noted.")
        reason = str(output.get("reason", "")) if output.get("decision") == "block" else ""
        if reason:
            self.complete("HookPrompt", fragments=[{"text": reason, "hookRunId": "stop:2:/<session-flags>/config.toml"}])
        else:
            self.write("event_msg", type="task_complete", turn_id=self.turn_id, last_agent_message="Noted.")
        return reason

    def break_off(self) -> None:
        self.write("event_msg", type="turn_aborted", turn_id=self.turn_id, reason="interrupted")

    def call(self, command: str) -> str:
        """The agent calls a tool; returns the call's id."""
        id_ = f"call_{uuid.uuid4().hex[:20]}"
        self.write(
            "response_item", type="function_call", name="exec_command", arguments=json.dumps({"cmd": command}), call_id=id_
        )
        return id_

    async def ask(self, tool: str, command: str, **more: Any) -> None:
        """Its dialog opens after the hook."""
        await self.hook("PermissionRequest", tool_name=tool, tool_input={"command": command}, **more)

    def result(self, call_id: str, output: str) -> None:
        self.write("response_item", type="function_call_output", call_id=call_id, output=output)


class Stage:
    """A program that was prepared, its fake, and a listener."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.place = AgentPlace("Bob", str(folder / "team"), "0123456789ab")
        os.mkdir(self.place.folder, 0o700)
        self.cli = HookedCodex(folder)
        environment = {"CODEX_HOME": str(self.cli.home), "PATH": os.environ["PATH"]}
        program = Program((str(self.cli.program), UNSERVED, *flags), str(self.cli.cwd), environment)
        self.prepared: PreparedStart = CodexLauncher().prepare(program, self.place, "Agent Relay: you are Bob.")
        self.cli.be_started(self.prepared.program)
        self.heard = Heard()
        self.made: list[Door] = []

    def doors(self, heard: Heard | None = None) -> list[Door]:
        """`codex queue` and the stop hook, as a later wrapper would make them too."""
        doors = CodexLauncher().doors(self.prepared.program, self.place, self.prepared.facts, heard or self.heard)
        self.made += doors
        return doors

    async def open(self, heard: Heard | None = None) -> Door:
        """The stop hook."""
        door = self.doors(heard)[-1]
        await door.open()
        return door

    async def close(self) -> None:
        for door in self.made:
            await door.close()


def play(scene: Callable[[Stage], Awaitable[None]], *flags: str) -> Stage:
    return play_on(lambda folder: Stage(folder, *flags), scene)
