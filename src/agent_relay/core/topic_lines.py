"""The topic line of a channel: one line that says what it is for. Its members and the owner set it; it is a document of the
store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from agent_relay.core.context import Context
from agent_relay.core.registry import Registry
from agent_relay.core.rights import CONTROL, Rights
from agent_relay.protocol.channels import read_topic_line
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import check_channel, did_you_mean, fold_name

if TYPE_CHECKING:
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import envelope

DOCUMENT = "topic_lines"
COMMANDS = frozenset({"set_topic_line"})

Keep = Callable[[str, bytes, Callable[[], None]], None]  # the document, its content, and what to do once it is durable


class TopicLines:
    """`found`: the documents of the store."""

    def __init__(self, context: Context, registry: Registry, rights: Rights, keep: Keep, found: Mapping[str, bytes]) -> None:
        self._context = context
        self._registry = registry
        self._rights = rights
        self._keep = keep
        self._lines: dict[str, str] = {}  # by the channel's folded name
        try:
            self._lines = msgspec.json.decode(found.get(DOCUMENT) or b"{}", type=dict[str, str])
        except msgspec.MsgspecError as error:
            context.log.note("topic_lines_unreadable", error=str(error))

    def describe(self) -> dict[str, str]:
        """By the names of the channels that there are."""
        known = ((self._registry.channel(name), line) for name, line in self._lines.items())
        return {channel.name: line for channel, line in known if channel is not None}

    def receive(self, peer: Peer, frame: envelope.Control) -> None:
        asked = frame.payload
        try:
            if asked.channel is None:
                raise RelayError(ErrorCode.INVALID_FORMAT, "`payload.channel` is missing.", field="payload.channel")
            check_channel(asked.channel)
            line = read_topic_line(asked.text or "", "payload.text")
            channel = self._registry.channel(asked.channel)
            if channel is None:
                known = [each.name for each in self._registry.channels.values()]
                raise RelayError(
                    ErrorCode.CHANNEL_NOT_FOUND, f"There is no channel {asked.channel}; the first to join creates it.",
                    channel=asked.channel, did_you_mean=did_you_mean(asked.channel, known),
                )  # fmt: skip
            caller = self._rights.caller_of(peer)
            if caller.agent is None or fold_name(caller.agent) not in channel.members:
                self._rights.check_on(caller, CONTROL, self._context.host)
        except RelayError as error:
            peer.say_error(error, frame.id)
            return
        name = channel.name
        changed = {fold_name(each): kept for each, kept in self.describe().items()}
        changed.pop(fold_name(name), None)
        if line:
            changed[fold_name(name)] = line
        self._lines = changed
        answer = {"ack_id": frame.id, "stage": "controlled", "channel": name}
        self._keep(DOCUMENT, msgspec.json.encode(changed) if changed else b"", lambda: peer.say("ACK", answer))
