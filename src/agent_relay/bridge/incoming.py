"""From the relay over there to an agent of the project: read on there once it is durable here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from agent_relay.arc.client import ArcClient
from agent_relay.arc.frames import ArcMessage
from agent_relay.bridge.journal import Journal
from agent_relay.bridge.notices import Notices
from agent_relay.bridge.payloads import from_arc
from agent_relay.bridge.peers import Peers, TooManyPeers
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import is_name
from agent_relay.protocol.retry import RetryPolicy
from agent_relay.sdk.errors import ConnectionLost

AGAIN = RetryPolicy(base_ms=500, cap_ms=30_000, jitter=0.2)
_WAITED_FOR = {ErrorCode.AGENT_NOT_FOUND}  # it has not connected yet; nothing else can be done for it meanwhile
Sleep = Callable[[float], Awaitable[None]]


class Incoming:
    """For one joined agent."""

    def __init__(
        self, local: str, client: ArcClient, peers: Peers, journal: Journal, notices: Notices, own_ids: Collection[str],
        sleep: Sleep, *, broadcasts: bool,
    ) -> None:  # fmt: skip
        self._local = local
        self._client = client
        self._peers = peers
        self._journal = journal
        self._notices = notices
        self._own_ids = own_ids
        self._sleep = sleep
        self._broadcasts = broadcasts

    async def run(self, remote: str) -> None:
        """Until the client is closed; raises where it is lost for good."""
        async for message in self._client.messages():
            key = f"{remote}<{message.id}"
            if self._is_wanted(message) and not self._journal.is_done(key):
                await self._pass_on(message)
                self._journal.note_done(key)
            self._journal.note_read(remote, message.id)

    def _is_wanted(self, message: ArcMessage) -> bool:
        if message.is_broadcast and not self._broadcasts:
            return False
        via = message.fields.get("via")
        passed_here = isinstance(via, list) and self._journal.bridge_id in via
        # What one of ours wrote is in the project already: handing it on would be the beginning of a circle.
        return not passed_here and message.from_ not in self._own_ids and is_name(message.from_)

    async def _pass_on(self, message: ArcMessage) -> None:
        words = from_arc(message.payload)
        attempt = 0
        while True:
            try:
                peer = await self._peers.open(message.from_)
                # The id follows from theirs: after a crash the same message is the same to the daemon, and not doubled.
                await peer.client.send(
                    self._local, words.body, id=f"arc_{message.id}"[:128], kind=words.kind, thread=words.thread, data=words.data,
                    requires_ack=False,
                )  # fmt: skip
                break
            except TooManyPeers:
                self._notices.tell_refused(
                    f"{message.from_} exceeds the maximum number of remote agents.", message_id=message.id, remote=message.from_
                )
                return
            except ConnectionLost:
                raise
            except RelayError as error:
                if not error.code.retryable and error.code not in _WAITED_FOR:
                    self._notices.tell_refused(error.message, message_id=message.id, remote=message.from_, local=self._local)
                    return
                attempt += 1
                self._notices.tell("waiting", f"{self._local}: {error.message}", local=self._local, reason=error.code.value)
                await self._sleep((error.retry_after_ms or AGAIN.delay_ms(attempt, 0.5)) / 1000)
        self._notices.counts.received += 1
        self._notices.tell(
            "received", f"{message.from_} → {self._local}", message_id=message.id, remote=message.from_, local=self._local
        )
