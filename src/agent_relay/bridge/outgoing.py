"""From the project to the relay over there: acknowledged here once it was taken there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from agent_relay.arc.client import ArcClient
from agent_relay.arc.errors import ArcError, ArcRejected, ArcTimeout
from agent_relay.bridge.journal import Journal
from agent_relay.bridge.notices import Notices
from agent_relay.bridge.payloads import to_arc
from agent_relay.bridge.peers import Peer
from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.retry import RetryPolicy
from agent_relay.sdk.messages import Message

AGAIN = RetryPolicy(base_ms=1_000, cap_ms=60_000, jitter=0.2)  # a bucket of messages refills within a minute
Sleep = Callable[[float], Awaitable[None]]


class Outgoing:
    def __init__(self, clients: Mapping[str, ArcClient], journal: Journal, notices: Notices, sleep: Sleep) -> None:
        """`clients` by the folded name of the agent they speak for."""
        self._clients = clients
        self._journal = journal
        self._notices = notices
        self._sleep = sleep

    async def pass_on(self, peer: Peer, message: Message) -> None:
        """Returns when the relay has it, or whoever sent it was told that it will not have it."""
        client = self._clients.get(fold_name(message.from_))
        if client is None:
            await self._refuse(peer, message, f"{message.from_} is not bridged to the relay of {peer.name}; add it with --map.")
            return
        key = f"{message.id}.{peer.remote}"
        if self._journal.is_done(key):
            return
        attempt = 0
        while True:
            try:
                await client.send(
                    peer.remote, to_arc(message.payload), confirm=True, key=key, via=[self._journal.bridge_id]
                )  # fmt: skip
                break
            except ArcError as error:
                if not _may_pass(error):
                    if isinstance(error, ArcRejected):
                        await self._refuse(peer, message, error.message)
                        return
                    raise
                attempt += 1
                self._notices.tell("waiting", f"{peer.remote}: {error.message}", remote=peer.remote, reason=error.code)
                await self._sleep(AGAIN.delay_ms(attempt, 0.5) / 1000)
        self._journal.note_done(key)
        self._notices.counts.sent += 1
        self._notices.tell(
            "sent", f"{message.from_} → {peer.remote}", message_id=message.id, remote=peer.remote, local=message.from_
        )

    async def _refuse(self, peer: Peer, message: Message, sentence: str) -> None:
        await message.nack(ErrorCode.REJECTED, sentence)
        self._notices.tell_refused(sentence, message_id=message.id, remote=peer.remote, local=message.from_)


def _may_pass(error: ArcError) -> bool:
    return isinstance(error, ArcTimeout) or (isinstance(error, ArcRejected) and error.code == "rate_limit")
