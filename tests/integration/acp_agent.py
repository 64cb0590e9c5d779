"""A scripted agent that speaks the Agent Client Protocol, by the official package: `python acp_agent.py SCRIPT`.

The script says what is done in the turn of a prompt that holds some words; the record says what came, as it came. A session is
kept in a file as soon as a prompt has come, and told again when it is loaded, as real agents do.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any, cast

from acp import (
    Agent,
    RequestError,
    plan_entry,
    run_agent,
    start_edit_tool_call,
    start_tool_call,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
    update_user_message,
)
from acp.schema import (
    AgentCapabilities,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    ToolCallUpdate,
    Usage,
)

POLL_S = 0.02
OPTIONS = [
    PermissionOption(option_id="proceed_always", name="Always allow", kind="allow_always"),
    PermissionOption(option_id="proceed_once", name="Allow once", kind="allow_once"),
    PermissionOption(option_id="cancel", name="Reject", kind="reject_once"),
]


class ScriptedAgent:
    def __init__(self, script: dict[str, Any]) -> None:
        self.script = script
        self.folder = Path(script["folder"])
        self.cancelled = asyncio.Event()
        self.calls = 0

    def on_connect(self, connection: Any) -> None:
        self.client = connection

    def record(self, **fields: Any) -> None:
        with (self.folder / "record.jsonl").open("a") as file:
            file.write(json.dumps({"pid": os.getpid(), **fields}) + "\n")

    async def initialize(self, protocol_version: int, **more: Any) -> InitializeResponse:
        self.record(event="initialize", capabilities=str(more.get("client_capabilities")))
        return InitializeResponse(
            protocol_version=self.script.get("protocol", protocol_version),
            agent_capabilities=AgentCapabilities(load_session=self.script.get("loads", True)),
            agent_info=Implementation(name="scripted", title="Scripted Agent", version="7.1.2"),
        )

    async def new_session(self, cwd: str, mcp_servers: Any = None, **more: Any) -> NewSessionResponse:
        if self.script.get("signs_in"):
            raise RequestError.auth_required()
        self.session = f"session-{os.getpid()}"
        self.record(event="new", cwd=cwd, servers=[server.name for server in mcp_servers or ()])
        return NewSessionResponse(session_id=self.session)

    async def load_session(self, cwd: str, session_id: str, **more: Any) -> LoadSessionResponse:
        path = self.folder / f"{session_id}.json"
        if not path.exists():
            raise RequestError.resource_not_found(session_id)
        self.session = session_id
        for text in json.loads(path.read_text()):
            await self.client.session_update(session_id=session_id, update=update_user_message(text_block(text)))
        self.record(event="load", session=session_id)
        return LoadSessionResponse()

    async def cancel(self, session_id: str, **more: Any) -> None:
        self.record(event="cancel")
        self.cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **more: Any) -> PromptResponse:
        texts = [block.text for block in prompt]
        self.record(event="prompt", texts=texts)
        turn: dict[str, Any] = next((turn for turn in self.script["turns"] if turn.get("when", "") in texts[-1]), {})
        self.cancelled.clear()
        if turn.get("dies") == "before":
            os._exit(9)
        if "error" in turn:
            raise RequestError(-32603, turn["error"])
        path = self.folder / f"{session_id}.json"
        given = json.loads(path.read_text()) if path.exists() else []
        path.write_text(json.dumps([*given, *texts]))
        if turn.get("dies") == "kept":  # the session has it, and nobody was told
            (self.folder / "died").touch()
            os._exit(9)
        for step in turn.get("steps", [{"say": f"I got: {texts[-1]}"}]):
            if self.cancelled.is_set():
                break
            if "connect" in step:
                self.connect(step["connect"])
            await self.do(session_id, step)
        self.record(event="end", cancelled=self.cancelled.is_set())
        usage = Usage(total_tokens=30, input_tokens=20, output_tokens=10, cached_read_tokens=5)
        return PromptResponse(stop_reason="cancelled" if self.cancelled.is_set() else "end_turn", usage=usage)

    def connect(self, path: str) -> None:
        """To this socket, as whoever would speak for somebody else."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(b'{"type":"hello"}\n')
            try:
                heard = connection.recv(100).decode()
            except ConnectionError:
                heard = ""
            self.record(event="connected", heard=heard)

    async def do(self, session_id: str, step: dict[str, Any]) -> None:
        async def tell(update: Any) -> None:
            await self.client.session_update(session_id=session_id, update=update)

        self.calls += 1
        id_ = f"call-{self.calls}"
        if "say" in step:
            for piece in step["say"] if isinstance(step["say"], list) else [step["say"]]:
                await tell(update_agent_message_text(piece))
        if "think" in step:
            await tell(update_agent_thought_text(step["think"]))
        if "plan" in step:
            await tell(update_plan([plan_entry(text) for text in step["plan"]]))
        if "edit" in step:
            path, before, after = step["edit"]
            await tell(start_edit_tool_call(id_, f"Edit {path}", path, after))
            content = [tool_diff_content(path, after, before)]
            await tell(update_tool_call(id_, status="completed", content=content))
        if "run" in step:
            await self.run(session_id, id_, step["run"], tell)
        if "until" in step:  # a file that a test makes
            while not (self.folder / step["until"]).exists() and not self.cancelled.is_set():
                await asyncio.sleep(POLL_S)
        if step.get("dies"):
            os._exit(9)

    async def run(self, session_id: str, id_: str, command: str, tell: Any) -> None:
        given = {"command": command}
        await tell(start_tool_call(id_, command, kind="execute", status="pending", raw_input=given))
        call = ToolCallUpdate(tool_call_id=id_, title=command, kind="execute", raw_input=given)
        options = [option for option in OPTIONS if option.kind in self.script.get("offers", [each.kind for each in OPTIONS])]
        answer = await self.client.request_permission(session_id=session_id, tool_call=call, options=options)
        picked = getattr(answer.outcome, "option_id", answer.outcome.outcome)
        self.record(event="permission", picked=picked)
        ran = picked.startswith("proceed")
        content = [tool_content(text_block(f"ran {command}" if ran else "not run"))]
        await tell(update_tool_call(id_, status="completed" if ran else "failed", content=content))


if __name__ == "__main__":
    asyncio.run(run_agent(cast("Agent", ScriptedAgent(json.loads(Path(sys.argv[1]).read_text())))))
