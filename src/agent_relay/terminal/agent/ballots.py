"""Proposals and votes of an agent: from a line that it wrote, and from files of its outbox."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.headers import HeaderMessage
from agent_relay.protocol.payloads import ProposePayload
from agent_relay.protocol.proposals import DEFAULT_TIMEOUT_MS
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.proposals import Proposal
from agent_relay.terminal.output.commands import VoteCommand
from agent_relay.terminal.output.outbox import SentFile

KINDS = frozenset({"propose", "vote", "withdraw"})
_log = logging.getLogger("agent_relay.terminal")


class Ballots:
    """`insist` asks the daemon, and waits for one that is not there."""

    def __init__(self, insist: Callable[[Callable[[RelayClient], Awaitable[Proposal]]], Awaitable[Proposal]]) -> None:
        self._insist = insist

    async def vote(self, command: VoteCommand, *, is_shown: bool) -> str:
        """Why it does not count; "": it does, and the agent need not be interrupted to hear that."""
        heard: Literal["screen"] | None = "screen" if is_shown else None
        reason = command.reason or None
        try:
            await self._insist(lambda relay: relay.vote(command.proposal, command.choice, reason, heard=heard))
        except RelayError as error:
            _log.info("a vote was refused: %s", error.code.value)
            return f"Your vote on proposal {command.proposal} does not count. {error.message}"
        return ""

    async def take(self, message: HeaderMessage, id_: str) -> SentFile:
        """A file of the outbox, by whoever may write one; `id_` is the same for the same file. Raises RelayError."""
        name, words = message.name or "", message.body.strip()
        if message.kind == "vote":
            found = await self._insist(lambda relay: relay.vote(name, message.type or "", words or None))
        elif message.kind == "withdraw":
            found = await self._insist(lambda relay: relay.withdraw(name, words or None))
        else:
            asked = _read_proposal(words)
            found = await self._insist(
                lambda relay: relay.propose(
                    asked.title, asked.participants, asked.consensusType, asked.quorum, asked.weights,
                    (asked.timeoutMs or DEFAULT_TIMEOUT_MS) / 1000, asked.description or "", id=id_,
                )
            )  # fmt: skip
        return SentFile("", 0, 0, proposal=msgspec.to_builtins(found.info))


def _read_proposal(text: str) -> ProposePayload:
    try:
        return msgspec.json.decode(text, type=ProposePayload)
    except (msgspec.DecodeError, RecursionError) as error:
        sentence = f"The body of the kind `propose` is the payload of PROPOSE as JSON, and this one cannot be read: {error}."
        raise RelayError(ErrorCode.INVALID_FORMAT, sentence) from None
