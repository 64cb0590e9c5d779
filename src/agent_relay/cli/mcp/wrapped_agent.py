"""A speaker inside a wrapped agent: it speaks by files in the agent's outbox, which carry the token of this run.

The wrapper holds the agent's session and puts each message before the agent exactly once. So nothing is taken from the inbox
here: it shows what is on its way, and what was put before the agent last.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from agent_relay.cli.commands.spawn import find_folder
from agent_relay.cli.failures import Failure
from agent_relay.cli.project.link import observe
from agent_relay.cli.project.waiting_messages import find_pending
from agent_relay.cli.wrapper.outbox_commands import (
    ANSWER_S,
    GRACE_S,
    POLL_S,
    PROGRAM_S,
    drop_request,
    look_for_answer,
    look_for_more,
    make_name,
    waiting,
)
from agent_relay.mcp.speaker import Answered, Inbox, Sent
from agent_relay.protocol.channels import name_attention
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.proposals import Proposal
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import TimedOut
from agent_relay.sdk.locate import Place

_LAST = 5  # messages that were put before the agent, for one that has lost sight of them
_COMING = "They come to you by themselves, under the same ids. Do not act on one twice."
_SEEN = "You were given these already."


class WrappedAgent:
    def __init__(self, place: Place, name: str, outbox: str) -> None:
        self._place = place
        self.name = name
        self._outbox = outbox

    def observe(self) -> RelayClient:
        return observe(self._place)

    async def send(self, to: str | list[str], text: str, thread: str | None = None, reply_to: str | None = None) -> Sent:
        receipt = await self._say(make_name(), ANSWER_S, to=_names(to), body=text, thread=thread, reply_to=reply_to)
        return Sent(str(receipt["message_id"]), int(receipt["recipients"]), int(receipt["queued"]))

    async def ask(self, to: str | list[str], text: str, seconds: int) -> Answered:
        """Given up, the lock goes with it, and the wrapper tells the agent the answer when it comes."""
        file = make_name()
        with waiting(self._outbox, file):
            await self._say(file, ANSWER_S, to=_names(to), body=text, await_ms=seconds * 1000)
            try:
                async with asyncio.timeout(seconds + GRACE_S):
                    while (found := look_for_more(self._outbox, file)) is None:  # noqa: ASYNC110 - by files
                        await asyncio.sleep(POLL_S)
            except TimeoutError:
                found = {"error": ""}
        if "error" in found:
            raise TimedOut(str(found["error"]))
        return Answered(str(found.get("by", "")), str(found.get("body", "")))

    async def join(self, channel: str, at_leisure: bool | None) -> None:
        await self._say(make_name(), PROGRAM_S, kind="join", to=(channel,), type=name_attention(at_leisure))

    async def leave(self, channel: str) -> None:
        await self._say(make_name(), PROGRAM_S, kind="leave", to=(channel,))

    async def spawn(self, name: str, cli: str, task: str | None) -> None:
        folder = find_folder(self._place, None)
        await self._say(make_name(), PROGRAM_S, kind="spawn", name=name, cli=cli, cwd=folder, body=task or "")

    async def release(self, name: str) -> None:
        await self._say(make_name(), PROGRAM_S, kind="release", name=name)

    async def result(self, task: str, text: str, *, is_error: bool) -> str:
        kind = "error" if is_error else None
        return str((await self._say(make_name(), PROGRAM_S, kind="result", thread=task, type=kind, body=text))["message_id"])

    async def vote(self, proposal: str, choice: str, reason: str | None) -> Proposal:
        said = await self._say(make_name(), PROGRAM_S, kind="vote", name=proposal, type=choice, body=reason or "")
        return msgspec.convert(said.get("proposal"), Proposal)

    async def read_inbox(self, *, peek: bool) -> Inbox:
        async with self.observe() as relay:
            mine = (await relay.agents()).find(self.name)
            pending = [] if mine is None else await find_pending(relay, mine)
            if peek:
                return Inbox(pending, note=_COMING if pending else "")
            ids = {each["message_id"] for each in pending}
            page = await relay.history(to=self.name, limit=_LAST + len(ids))
        given = [each for each in page.messages if each["message_id"] not in ids][:_LAST][::-1]
        return Inbox(given, pending, _SEEN if given else "")

    async def _say(self, file: str, timeout_s: float, /, **headers: Any) -> dict[str, Any]:
        drop_request(self._outbox, file, **headers)
        try:
            async with asyncio.timeout(timeout_s):
                while (receipt := look_for_answer(self._outbox, file)) is None:  # noqa: ASYNC110 - by files
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            raise RelayError(
                ErrorCode.DELIVERY_TIMEOUT, f"The relay has not answered within {timeout_s:g} s. What you asked for is in your "
                "outbox, and is carried out when it is back: do not repeat it.",
            ) from None  # fmt: skip
        except Failure as refused:
            code = ErrorCode(refused.code) if refused.code in ErrorCode.__members__ else ErrorCode.INTERNAL_ERROR
            raise RelayError(code, refused.sentence) from None
        return receipt


def _names(to: str | list[str]) -> tuple[str, ...]:
    return (to,) if isinstance(to, str) else tuple(to)
