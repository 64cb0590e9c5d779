"""SUBSCRIBE and CHANNEL_JOIN, and their opposites: in force at once, durable before they are acknowledged. What an agent does
for itself, CONTROL `join` and `leave` do for it, connected or not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_relay.core.commit import Committer
from agent_relay.core.registry import Registry
from agent_relay.core.rights import CONTROL, Rights
from agent_relay.core.router import Router
from agent_relay.ports.store import Batch, MemberRow, StoreError, SubscriptionRow
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import check_channel, did_you_mean, fold_name, is_pattern, show

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import envelope


COMMANDS = frozenset({"join", "leave"})


class Membership:
    def __init__(self, registry: Registry, committer: Committer, rights: Rights) -> None:
        self._registry = registry
        self._committer = committer
        self._router = Router(registry)
        self._rights = rights

    def subscribe(self, peer: Peer, agent: Agent, frame: envelope.Subscribe) -> None:
        pattern = self._pattern(peer, frame)
        if pattern is None:
            return
        row, answer = SubscriptionRow(agent.name, pattern), {"stage": "subscribed", "topic": pattern}
        do, undo = partial(self._registry.subscribe, agent, pattern), partial(self._registry.unsubscribe, agent, pattern)
        is_new = pattern not in agent.subscriptions
        self._save(peer, frame.id, lambda batch: batch.subscriptions.append(row), do, undo if is_new else None, answer)

    def unsubscribe(self, peer: Peer, agent: Agent, frame: envelope.Unsubscribe) -> None:
        pattern = self._pattern(peer, frame)
        if pattern is None:
            return
        row, answer = SubscriptionRow(agent.name, pattern, active=False), {"stage": "unsubscribed", "topic": pattern}
        do, undo = partial(self._registry.unsubscribe, agent, pattern), partial(self._registry.subscribe, agent, pattern)
        was_there = pattern in agent.subscriptions
        self._save(peer, frame.id, lambda batch: batch.subscriptions.append(row), do, undo if was_there else None, answer)

    def join(self, peer: Peer, agent: Agent, frame: envelope.ChannelJoin) -> None:
        channel = self._channel(peer, frame)
        if channel is not None:
            self._join(peer, agent, channel, frame.id, frame.payload.at_leisure)

    def leave(self, peer: Peer, agent: Agent, frame: envelope.ChannelLeave) -> None:
        channel = self._channel(peer, frame)
        if channel is not None:
            self._leave(peer, agent, channel, frame.id)

    def control(self, peer: Peer, frame: envelope.Control) -> None:
        """For another agent, by whoever may command agents."""
        asked = frame.payload
        try:
            caller = self._rights.caller_of(peer)
            if asked.agent is None:
                raise RelayError(ErrorCode.INVALID_FORMAT, "`payload.agent` is missing.", field="payload.agent")
            agent = self._router.find(asked.agent, "payload.agent")
            if caller.agent is None or fold_name(caller.agent) != agent.key:
                self._rights.check_on(caller, CONTROL, agent.traits.host)
            if asked.channel is None:
                raise RelayError(ErrorCode.INVALID_FORMAT, "`payload.channel` is missing.", field="payload.channel")
            check_channel(asked.channel)
        except RelayError as error:
            peer.say_error(error, frame.id)
            return
        if asked.command == "join":
            self._join(peer, agent, asked.channel, frame.id, asked.at_leisure)
        else:
            self._leave(peer, agent, asked.channel, frame.id)

    def _join(self, peer: Peer, agent: Agent, channel: str, request_id: str, at_leisure: bool | None = None) -> None:
        known = self._registry.channel(channel)
        name = channel if known is None else known.name
        is_new = name not in agent.channels
        before = agent.traits.at_leisure
        after = before if at_leisure is None and not is_new else _changed(before, name, is_in=bool(at_leisure))
        answer = {"stage": "joined", "channel": name} | _for_whom(peer, agent)
        if fold_name(name) in after:
            answer["at_leisure"] = True

        def do() -> None:
            self._registry.join(agent, name)
            agent.traits.at_leisure = after

        def undo() -> None:
            agent.traits.at_leisure = before
            if is_new:
                self._registry.leave(agent, name)

        def fill(batch: Batch) -> None:
            batch.members.append(MemberRow(name, agent.name))
            if after != before:
                batch.agents.append(agent.row())

        self._save(peer, request_id, fill, do, undo if is_new or after != before else None, answer)

    def _leave(self, peer: Peer, agent: Agent, channel: str, request_id: str) -> None:
        known = self._registry.channel(channel)
        if known is None:
            near = did_you_mean(channel, [members.name for members in self._registry.channels.values()])
            error = RelayError(ErrorCode.CHANNEL_NOT_FOUND, f"There is no channel {channel}.", channel=channel, did_you_mean=near)
            peer.say_error(error, request_id)
            return
        row, answer = MemberRow(known.name, agent.name, active=False), {"stage": "left", "channel": known.name}
        answer |= _for_whom(peer, agent)
        do, undo = partial(self._registry.leave, agent, known.name), partial(self._registry.join, agent, known.name)
        was_there = known.name in agent.channels
        self._save(peer, request_id, lambda batch: batch.members.append(row), do, undo if was_there else None, answer)

    def _pattern(self, peer: Peer, frame: envelope.Subscribe | envelope.Unsubscribe) -> str | None:
        pattern = frame.payload.topic if frame.payload.topic is not None else frame.topic
        if pattern is None or not is_pattern(pattern):
            problem = (
                "is missing"
                if pattern is None
                else f"cannot be {show(pattern)}: tokens between dots, `*` for one, `>` at the end"
            )
            peer.say_error(RelayError(ErrorCode.INVALID_FORMAT, f"`payload.topic` {problem}.", field="payload.topic"), frame.id)
            return None
        return pattern

    def _channel(self, peer: Peer, frame: envelope.ChannelJoin | envelope.ChannelLeave) -> str | None:
        channel = frame.payload.channel if frame.payload.channel is not None else frame.to
        try:
            if channel is None:
                raise RelayError(ErrorCode.INVALID_FORMAT, "`payload.channel` is missing.", field="payload.channel")
            check_channel(channel)
        except RelayError as error:
            peer.say_error(error, frame.id)
            return None
        return channel

    def _save(
        self,
        peer: Peer,
        request_id: str,
        fill: Callable[[Batch], None],
        do: Callable[[], None],
        undo: Callable[[], None] | None,
        answer: dict[str, Any],
    ) -> None:
        def settled(error: StoreError | None) -> None:
            if error is None:
                do()  # again: an earlier request for the same may have failed meanwhile, and undone it
            elif undo is not None:
                undo()
            if peer.closed:
                return
            if error is None:
                peer.say("ACK", {"ack_id": request_id} | answer)
            else:
                refusal = RelayError(ErrorCode.SERVICE_UNAVAILABLE, f"It could not be stored ({error}).", retry_after_ms=1_000)
                peer.say_nack(refusal, request_id)

        do()
        self._committer.change(fill, settled)


def _changed(names: list[str], channel: str, *, is_in: bool) -> list[str]:
    key = fold_name(channel)
    return sorted({*names, key} if is_in else {*names} - {key})


def _for_whom(peer: Peer, agent: Agent) -> dict[str, Any]:
    """Said to whoever did it for somebody else."""
    return {} if peer.agent is agent else {"by": agent.name}
