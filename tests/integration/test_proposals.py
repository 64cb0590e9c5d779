"""Proposals over a real daemon: from PROPOSE to the outcome, through kill -9, and past a deadline that came while it was down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from agent_relay.protocol.consensus import Outcome
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.retry import RetryPolicy
from agent_relay.sdk.backoff import Backoff
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import TimedOut
from agent_relay.sdk.messages import Message
from agent_relay.sdk.sync import SyncRelayClient
from agent_relay.testing.daemon import DaemonProcess

PATIENCE_S = 120.0
QUICK = Backoff(policy=RetryPolicy(base_ms=20, cap_ms=200, jitter=0.15))


def client(daemon: DaemonProcess, name: str) -> RelayClient:
    return RelayClient(name, socket=daemon.socket, backoff=QUICK, reconnect_attempts=None, default_channels=False)


async def take(relay: RelayClient, wanted: Callable[[Message], bool]) -> Message:
    async for message in relay.messages(PATIENCE_S):
        if wanted(message):
            await message.ack()
            return message
    raise AssertionError("it did not come")


def test_a_proposal_goes_its_way(daemon: DaemonProcess) -> None:
    async def scenario() -> None:
        async with client(daemon, "Ann") as ann, client(daemon, "Bob") as bob, client(daemon, "Cyd") as cyd:
            for each in (ann, bob, cyd):
                await each.join("#dev")
            proposal = await ann.propose("Use SQLite", "#dev", rule="unanimous", timeout=600, body="It is there already.")
            assert proposal.info.participants == ["Bob", "Cyd"]
            asked = await take(bob, lambda message: message.kind == "proposal")
            assert (asked.from_, asked.data["proposalId"] if asked.data else None) == ("Ann", proposal.id)
            waiting = asyncio.create_task(proposal.outcome(PATIENCE_S))
            await bob.vote(proposal.id, "reject", "Not sure.")  # ends it: nobody else can change that
            assert await waiting is Outcome.REJECTED
            assert proposal.info.votes["Bob"].reason == "Not sure."
            for each in (ann, bob, cyd):
                told = await take(each, lambda message: message.kind == "consensus")
                assert (told.from_, told.data["outcome"] if told.data else None) == ("relay", "rejected")
            with pytest.raises(RelayError, match="is over") as late:
                await cyd.vote(proposal.id, "approve")
            assert late.value.code is ErrorCode.REJECTED
            assert await ann.proposals() == []
            assert [each.id for each in await cyd.proposals(open_only=False)] == [proposal.id]

    asyncio.run(scenario())


def test_weights_quorums_and_withdrawal(daemon: DaemonProcess) -> None:
    async def scenario() -> None:
        async with client(daemon, "Ann") as ann, client(daemon, "Bob") as bob, client(daemon, "Cyd") as cyd:
            weighted = await ann.propose("w", ["Bob", "Cyd"], rule="weighted", weights={"Bob": 3})
            assert (await bob.vote(weighted.id, "approve")).info.outcome is Outcome.APPROVED
            shared = await ann.propose("q", ["Ann", "Bob", "Cyd"], rule="quorum", quorum=0.6)
            assert shared.info.quorum == "60%"
            await ann.vote(shared.id, "approve")
            assert (await cyd.vote(shared.id, "approve")).info.outcome is Outcome.APPROVED
            other = await ann.propose("o", ["Bob"], id="mine")
            assert (await ann.propose("o", ["Bob"], id="mine")).id == other.id
            with pytest.raises(RelayError, match="Only Ann"):
                await bob.withdraw(other.id)
            with pytest.raises(TimedOut):
                await other.outcome(0.05)
            assert (await ann.withdraw(other.id, "changed my mind")).info.resolution == "Ann withdrew it: changed my mind"
            assert await other.outcome(PATIENCE_S) is Outcome.WITHDRAWN
            with pytest.raises(RelayError, match="1 to 128 characters"):
                await ann.propose("o", ["Bob"], id="x" * 129)
            with pytest.raises(RelayError, match="whole percent"):
                await ann.propose("x", ["Bob"], rule="quorum", quorum=0.333)

    asyncio.run(scenario())


def test_kill_9_in_the_middle_loses_no_vote_and_nobody_hears_twice(daemon: DaemonProcess) -> None:
    async def scenario() -> None:
        async with client(daemon, "Ann") as ann, client(daemon, "Bob") as bob, client(daemon, "Cyd") as cyd:
            proposal = await ann.propose("Survive", ["Bob", "Cyd"], rule="unanimous", timeout=3_600)
            await bob.vote(proposal.id, "approve", "before")
            waiting = asyncio.create_task(proposal.outcome(PATIENCE_S))
            daemon.kill()
            late = asyncio.create_task(cyd.vote(proposal.id, "approve"))  # said while nobody is there
            daemon.start()
            assert (await late).info.votes["Bob"].reason == "before"
            assert await waiting is Outcome.APPROVED
            assert proposal.info.expires_at - proposal.info.proposed_at == 3_600_000
            for each in (ann, bob, cyd):
                await take(each, lambda message: message.kind == "consensus")
            await ann.send("Bob", "the end")
            found = [message["kind"] for message in (await ann.history(to="Bob")).messages]
            assert sorted(found) == ["consensus", "message", "proposal"]

    asyncio.run(scenario())


def test_a_deadline_that_came_while_the_daemon_was_down_ends_it(daemon: DaemonProcess) -> None:
    async def scenario() -> None:
        async with client(daemon, "Ann") as ann, client(daemon, "Bob") as bob:
            proposal = await ann.propose("Too late", ["Bob", "Ann"], timeout=5.0)
            await ann.vote(proposal.id, "approve")
            daemon.kill()
            while time.time() * 1000 < proposal.info.expires_at:
                await asyncio.sleep(0.05)
            daemon.start()
            assert await proposal.outcome(PATIENCE_S) is Outcome.TIMEOUT
            assert "1 approve, 0 reject, 1 has not voted" in proposal.info.resolution
            told = await take(bob, lambda message: message.kind == "consensus")
            assert "ended without a decision" in told.body

    asyncio.run(scenario())


def test_an_observer_waits_for_an_outcome_too(daemon: DaemonProcess) -> None:
    async def scenario() -> None:
        async with client(daemon, "Ann") as ann, client(daemon, "Bob") as bob:
            proposal = await ann.propose("Watch", ["Bob"])
            async with RelayClient(observer=True, socket=daemon.socket) as observer:
                watched = await observer.proposal(proposal.id)
                waiting = asyncio.create_task(watched.outcome(PATIENCE_S))
                await bob.vote(proposal.id, "approve")
                assert await waiting is Outcome.APPROVED
                with pytest.raises(RelayError, match="Observers cannot propose"):
                    await observer.propose("x", ["Bob"])

    asyncio.run(scenario())


def test_the_blocking_client_has_it_all(daemon: DaemonProcess) -> None:
    with SyncRelayClient("Ann", socket=daemon.socket) as ann, SyncRelayClient("Bob", socket=daemon.socket) as bob:
        proposal = ann.propose("Sync", ["Bob"])
        assert [each.id for each in bob.proposals()] == [proposal.id]
        assert bob.vote(proposal.id, "approve").info.outcome is Outcome.APPROVED
        assert proposal.outcome(PATIENCE_S) is Outcome.APPROVED
        assert ann.proposal(proposal.id).info.outcome is Outcome.APPROVED
        assert ann.withdraw(ann.propose("Gone", ["Bob"]).id).info.outcome is Outcome.WITHDRAWN
