"""`agent-relay acp` as an editor has it: the client of the official package, a real daemon and agents in real terminals."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from acp import Client, RequestError, connect_to_agent, text_block
from acp.schema import AllowedOutcome, RequestPermissionResponse

from agent_relay.cli.person import person
from tests.integration.stage import DEADLINE_S, Stage, until
from tests.integration.test_acp import Acp

pytestmark = pytest.mark.terminals
PERSON = person()  # who speaks to the agents


class Editor:
    """`picks`: what a person decides here; nothing: they do not."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.asked: list[Any] = []
        self.picks: str | None = "allow"

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates.append(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **more: Any) -> Any:
        self.asked.append((tool_call, [option.option_id for option in options]))
        if self.picks is None:
            await asyncio.Event().wait()
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=str(self.picks)))

    def texts(self, kind: str) -> str:
        return "".join(update.content.text for update in self.updates if update.session_update == kind)

    @property
    def answer(self) -> str:
        return self.texts("agent_message_chunk")


@contextlib.asynccontextmanager
async def editing(stage: Stage, editor: Editor, *words: str) -> AsyncIterator[Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agent_relay", "acp", *words, *stage.where, cwd=stage.project, env=stage.environ,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    connection = connect_to_agent(cast("Client", editor), process.stdin, process.stdout)
    try:
        async with asyncio.timeout(3 * DEADLINE_S):
            begun = await connection.initialize(protocol_version=1)
            assert begun.protocol_version == 1
            assert begun.agent_info is not None
            assert begun.agent_info.name == "agent-relay"
            yield connection
    finally:
        assert process.stdin is not None
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), DEADLINE_S) == 0  # it ends with its input
        await connection.close()


def test_a_prompt_is_a_message_and_the_answer_comes_back(stage: Stage) -> None:
    agent = Acp(
        stage, [{"when": "review", "steps": [{"think": "hm"}, {"run": "make"}, {"say": f"->relay:{PERSON} It is fine."}]}]
    )
    agent.start()

    async def talk() -> Editor:
        editor = Editor()
        async with editing(stage, editor, "Bob") as bob:
            session = await bob.new_session(cwd=str(stage.project), mcp_servers=[])
            assert session.modes.current_mode_id == "Bob"
            done = await bob.prompt(session_id=session.session_id, prompt=[text_block("please review a.py")])
            assert done.stop_reason == "end_turn"
        return editor

    editor = asyncio.run(talk())
    assert agent.told == ["please review a.py"]
    assert editor.answer == "It is fine."
    assert "hm" in editor.texts("agent_thought_chunk")
    ((call, options),) = editor.asked
    assert call.raw_input == {"command": "make"}
    assert options == ["allow", "reject"]
    assert agent.events("permission")[0]["picked"] == "proceed_once"
    ended = [update for update in editor.updates if update.session_update == "tool_call_update"]
    assert {update.status for update in ended} == {"completed"}


def test_one_that_answers_nobody_is_done_when_it_rests(stage: Stage) -> None:
    agent = Acp(stage, [{"when": "review", "steps": [{"say": ["All ", "fine."]}]}])
    agent.start("pty")

    async def talk() -> Editor:
        editor = Editor()
        async with editing(stage, editor) as relay:  # the editor chooses, and there is one
            session = await relay.new_session(cwd=str(stage.project), mcp_servers=[])
            done = await relay.prompt(session_id=session.session_id, prompt=[text_block("review it")])
            assert done.stop_reason == "end_turn"
        return editor

    assert asyncio.run(talk()).answer == "All fine."


def test_cancel_interrupts_the_agent(stage: Stage) -> None:
    agent = Acp(stage, [{"when": "forever", "steps": [{"say": "on it"}, {"until": "never"}]}, {}])
    agent.start()

    async def talk() -> None:
        editor = Editor()
        async with editing(stage, editor, "Bob") as bob:
            session = await bob.new_session(cwd=str(stage.project), mcp_servers=[])
            asking = asyncio.create_task(bob.prompt(session_id=session.session_id, prompt=[text_block("forever")]))
            while "on it" not in editor.texts("agent_thought_chunk"):
                await asyncio.sleep(0.02)
            await bob.cancel(session_id=session.session_id)
            assert (await asking).stop_reason == "cancelled"

    asyncio.run(talk())
    until(lambda: agent.events("end"), "the turn has ended")
    assert agent.events("end")[0]["cancelled"] is True


def test_a_permission_that_is_answered_elsewhere_is_over_here(stage: Stage) -> None:
    agent = Acp(stage, [{"when": "build", "steps": [{"run": "make"}, {"say": "done"}]}, {}])
    agent.start()

    async def talk() -> None:
        editor = Editor()
        editor.picks = None
        async with editing(stage, editor, "Bob") as bob:
            session = await bob.new_session(cwd=str(stage.project), mcp_servers=[])
            asking = asyncio.create_task(bob.prompt(session_id=session.session_id, prompt=[text_block("build")]))
            while not editor.asked:
                await asyncio.sleep(0.02)
            id_ = editor.asked[0][0].tool_call_id
            done = await asyncio.to_thread(stage.command, "permissions", "approve", id_)
            assert done.returncode == 0, done
            assert (await asking).stop_reason == "end_turn"

    asyncio.run(talk())


def test_what_cannot_be_is_told(stage: Stage) -> None:
    async def talk() -> None:
        async with editing(stage, Editor()) as relay:
            with pytest.raises(RequestError, match="No agent runs in this project"):
                await relay.new_session(cwd=str(stage.project), mcp_servers=[])
            with pytest.raises(RequestError):
                await relay.prompt(session_id="none", prompt=[text_block("hello")])
        async with editing(stage, Editor(), "Nobody") as relay:
            with pytest.raises(RequestError, match="There is no agent Nobody"):
                await relay.new_session(cwd=str(stage.project), mcp_servers=[])

    asyncio.run(talk())


def test_a_file_as_input_is_refused_at_once(stage: Stage) -> None:
    """It never says that it can be read: the program would wait for ever."""
    done = subprocess.run(
        [sys.executable, "-m", "agent_relay", "acp", "Bob", *stage.where], stdin=subprocess.DEVNULL, capture_output=True,
        cwd=stage.project, env=stage.environ, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert "An editor starts this" in done.stderr
