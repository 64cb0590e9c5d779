"""One prompt of an editor: a message to an agent that waits for its answer, and what that agent does meanwhile.

What the agent says to nobody in particular is shown as its thoughts; its answer is what it writes to the person. A turn ends with
the answer. An agent that has had the message, worked and come to rest without one has ended its turn as well: then its last words
are all there is.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from acp import (
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
)
from acp.schema import PermissionOption, ToolCallUpdate

from agent_relay.events import types
from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import TimedOut

ANSWER_S = 86_400.0
AT_REST_S = 2.0  # an answer that was written last may still be on its way
_TYPES = ("item.*", "agent.state", "permission.*", "question.requested", "message.delivered")
_KINDS: dict[str, Any] = {"search": "search", "test_run": "execute", "build": "execute"}
_ALLOW, _REJECT = "allow", "reject"
_OPTIONS = [
    PermissionOption(option_id=_ALLOW, name="Allow once", kind="allow_once"),
    PermissionOption(option_id=_REJECT, name="Reject", kind="reject_once"),
]


class Turn:
    """`editor`: its side of the protocol."""

    def __init__(self, relay: RelayClient, editor: Any, session_id: str, to: str) -> None:
        self._relay = relay
        self._editor = editor
        self._session_id = session_id
        self._to = to
        self._items: dict[str, str] = {}  # what kind of thing each is that the agent has begun
        self._texts: dict[str, str] = {}  # of items, as far as they have come
        self._last_words = ""
        self._message_id = ""
        self._is_delivered = self._has_worked = self._is_idle = False
        self._rested = asyncio.Event()
        self._cancelled = asyncio.Event()
        self._asking: dict[str, asyncio.Task[None]] = {}  # permissions, by their ids

    async def run(self, prompt: list[Any]) -> bool:
        """Whether it ended by itself. Raises RelayError."""
        async with self._relay.events(_TYPES, agent=self._to) as feed:
            question = await self._relay.ask(self._to, read_prompt(prompt), timeout=ANSWER_S)
            self._message_id = question.message_id
            await self._tell_if_offline()
            watching = asyncio.create_task(self._watch(feed))
            answering = asyncio.create_task(self._relay.answer_to(question, ANSWER_S))
            resting = asyncio.create_task(self._wait_for_rest())
            cancelling = asyncio.create_task(self._cancelled.wait())
            tasks: list[asyncio.Task[Any]] = [watching, answering, resting, cancelling]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if answering.done():
                    with contextlib.suppress(TimedOut):
                        await self._update(update_agent_message_text(answering.result().body))
                    with contextlib.suppress(TimeoutError):  # what it did before is told a little later
                        await asyncio.wait_for(self._rested.wait(), AT_REST_S)
                elif cancelling.done():
                    return False
                elif watching.done():
                    watching.result()
                elif self._last_words:
                    await self._update(update_agent_message_text(self._last_words))
                return True
            finally:
                await _end(*tasks, *self._asking.values())

    async def cancel(self) -> None:
        """The agent is interrupted where it works on this; a message that it has not had stays with it."""
        if self._is_delivered:
            with contextlib.suppress(RelayError):
                await self._relay.control(self._to, "interrupt")
        self._cancelled.set()

    async def _tell_if_offline(self) -> None:
        agent = (await self._relay.agents()).find(self._to)
        if agent is None or not agent.connected:
            await self._update(update_agent_thought_text(f"{self._to} is offline. It gets your message when it is back.\n"))

    async def _wait_for_rest(self) -> None:
        """Returns when the agent has been at rest for a while, after it worked on this."""
        while True:
            await self._rested.wait()
            await asyncio.sleep(AT_REST_S)
            if self._rested.is_set():
                return

    # --- what the agent does -----------------------------------------------------------------------------------------------

    async def _watch(self, feed: Any) -> None:
        async for event in feed:
            await self._take(event)

    async def _take(self, event: Any) -> None:
        match event:
            case types.MessageDelivered() if event.message_id == self._message_id:
                self._is_delivered = True
                self._note_rest()
            case types.AgentState():
                self._note_state(event.state)
            case types.ItemStarted():
                await self._begin(event)
            case types.ItemDelta():
                await self._go_on(event)
            case types.ItemCompleted():
                await self._complete(event)
            case types.PermissionRequested():
                self._asking[event.request_id] = asyncio.create_task(self._ask(event))
            case types.PermissionResolved():
                asking = self._asking.pop(event.request_id, None)
                if asking is not None:
                    asking.cancel()
                    await self._update(
                        update_tool_call(event.request_id, status=_status(is_error=event.resolution != "approved"))
                    )
            case types.QuestionRequested():
                await self._update(
                    update_agent_thought_text(f"{self._to} asks: {event.question} (agent-relay questions answers it)\n")
                )
            case _:
                pass

    def _note_state(self, state: str) -> None:
        self._is_idle = state == "idle"
        self._has_worked = self._has_worked or not self._is_idle
        self._note_rest()

    def _note_rest(self) -> None:
        """A short turn may be over before the daemon has told that the message was delivered."""
        if self._is_idle and self._is_delivered and self._has_worked:
            self._rested.set()
        else:
            self._rested.clear()

    async def _begin(self, item: types.ItemStarted) -> None:
        self._items[item.item_id] = item.item_type
        if item.item_type not in {"message", "thinking", "plan"}:
            title = str((item.metadata or {}).get("tool") or item.item_type)
            kind = _KINDS.get(item.item_type, "other")
            await self._update(start_tool_call(item.item_id, title, kind=kind, status="in_progress"))

    async def _go_on(self, event: types.ItemDelta) -> None:
        kind, text = self._items.get(event.item_id), event.delta.content
        self._texts[event.item_id] = self._texts.get(event.item_id, "") + text
        if kind in {"message", "thinking"}:
            await self._update(update_agent_thought_text(text))
        elif kind == "plan":
            await self._update(update_plan([plan_entry(line[2:]) for line in text.splitlines()]))

    async def _complete(self, event: types.ItemCompleted) -> None:
        kind, text = self._items.pop(event.item_id, None), self._texts.pop(event.item_id, "")
        if kind == "message":
            self._last_words = text
            await self._update(update_agent_thought_text("\n"))
        elif kind not in {None, "thinking", "plan"}:
            is_error = isinstance(event.result, dict) and event.result.get("isError") is True
            content = [tool_content(text_block(text))] if text else None
            await self._update(update_tool_call(event.item_id, status=_status(is_error=is_error), content=content))

    async def _update(self, update: Any) -> None:
        await self._editor.session_update(session_id=self._session_id, update=update)

    # --- what it asks ------------------------------------------------------------------------------------------------------

    async def _ask(self, asked: types.PermissionRequested) -> None:
        """In the editor; whoever is faster elsewhere has answered."""
        given = {name: text for name, text in (("command", asked.command), ("path", asked.file_path)) if text}
        call = ToolCallUpdate(
            tool_call_id=asked.request_id, title=asked.description, status="pending", raw_input=given or None,
        )  # fmt: skip
        await self._update(start_tool_call(asked.request_id, asked.description, status="pending", raw_input=given or None))
        answer = await self._editor.request_permission(session_id=self._session_id, tool_call=call, options=_OPTIONS)
        picked = getattr(answer.outcome, "option_id", "")
        if picked not in {_ALLOW, _REJECT}:
            return  # the turn was cancelled
        try:
            await self._relay.control(self._to, "approve" if picked == _ALLOW else "deny", request_id=asked.request_id)
        except RelayError as error:
            await self._update(update_agent_thought_text(f"Your answer did not count: {error.message}\n"))


def read_prompt(blocks: list[Any]) -> str:
    """As text: what an editor attaches is named, and quoted where it comes along."""
    return "\n".join(filter(None, map(_read_block, blocks)))


def _read_block(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "resource_link":
            return f"[{block.name}]({block.uri})"
        case "resource":
            text = getattr(block.resource, "text", "")
            return f"{block.resource.uri}:\n{text}" if text else str(block.resource.uri)
        case other:
            return f"[{other}]"


def _status(*, is_error: bool) -> Any:
    return "failed" if is_error else "completed"


async def _end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
