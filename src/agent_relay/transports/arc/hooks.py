"""Hooks: extensions that others write (`ports.arc.Hook`), each in a thread of its own, so that none can hold anything up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Raw

from agent_relay.protocol.arc.client_frames import Said, read_ref
from agent_relay.protocol.arc.codes import ArcCode, ArcProblem

_MOST_WAITING = 1_000  # what a slow hook has not heard yet; beyond that it misses what comes
_ANSWER_S = 10.0

_encode = msgspec.json.Encoder().encode

log = logging.getLogger(__name__)


class HookRunner:
    """Everything here returns at once; `hook` is called later, in its own thread."""

    def __init__(self, hook: Any) -> None:
        self.name = str(hook.name)
        self.missed = 0
        self._hook = hook
        self._calls: queue.Queue[Callable[[], None] | None] = queue.Queue(_MOST_WAITING)
        threading.Thread(target=self._work, name=f"arc-hook-{self.name}", daemon=True).start()

    def joined(self, agent_id: str) -> None:
        self._tell("joined", agent_id)

    def left(self, agent_id: str) -> None:
        self._tell("left", agent_id)

    def routed(self, sender: str, said: Said) -> None:
        """It waits as it came: read, it may take thirty times the room, and each hook gets one of its own."""
        call = getattr(self._hook, "routed", None)
        if call is not None:
            self._put(lambda: call(describe(sender, said)))

    def _tell(self, method: str, agent_id: str) -> None:
        call = getattr(self._hook, method, None)
        if call is not None:
            self._put(lambda: call(agent_id))

    def _put(self, call: Callable[[], None]) -> bool:
        try:
            self._calls.put_nowait(call)
        except queue.Full:
            self.missed += 1
            if self.missed == 1:
                log.warning("arc_hook_behind", extra={"relay_fields": {"hook": self.name}})
            return False
        return True

    async def ask(self, agent_id: str, command: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Raises ArcProblem where there is no answer."""
        call = getattr(self._hook, "command", None)
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[Any] = loop.create_future()

        def answer() -> None:
            try:
                found = _encode_values(call(agent_id, command, payload) if call is not None else None)
            except Exception:
                loop.call_soon_threadsafe(_settle, waiting, ArcProblem(ArcCode.INVALID_MESSAGE, "The extension failed."))
                raise
            loop.call_soon_threadsafe(_settle, waiting, found)

        if not self._put(answer):
            raise ArcProblem(ArcCode.RATE_LIMIT, f"The extension {self.name} is busy.")
        try:
            found = await asyncio.wait_for(waiting, _ANSWER_S)
        except TimeoutError:
            raise ArcProblem(ArcCode.RATE_LIMIT, f"The extension {self.name} did not answer in time.") from None
        if isinstance(found, ArcProblem):
            raise found
        if not isinstance(found, dict):
            raise ArcProblem(ArcCode.UNKNOWN_TYPE, f"The extension {self.name} does not know that command.")
        return found

    def stop(self) -> None:
        with contextlib.suppress(queue.Full):  # it is behind, and ends with the process
            self._calls.put_nowait(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except Exception:
                log.exception("arc_hook_failed", extra={"relay_fields": {"hook": self.name}})


def _encode_values(answer: Any) -> Any:
    """Here and now, in the hook's own thread: the loop has nothing left to do, and no answer that cannot be sent gets there."""
    return {str(name): Raw(_encode(value)) for name, value in answer.items()} if isinstance(answer, dict) else None


def _settle(waiting: asyncio.Future[Any], found: Any) -> None:
    if not waiting.done():
        waiting.set_result(found)


def describe(sender: str, said: Said) -> dict[str, Any]:
    """A message on its way, for hooks."""
    found: dict[str, Any] = {"from": sender, "to": said.to, "payload": msgspec.json.decode(said.payload)}
    if said.type is not None:
        found["type"] = said.type
    if len(said.ref):
        found["ref"] = read_ref(said)
    return {name: msgspec.json.decode(raw) for name, raw in said.extras.items()} | found
