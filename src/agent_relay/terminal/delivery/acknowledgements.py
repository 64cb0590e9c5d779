"""Acknowledgements: how a message ended, as the daemon is told. The agent has it, or it could not be given to it in its time.

Each is told once, and also stands in the agent's inbox file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from agent_relay.protocol.errors import ErrorCode
from agent_relay.sdk.messages import Message
from agent_relay.terminal.delivery.door_selection import TYPING
from agent_relay.terminal.delivery.inbox_file import InboxFile
from agent_relay.terminal.delivery.message_text import shown_message
from agent_relay.terminal.delivery.queue import DeliveryQueue
from agent_relay.terminal.delivery.typist import TOO_LATE
from agent_relay.terminal.files.run_file import RunFile
from agent_relay.terminal.reports.reporter import Reporter


class Acknowledgements:
    def __init__(self, queue: DeliveryQueue, inbox: InboxFile, run: RunFile, reporter: Reporter) -> None:
        self._queue = queue
        self._inbox = inbox
        self._run = run
        self._reporter = reporter
        self._answers: set[asyncio.Task[None]] = set()

    def begin(self, message: Message) -> None:
        self._inbox.add(shown_message(message))
        self._reporter.received(message.id)

    def is_over(self, message: Message) -> bool:
        """Whether it was given to the agent before, or its time is over; the daemon is then told so."""
        if self._inbox.was_taken(message.delivery_id):
            self._forget(message)
            self._tell(message.ack(door=TYPING, evidence="inbox"))
            return True
        deadline = self._queue.deadline_of(message)
        if deadline is not None and asyncio.get_running_loop().time() >= deadline:
            self.give_up(message, TOO_LATE)
            return True
        return False

    def finish(self, message: Message, door: str, evidence: str, *, is_read: bool) -> None:
        self._inbox.mark_taken(message.delivery_id)
        self._inbox.note(shown_message(message), f"given to the agent (by {door}, seen by: {evidence})")
        self._forget(message)
        self._tell(self._acknowledge(message, door, evidence, is_read=is_read))

    def give_up(self, message: Message, reason: str) -> None:
        self._forget(message)
        self._inbox.note(shown_message(message), f"could not be given to the agent. {reason}")
        self._tell(message.nack(ErrorCode.REJECTED, f"{reason} It is in the agent's inbox file."))

    async def _acknowledge(self, message: Message, door: str, evidence: str, *, is_read: bool) -> None:
        await message.ack(door=door, evidence=evidence)
        if is_read:
            self._reporter.read(message.id, evidence)

    def _forget(self, message: Message) -> None:
        self._run.note_ended(message.delivery_id)
        self._queue.forget_deadline(message)

    def _tell(self, answer: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(answer)
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)
