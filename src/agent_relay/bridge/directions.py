"""The two directions of a bridge, and a message as either side writes it.

What goes out is acknowledged here once it was taken there; what comes in is read on there once it is durable here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from agent_relay.arc.client import ArcClient
from agent_relay.arc.errors import ArcError, ArcRejected, ArcTimeout
from agent_relay.arc.frames import ArcMessage
from agent_relay.bridge.journal import Journal
from agent_relay.bridge.notices import Notices
from agent_relay.bridge.peers import Peer, Peers, TooManyPeers
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name, is_name
from agent_relay.protocol.retry import RetryPolicy
from agent_relay.sdk.errors import ConnectionLost
from agent_relay.sdk.messages import Message

_KIND = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_FIELDS = {"body", "kind", "thread", "data"}
_AGAIN_OUT = RetryPolicy(base_ms=1_000, cap_ms=60_000, jitter=0.2)  # a bucket of messages refills within a minute
_AGAIN_IN = RetryPolicy(base_ms=500, cap_ms=30_000, jitter=0.2)
_WAITED_FOR = {ErrorCode.AGENT_NOT_FOUND}  # it has not connected yet; nothing else can be done for it meanwhile
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class MessageContent:
    body: str
    kind: str = "message"
    thread: str | None = None
    data: dict[str, Any] | None = None


def to_arc(payload: Mapping[str, Any]) -> Any:
    """The text alone where there is nothing else, otherwise all of it."""
    plain = {name: value for name, value in payload.items() if value is not None and (name, value) != ("kind", "message")}
    return plain["body"] if plain.keys() == {"body"} else plain


def from_arc(payload: Any) -> MessageContent:
    """A text is the body, what another bridge made of a message becomes it again, anything else is data and its JSON the body."""
    if isinstance(payload, str):
        return MessageContent(payload)
    if isinstance(payload, dict) and isinstance(payload.get("body"), str) and payload.keys() <= _FIELDS:
        kind, thread, data = payload.get("kind"), payload.get("thread"), payload.get("data")
        return MessageContent(
            payload["body"], kind if isinstance(kind, str) and _KIND.fullmatch(kind) else "message",
            thread if isinstance(thread, str) else None, data if isinstance(data, dict) else None,
        )  # fmt: skip
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return MessageContent(body, data=payload if isinstance(payload, dict) else None)


class Outgoing:
    """From the project to the relay over there."""

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
                await self._sleep(_AGAIN_OUT.delay_ms(attempt, 0.5) / 1000)
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


class Incoming:
    """From the relay over there to one joined agent of the project."""

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
                await self._sleep((error.retry_after_ms or _AGAIN_IN.delay_ms(attempt, 0.5)) / 1000)
        self._notices.counts.received += 1
        self._notices.tell(
            "received", f"{message.from_} → {self._local}", message_id=message.id, remote=message.from_, local=self._local
        )
