"""The door to a console that runs an ACP agent. A message is a prompt: it is read when its turn has begun, or has ended.

The console lives as long as the program, so the door is lost only with it. A later wrapper finds the same console.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping

import msgspec

from agent_relay.terminal.doors.acp import wire
from agent_relay.terminal.doors.door import (
    Decision,
    DoorError,
    DoorListener,
    DoorMessage,
    DoorShut,
    NotOpen,
    NotTaken,
    Probe,
    Whereabouts,
)
from agent_relay.terminal.output.observations import Observation

NAME = "acp"
START_S = 120.0  # an adapter from npm, on a machine that does much else
CALL_S = 20.0  # the console answers from its memory
_POLL_S = 0.1
_GONE = "The console of the agent has ended."
_log = logging.getLogger("agent_relay.terminal")


class AcpDoor:
    """`facts` holds the introduction, for the first prompt of a session."""

    name = NAME
    can_start_turns = True

    def __init__(self, path: str, facts: Mapping[str, str], listener: DoorListener[Observation]) -> None:
        self._path = path
        self._introduction = facts.get("introduction", "")
        self._listener = listener
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[wire.Ready] | None = None
        self._calls: dict[int, asyncio.Future[str]] = {}
        self._count = 0
        self._is_open = self._is_over = False

    # --- opening and closing -----------------------------------------------------------------------------------------

    async def open(self) -> Probe:
        self._ready = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(START_S):
                reader = await self._connect()
                self._reading = asyncio.create_task(self._read(reader))
                self._send(wire.Hello(self._introduction))
                ready = await self._ready
        except TimeoutError:
            raise DoorShut("The agent has not opened a session; its terminal shows why.") from None
        self._is_open = True
        return Probe(ready.version, ready.note, introduces=True, is_published=True)

    async def _connect(self) -> asyncio.StreamReader:
        while True:
            with contextlib.suppress(OSError):
                reader, self._writer = await asyncio.open_unix_connection(self._path, limit=wire.MAX_LINE_BYTES)
                return reader
            await asyncio.sleep(_POLL_S)

    async def close(self) -> None:
        self._is_over = True
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        if self._writer is not None:
            self._writer.close()
        self._fail_calls()

    def _fail_calls(self) -> None:
        for call in self._calls.values():
            if not call.done():
                call.set_exception(DoorShut(_GONE))

    # --- what it is asked ----------------------------------------------------------------------------------------------

    async def deliver(self, message: DoorMessage) -> str:
        return await self._call(wire.Deliver(self._next(), message))

    async def look_up(self, message: DoorMessage) -> Whereabouts:
        return Whereabouts(await self._call(wire.Find(self._next(), message)))

    async def answer(self, request_id: str, decision: Decision) -> None:
        await self._call(wire.Decide(self._next(), request_id, decision))

    def _next(self) -> int:
        self._count += 1
        return self._count

    async def _call(self, order: wire.Deliver | wire.Find | wire.Decide) -> str:
        if self._is_over or not self._is_open:
            raise DoorShut(_GONE)
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._calls[order.call] = done
        try:
            self._send(order)
            async with asyncio.timeout(CALL_S):
                return await done
        except TimeoutError:
            raise NotTaken("The console of the agent does not answer.") from None
        finally:
            self._calls.pop(order.call, None)

    def _send(self, order: wire.Order) -> None:
        assert self._writer is not None
        self._writer.write(wire.encode(order))

    # --- what it tells -------------------------------------------------------------------------------------------------

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                self._take(wire.decode_word(line))
        except (OSError, ValueError, msgspec.DecodeError) as error:
            _log.warning("the console of the agent was not understood: %s", type(error).__name__)
        if self._is_over:
            return
        self._is_over = True
        self._fail_calls()
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(DoorShut(_GONE))
        if self._is_open:
            self._listener.door_lost(_GONE)

    def _take(self, word: wire.Word) -> None:
        match word:
            case wire.Ready():
                if self._ready is not None and not self._ready.done():
                    self._ready.set_result(word)
            case wire.Done(call, said):
                self._settle(call, said)
            case wire.Refused(call, reason, is_closed):
                self._settle(call, NotOpen(reason) if is_closed else DoorError(reason))
            case wire.Happened(number, event):
                self._tell(event)
                self._send(wire.Seen(number))

    def _settle(self, call: int, outcome: str | DoorError) -> None:
        waiting = self._calls.get(call)
        if waiting is None or waiting.done():
            return
        if isinstance(outcome, DoorError):
            waiting.set_exception(outcome)
        else:
            waiting.set_result(outcome)

    def _tell(self, event: wire.Event) -> None:
        match event:
            case wire.State(state, waiting_for):
                self._listener.door_state(state, waiting_for)
            case wire.Read(message_id, evidence):
                self._listener.door_read(message_id, evidence)
            case wire.Rejected(message_id, reason):
                self._listener.door_rejected(message_id, reason)
            case wire.Asked(request):
                self._listener.door_asked(request)
            case wire.Resolved(request_id, resolution, by):
                self._listener.door_resolved(request_id, resolution, by)
            case wire.Noticed(observation):
                self._listener.door_noticed(observation)
            case wire.Heard(id_, text):
                self._listener.door_heard(text, id_)
