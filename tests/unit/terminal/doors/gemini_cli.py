"""The other end of Gemini CLI's hooks, as recorded of version 0.61.0: it runs the extension's hooks, and keeps a session file.

The records are those of the real program, without the fields nobody reads.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent_relay.terminal.doors.door import Door
from agent_relay.terminal.doors.gemini.launch import EXTENSION, GeminiLauncher
from agent_relay.terminal.doors.launch import AgentPlace, PreparedStart, Program
from agent_relay.terminal.profiles.profile import load_profiles
from tests.unit.terminal.doors.heard import Heard, message, play_on, until

__all__ = ["FakeGemini", "Stage", "message", "play"]

INTRODUCTION = "Agent Relay: you are Bob. Write `->relay:Name` to send."


class FakeGemini:
    def __init__(self, folder: Path) -> None:
        self.home, self.cwd = folder / "home", folder / "project"
        self.session_id = str(uuid.uuid4())
        self.environment: dict[str, str] = {}
        self.history: list[dict[str, Any]] = []  # of the conversation
        self.answered: list[str] = []  # what hooks have printed
        self.keeps_file = True
        self._turn_began_at = 0
        self._clock = datetime(2026, 11, 15, 11, 55, tzinfo=UTC)
        self.cwd.mkdir()
        (self.home / ".gemini" / "extensions" / "agent-relay").mkdir(parents=True)

    # --- its session file ------------------------------------------------------------------------------------------------

    @property
    def transcript(self) -> Path:
        name = f"session-2026-11-15T11-55-{self.session_id[:8]}.jsonl"
        return self.home / ".gemini" / "tmp" / "project" / "chats" / name

    def write(self, record: dict[str, Any]) -> None:
        if not self.keeps_file:
            return
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        with self.transcript.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def record(self, type_: str, content: Any, **more: Any) -> dict[str, Any]:
        self._clock += timedelta(seconds=1)
        stamp = self._clock.isoformat().replace("+00:00", "Z")
        record = {"id": str(uuid.uuid4()), "timestamp": stamp, "type": type_, "content": content, **more}
        self.write(record)
        self.write({"$set": {"lastUpdated": stamp}})
        return record

    # --- its hooks -------------------------------------------------------------------------------------------------------

    async def hook(self, event: str, **given: Any) -> dict[str, Any]:
        """Runs them as the program does: every one that fits, in a shell, with JSON on its standard input."""
        outputs: list[str] = []
        for entry in json.loads((EXTENSION / "hooks" / "hooks.json").read_text())["hooks"].get(event, []):
            fits = entry["matcher"] == "*" or re.search(entry["matcher"], str(given.get("tool_name", "")))
            outputs += [await self._run(entry["hooks"][0]["command"], event, given)] if fits else []
        self.answered += [output for output in outputs if output]
        found: dict[str, Any] = json.loads(self.answered[-1]) if any(outputs) else {}
        return found

    async def _run(self, command: str, event: str, given: dict[str, Any]) -> str:
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", command, env={"PATH": os.environ["PATH"], **self.environment},
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        path = str(self.transcript) if self.keeps_file else ""
        common = {"session_id": self.session_id, "transcript_path": path, "cwd": str(self.cwd), "hook_event_name": event}
        output, error = await process.communicate(json.dumps({**common, **given}).encode())
        assert (process.returncode, error) == (0, b"")
        return output.decode()

    # --- what it does ----------------------------------------------------------------------------------------------------

    async def start(self, source: str = "startup") -> None:
        self.write({"sessionId": self.session_id, "projectHash": "0", "startTime": "2026-11-15T11:55:00.000Z", "kind": "main"})
        await self.hook("SessionStart", source=source)

    async def clear(self) -> None:
        await self.hook("SessionEnd", reason="clear")
        self.session_id, self.history = str(uuid.uuid4()), []
        await self.start("clear")

    async def prompt(self, text: str) -> str:
        """A turn begins; returns what a hook has added to the prompt, as the agent sees it."""
        added = _added(await self.hook("BeforeAgent", prompt=text))
        self._turn_began_at = len(self.history)
        self._give(text, added)
        return added

    def _give(self, text: str, added: str = "") -> None:
        parts = [{"text": text}, *([{"text": f"<hook_context>{added}</hook_context>"}] if added else [])]
        self.history.append(self.record("user", parts))

    def say(self, text: str = "Noted.") -> dict[str, Any]:
        record = self.record("gemini", text, thoughts=[], tokens={"input": 1200, "output": 60}, model="gemini-3.8-flash")
        self.history.append(record)
        return record

    async def use_tool(self, name: str, given: dict[str, Any], error: str = "", *, is_told: bool = True) -> str:
        """A tool is run, and the agent is told its result; returns what a hook has added, as the agent sees it."""
        answer = self.say("I will use a tool.")
        if name in ("ask_user", "invoke_agent"):
            await self.hook("BeforeTool", tool_name=name, tool_input=given)
        response = {"llmContent": "Output: (empty)", "returnDisplay": "", **({"error": {"message": error}} if error else {})}
        added = _added(await self.hook("AfterTool", tool_name=name, tool_input=given, tool_response=response))
        if is_told:
            self.end_tool(answer, name, given, "error" if error else "success", error, added)
        return added

    def end_tool(
        self, answer: dict[str, Any], name: str, given: dict[str, Any], status: str, error: str = "", added: str = ""
    ) -> None:  # fmt: skip
        id_ = f"{name}__{uuid.uuid4().hex[:8]}"
        output = f"Output: (empty)\n\n<hook_context>{added}</hook_context>" if added else "Output: (empty)"
        response = {"error": error} if error else {"output": output}
        result = [{"functionResponse": {"id": id_, "name": name, "response": response}}]
        call = {"id": id_, "name": name, "args": given, "result": result, "status": status, "resultDisplay": error}
        self.write({**answer, "toolCalls": [call]})
        if status != "cancelled":
            self.history.append(self.record("user", result))

    async def end(self) -> str:
        """The turn would end; returns the prompt that a hook made it go on with, of which the agent is then told."""
        output = await self.hook("AfterAgent", prompt="", prompt_response="Noted. ", stop_hook_active=False)
        if output.get("decision") != "block":
            return ""
        reason = str(output["reason"])
        await self.hook("BeforeAgent", prompt=reason)
        self._give(reason)
        return reason

    def cancel(self) -> None:
        """A person presses Escape: the turn is taken out of the conversation."""
        self.record("info", "Request cancelled.")
        del self.history[self._turn_began_at :]
        self.write({"$set": {"messages": self.history}})

    async def ask(self, **details: Any) -> None:
        """A dialog opens."""
        await self.hook("Notification", notification_type="ToolPermission", message="Tool requires it", details=details)


def _added(output: dict[str, Any]) -> str:
    added = str((output.get("hookSpecificOutput") or {}).get("additionalContext") or "")
    return added.replace("<", "&lt;").replace(">", "&gt;")


class Stage:
    """A program that was prepared, its fake, and a listener. `door` makes a new one, as a later wrapper would."""

    def __init__(self, folder: Path, veto_s: float = 0.0) -> None:
        self.place = AgentPlace("Bob", str(folder / "team"), "0123456789ab")
        os.mkdir(self.place.folder, 0o700)
        self.cli = FakeGemini(folder)
        self.launcher = GeminiLauncher(veto_s)
        program = Program(("gemini",), str(self.cli.cwd), {"HOME": str(self.cli.home)})
        self.prepared: PreparedStart = self.launcher.prepare(program, self.place, INTRODUCTION)
        self.prepared.facts["version"] = load_profiles()["gemini"].recorded
        self.cli.environment = dict(self.prepared.program.environment)
        self.heard = Heard()
        self.made: list[Door] = []

    def door(self, heard: Heard | None = None) -> Door:
        (door,) = self.launcher.doors(self.prepared.program, self.place, self.prepared.facts, heard or self.heard)
        self.made.append(door)
        return door

    async def open(self) -> Door:
        door = self.door()
        opening = asyncio.create_task(door.open())
        await until(lambda: os.path.exists(self.prepared.facts["hooks"]), "it listens to hooks")
        await self.cli.start()
        await opening
        return door

    async def close(self) -> None:
        for door in self.made:
            await door.close()


def play(scene: Callable[[Stage], Awaitable[None]], veto_s: float = 0.0) -> Stage:
    return play_on(lambda folder: Stage(folder, veto_s), scene)
