"""The console: an agent without a screen, its prompts, and whoever watches it, brought together.

One turn at a time. An agent that ends in the middle of one is started again and goes on with its session, where it can; one that
ends again and again is left alone, and the console ends with its status.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from acp import RequestError
from acp.schema import PermissionOption, PromptResponse, RequestPermissionResponse, ToolCallUpdate
from msgspec import Struct

from agent_relay.protocol.visible_text import clean
from agent_relay.terminal.acp.agent_link import AgentFailed, AgentLink, describe_error
from agent_relay.terminal.acp.door_server import DoorServer
from agent_relay.terminal.acp.known_session import find_session, forget_session, note_session
from agent_relay.terminal.acp.line_input import Key, Line, LineInput
from agent_relay.terminal.acp.permissions import Permissions
from agent_relay.terminal.acp.prompts import Prompt, Prompts
from agent_relay.terminal.acp.transcript import Look, Transcript
from agent_relay.terminal.acp.updates import Updates
from agent_relay.terminal.doors.acp import wire
from agent_relay.terminal.doors.door import DoorError, DoorState, NotOpen

MAX_RESTARTS = 3  # of the agent, …
WITHIN_S = 300.0  # … in so much time; one that ends more often is broken
FAILED = 1


class Options(Struct, frozen=True):
    folder: str  # the agent's own
    socket: str
    title: str  # of the program, as people call it
    words: Sequence[str]
    cwd: str


class Console:
    def __init__(self, options: Options, write: Callable[[str], None], columns: Callable[[], int]) -> None:
        self._options = options
        self._run_id = secrets.token_hex(4)
        self._transcript = Transcript(write, columns)
        self._door = DoorServer(options.socket, self._obey, self._greet)
        self._prompts = Prompts(self._door.tell)
        self._updates = Updates(self._run_id, self._door.tell, self._transcript)
        self._permissions = Permissions(self._run_id, self._door.tell, self._transcript, self._note_state)
        self._input = LineInput()
        self._cancelling: asyncio.Task[None] | None = None
        self._draft_since = 0.0
        self._link: AgentLink | None = None
        self._introduction = ""
        self._is_introduced = False
        self._is_cancelling = False
        self._restarts: deque[float] = deque()
        self._told: wire.State | None = None
        self._ending: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    # --- the whole -------------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Until somebody ends it, or the agent cannot be kept running; the status to end with."""
        await self._door.open()
        working = asyncio.create_task(self._work())
        try:
            ends: list[asyncio.Future[Any]] = [working, self._ending]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if not self._ending.done():
                working.result()  # raises what went wrong
            status = self._ending.result() if self._ending.done() else FAILED
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            if self._link is not None:
                await self._link.end()
            await self._door.close()
            self._transcript.close()
        return status

    async def _work(self) -> None:
        try:
            await self._start_agent()
            while True:
                await self._take_turn(await self._prompts.next())
        except AgentFailed as error:
            self._transcript.say(f"{self._options.title}: {error}", Look.ASKED)

    def end(self) -> None:
        """Somebody wants it to end: its session is over too."""
        forget_session(self._options.folder)
        self.hang_up()

    def hang_up(self) -> None:
        """The terminal is gone; whoever starts the agent again goes on with the session."""
        if not self._ending.done():
            self._ending.set_result(0)

    # --- the agent -------------------------------------------------------------------------------------------------------

    async def _start_agent(self) -> None:
        """Raises AgentFailed."""
        options = self._options
        self._transcript.show_doing(f"starting {options.title}")
        link = self._link = AgentLink(options.words, options.cwd, options.folder, self)
        await link.start()
        self._updates.replayed.clear()
        self._updates.is_replaying = True
        try:
            is_resumed = await link.open_session(find_session(options.folder, options.words, options.cwd))
        finally:
            self._updates.is_replaying = False
        note_session(options.folder, link.session_id, options.words, options.cwd)
        self._is_introduced = is_resumed
        name = f"{link.title or options.title} {link.version}".strip()
        self._transcript.say(f"{name}, by the Agent Client Protocol{'; its session goes on' if is_resumed else ''}", Look.TOOL)
        self._transcript.show_doing("")
        self._transcript.show_draft(self._input.draft)
        self._door.set_ready(wire.Ready(link.version))
        self._note_state()

    async def _restart_agent(self) -> None:
        """Raises AgentFailed where it has been done too often."""
        now = _now()
        self._restarts.append(now)
        while self._restarts[0] < now - WITHIN_S:
            self._restarts.popleft()
        assert self._link is not None
        said = "".join(f"\n  | {line}" for line in self._link.last_words())
        await self._link.end()
        if len(self._restarts) > MAX_RESTARTS:
            raise AgentFailed(f"It has ended {len(self._restarts)} times within {WITHIN_S:.0f} s.{said}")
        self._transcript.say(f"{self._options.title} has ended; it is started again.{said}", Look.NOTE)
        await self._start_agent()
        self._prompts.begin_again(self._updates.replayed)
        self._note_state()

    # --- turns -----------------------------------------------------------------------------------------------------------

    async def _take_turn(self, prompt: Prompt) -> None:
        assert self._link is not None
        if self._prompts.is_in(prompt, self._updates.replayed):
            self._transcript.say(f"It had this before: {_first_line(prompt.text)}", Look.NOTE)
            return
        if prompt.message is None:
            self._show_given(prompt)
        texts = [prompt.text]
        if not self._is_introduced and self._introduction:
            texts.insert(0, self._introduction)
        self._is_cancelling = False
        self._note_state()
        answer: PromptResponse | None = None
        try:
            answer = await self._link.prompt(texts)
        except RequestError as error:
            self._end_turn(None)
            why = f"{self._options.title} could not take it: {describe_error(error)}."
            self._transcript.say(why, Look.ASKED)
            self._prompts.give_up(why)
            self._note_state()
            return
        except ConnectionError:
            self._end_turn(None)
            await self._restart_agent()
            return
        self._note_read()
        self._end_turn(answer)
        self._prompts.end()
        self._transcript.say(_describe_end(answer), Look.TOOL)
        self._note_state()

    def _note_read(self) -> None:
        """The turn has begun. A message is shown from then on: what stands on the screen, the agent has."""
        prompt = self._prompts.current
        if prompt is None or prompt.is_read:
            return
        self._is_introduced = True
        if prompt.message is not None:
            self._show_given(prompt)
        self._prompts.note_read()

    def _show_given(self, prompt: Prompt) -> None:
        self._transcript.say("\n".join(f"› {line}" for line in clean(prompt.text).split("\n")), Look.GIVEN)

    def _end_turn(self, answer: PromptResponse | None) -> None:
        self._permissions.cancel_all()
        self._updates.end_turn(answer)

    def _cancel(self) -> None:
        if self._prompts.current is None or self._link is None:
            self._transcript.say("There is no turn to cancel. Ctrl-D ends the agent.", Look.NOTE)
        elif not self._is_cancelling:
            self._is_cancelling = True
            self._transcript.say("Cancelling the turn …", Look.NOTE)
            self._permissions.cancel_all()
            self._cancelling = asyncio.create_task(self._link.cancel())

    def _note_state(self) -> None:
        waiting_for = self._permissions.waiting_for
        is_busy = self._prompts.current is not None
        told = wire.State(DoorState.WAITING, waiting_for) if waiting_for else wire.State(
            DoorState.WORKING if is_busy else DoorState.IDLE
        )  # fmt: skip
        more = f", {len(self._prompts)} more wait" if len(self._prompts) else ""
        doing = "asks for a decision" if waiting_for else f"working (Ctrl-C cancels{more})" if is_busy else ""
        self._transcript.show_doing(doing)
        if told != self._told:
            self._told = told
            self._door.tell(told)

    # --- what the agent calls ----------------------------------------------------------------------------------------------

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        del session_id, more
        if self._updates.is_of_turn(update):
            self._note_read()
        self._updates.take(update)

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **more: Any
    ) -> RequestPermissionResponse:
        del session_id, more
        self._note_read()
        return await self._permissions.ask(self._updates.take_call(tool_call), options)

    # --- what the wrapper wants --------------------------------------------------------------------------------------------

    def _obey(self, order: wire.Order) -> wire.Word | None:
        match order:
            case wire.Hello(introduction):
                self._introduction = introduction
                return None
            case wire.Deliver(call, message):
                said = self._prompts.add_message(message)
                self._note_state()
                return wire.Done(call, said)
            case wire.Find(call, message):
                return wire.Done(call, self._prompts.look_up(message))
            case wire.Decide(call, request_id, decision):
                try:
                    self._permissions.answer(request_id, decision)
                except DoorError as error:
                    return wire.Refused(call, str(error), is_closed=isinstance(error, NotOpen))
                return wire.Done(call)
            case _:
                return None

    def _greet(self) -> list[wire.Event]:
        return [*([self._told] if self._told is not None else []), *self._permissions.tell_again()]

    # --- what a person types -----------------------------------------------------------------------------------------------

    def typed(self, data: bytes) -> None:
        was_empty = not self._input.draft
        if was_empty:
            self._draft_since = _now()
        for typed in self._input.feed(data):
            match typed:
                case Line(text):
                    self._submit(text)
                    self._draft_since = _now()
                case Key.CANCEL:
                    self._cancel()
                case Key.END:
                    self.end()
        if self._told is not None:
            self._transcript.show_draft(self._input.draft)

    def _submit(self, text: str) -> None:
        if self._permissions.pick(text, self._draft_since):
            return
        self._prompts.add_line(text)
        if self._permissions.waiting_for:
            self._transcript.say("It waits for a decision first; what you typed comes after this turn.", Look.NOTE)
        self._note_state()

    def resized(self) -> None:
        self._transcript.redraw()


def _describe_end(answer: PromptResponse) -> str:
    usage = answer.usage
    spent = f" · {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out" if usage is not None else ""
    return f"── {answer.stop_reason.replace('_', ' ')}{spent}"


def _first_line(text: str) -> str:
    return clean(text).partition("\n")[0][:100]


def _now() -> float:
    return asyncio.get_running_loop().time()
