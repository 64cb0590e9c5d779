"""What happens in the demonstration, scene by scene."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from agent_relay.cli.demo.ledger import Ledger
from agent_relay.cli.demo.players import Player
from agent_relay.cli.demo.stage import Stage
from agent_relay.cli.demo.transcript import Transcript
from agent_relay.cli.failures import Failure
from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.messages import Message
from agent_relay.sdk.receipts import Receipt

STREAM = 200  # numbered messages; the daemon is killed while they flow
_KILL_AFTER = 80
_BURST = 20  # sent in one go, so that the crash meets messages on their way
_BURST_GAP_S = 0.1
_DEADLINE_S = 50.0
_ACKNOWLEDGED_S = 30.0
_QUESTION = "Which branch is it on?"
_READING_S = 0.9  # between lines, for a person to read along


class Script:
    def __init__(self, stage: Stage, transcript: Transcript, *, fast: bool) -> None:
        self._stage = stage
        self._transcript = transcript
        self._pause_s = 0.0 if fast else _READING_S
        self._burst_sent = asyncio.Event()
        self.ledger = Ledger()
        answers = {_QUESTION: "On login-fix."}
        self._alice, self._bob, self._carol = (
            Player(name, stage.socket, self.ledger, self._on_message, answers) for name in ("Alice", "Bob", "Carol")
        )

    async def play(self) -> None:
        scenes = (self._meet, self._talk, self._leave_word, self._crash, self._come_back, self._check_the_store)
        try:
            async with asyncio.timeout(_DEADLINE_S):
                for scene in scenes:
                    await scene()
        except TimeoutError as error:
            if isinstance(error, RelayError):
                raise
            raise Failure(
                f"The demonstration did not end within {_DEADLINE_S:g} s: something waits for what does not come."
            ) from None
        finally:
            for player in (self._alice, self._bob, self._carol):
                await player.leave()

    # --- scenes ---------------------------------------------------------------------------------------------------------

    async def _meet(self) -> None:
        self._transcript.scene("Three agents connect to a daemon")
        began = time.monotonic()
        await self._stage.start_daemon()
        self._transcript.event("daemon", f"up after {_ms(began)}, pid {self._stage.pid}")
        for player in (self._alice, self._bob, self._carol):
            await player.come()
            self._transcript.event(player.name, "connected")
        await self._pause()

    async def _talk(self) -> None:
        self._transcript.scene("A message, a question with its answer, a broadcast")
        await self._say(self._alice, "Bob", "Please review auth.py.", ["Bob"])
        await self._ask(self._bob, self._alice, _QUESTION)
        await self._say(self._bob, "*", "Review done: two findings, both fixed.", ["Alice", "Carol"])

    async def _leave_word(self) -> None:
        self._transcript.scene("Carol goes offline; Alice writes to her all the same")
        await self._carol.leave()
        self._transcript.event("Carol", "gone")
        began = time.monotonic()
        receipt = await self._alice.client.send("Carol", "Release notes are yours when you are back.")
        self._alice.note(receipt, "Carol")
        self._transcript.sent("Alice", "Carol", "Release notes are yours when you are back.")
        self._transcript.receipt(f"stored in {_ms(began)}; {receipt.queued} recipient is offline, it waits for her")
        await self._pause()

    async def _crash(self) -> None:
        self._transcript.scene(f"{STREAM} numbered messages flow from Alice to Bob; the daemon is killed")
        before = self._bob.received
        receipts: list[Receipt] = []
        streaming = asyncio.create_task(self._stream(receipts))
        try:
            await self._bob.wait_for(before + _KILL_AFTER)
            self._burst_sent.clear()
            await self._burst_sent.wait()
            self._stage.kill_daemon()
            arrived = self._bob.received - before
            self._transcript.alarm("daemon", f"killed with kill -9, when {arrived} had arrived and {len(receipts)} were sent")
            await self._pause()
            began = time.monotonic()
            await self._stage.start_daemon()
            self._transcript.event("daemon", f"started again, pid {self._stage.pid}; it answers after {_ms(began)}")
            await streaming
        finally:
            streaming.cancel()
        await self._bob.wait_for(before + STREAM)
        for receipt in receipts:
            await receipt.delivered(_ACKNOWLEDGED_S)
            self._alice.note(receipt, "Bob")
        again = sum(receipt.duplicate for receipt in receipts)
        self._transcript.event("Alice", f"reconnected by itself; all {len(receipts)} are stored and acknowledged")
        self._transcript.event("Bob", f"reconnected by itself; has {self._bob.received - before} of {STREAM}")
        if again:
            self._transcript.receipt(f"{again} had to be sent twice, and the daemon knew them")
        await self._pause()

    async def _stream(self, receipts: list[Receipt]) -> None:
        for number in range(1, STREAM + 1):
            receipts.append(await self._alice.client.submit("Bob", f"Finding {number} of {STREAM}."))
            if number % _BURST == 0:
                self._burst_sent.set()
                await asyncio.sleep(_BURST_GAP_S)

    async def _come_back(self) -> None:
        self._transcript.scene("Carol comes back")
        before = self._carol.received
        await self._carol.come()
        await self._carol.wait_for(before + 1)
        self._transcript.receipt("it was stored before the crash")
        await self._pause()

    async def _check_the_store(self) -> None:
        """The agents' books against the daemon's: it must have every message, and each settled for everyone."""
        observer = RelayClient(socket=self._stage.socket, observer=True)
        async with observer as relay:
            await _until(lambda: _is_settled(relay, len(self.ledger.sent)))

    # --- what they do ---------------------------------------------------------------------------------------------------

    async def _say(self, player: Player, to: str, text: str, recipients: list[str]) -> None:
        self._transcript.sent(player.name, to, text)
        began = time.monotonic()
        receipt = await player.client.send(to, text)
        stored = _ms(began)
        player.note(receipt, *recipients)
        await receipt.delivered(_ACKNOWLEDGED_S)
        self._transcript.receipt(f"stored in {stored}, acknowledged by {' and '.join(recipients)} after {_ms(began)}")
        await self._pause()

    async def _ask(self, asker: Player, answerer: Player, question: str) -> None:
        self._transcript.sent(asker.name, answerer.name, question)
        began = time.monotonic()
        reply = await asker.client.request(answerer.name, question, timeout=_ACKNOWLEDGED_S)
        if reply.message is None or reply.message.reply_to is None:
            raise Failure("The answer does not say which question it answers.")
        self.ledger.note_sent(reply.message.reply_to, asker.name, [answerer.name])
        asker.note_answer(reply.message)
        self._transcript.sent(reply.by, asker.name, reply.body)
        self._transcript.receipt(f"asked and answered in {_ms(began)}")
        await self._pause()

    def _on_message(self, player: Player, message: Message) -> None:
        if player is self._carol and message.from_ == "Alice":
            self._transcript.sent(message.from_, player.name, message.body)

    async def _pause(self) -> None:
        await asyncio.sleep(self._pause_s)


def _ms(began: float) -> str:
    return f"{(time.monotonic() - began) * 1000:.1f} ms"


async def _is_settled(relay: RelayClient, expected: int) -> bool:
    page = await relay.history(limit=1000)
    statuses = [one["status"] for message in page.messages for one in message["recipients"]]
    return len(page.messages) == expected and all(status == "done" for status in statuses)


async def _until(condition: Callable[[], Awaitable[bool]], deadline_s: float = 5.0) -> None:
    deadline = asyncio.get_running_loop().time() + deadline_s
    while not await condition():
        if asyncio.get_running_loop().time() > deadline:
            raise Failure("The daemon's store does not hold what the agents sent, settled for everyone.")
        await asyncio.sleep(0.05)
