"""An agent of the demonstration: it receives all the time, answers what it is asked, and keeps the books."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from agent_relay.cli.demo.ledger import Ledger
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.messages import Message
from agent_relay.sdk.receipts import Receipt

OnMessage = Callable[["Player", Message], None]


class Player:
    def __init__(self, name: str, socket: str, ledger: Ledger, on_message: OnMessage, answers: dict[str, str]) -> None:
        self.name = name
        self.received = 0
        self._socket = socket
        self._ledger = ledger
        self._on_message = on_message
        self._answers = answers
        self._waiters: list[asyncio.Future[None]] = []
        self._client: RelayClient | None = None
        self._receiving: asyncio.Task[None] | None = None

    @property
    def client(self) -> RelayClient:
        assert self._client is not None
        return self._client

    async def come(self) -> None:
        self._client = RelayClient(self.name, socket=self._socket, cli="demo")
        await self._client.connect()
        self._receiving = asyncio.create_task(self._receive(), name=f"{self.name} receives")

    async def leave(self) -> None:
        if self._client is not None:
            await self._client.close(2.0)
        if self._receiving is not None:
            self._receiving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._receiving
        self._client = self._receiving = None

    async def _receive(self) -> None:
        async for message in self.client.messages():
            self._ledger.note_arrived(message.id, message.from_, self.name)
            self._on_message(self, message)
            self.received += 1
            self._wake()
            answer = self._answers.get(message.body)
            if answer is not None and message.correlation_id is not None:
                receipt = await message.reply(answer)
                self._ledger.note_sent(receipt.message_id, self.name, [message.from_])

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def wait_for(self, number: int) -> None:
        """Until that many messages have arrived in all; raises what ended the receiving, if something did."""
        assert self._receiving is not None
        while self.received < number:
            arrival: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(arrival)
            await asyncio.wait({arrival, self._receiving}, return_when=asyncio.FIRST_COMPLETED)
            if self._receiving.done():
                self._receiving.result()
                return

    def note(self, receipt: Receipt, *recipients: str) -> None:
        self._ledger.note_sent(receipt.message_id, self.name, recipients)

    def note_answer(self, message: Message | None) -> None:
        """An answer goes to whoever asked, and not through the loop that receives."""
        if message is not None:
            self._ledger.note_arrived(message.id, message.from_, self.name)
