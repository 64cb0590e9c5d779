"""How one agent is started, asked and released, and what is told of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest

from agent_relay import patterns
from agent_relay.events.types import PatternEnded, PatternProgress, PatternStarted, TokensUsed
from agent_relay.patterns.crew import Crew
from agent_relay.patterns.tasks import AgentFailed, Progress, Task
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.events import EventFeed
from agent_relay.sdk.messages import Message
from agent_relay.testing.daemon import DaemonProcess
from tests.unit.patterns.standing_in import DEADLINE_S, SHORT_S, StandIn, play, say_it


def test_an_answer_and_what_is_told_on_the_way(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        told: list[Progress] = []
        async with Crew(relay, 1, told.append, {}) as crew:
            answer = await crew.ask(Task("Ann", "talker", "say {yes}"), DEADLINE_S, 0)
        assert (answer.name, answer.text, answer.attempts) == ("Ann", "{yes}", 1)
        assert re.fullmatch(r"Ann-1-[0-9a-f]{4}", answer.agent)
        assert [(step.kind, step.agent, step.done, step.total) for step in told] == [
            ("started", answer.agent, 0, 1),
            ("answered", answer.agent, 1, 1),
            ("released", answer.agent, 1, 1),
        ]

    play(daemon, scene)


def test_silence_is_a_failure_and_each_attempt_has_an_agent_of_its_own(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        told: list[Progress] = []
        async with Crew(relay, 1, told.append, {}) as crew:
            with pytest.raises(AgentFailed, match=r"did not reply within 0\.3 seconds") as failed:
                await crew.ask(Task("Ann", "silent", "x"), SHORT_S, 1)
        assert (failed.value.code, failed.value.attempts) == (ErrorCode.DELIVERY_TIMEOUT, 2)
        attempts = [step for step in told if step.kind == "failed"]
        assert [(step.attempt, step.done) for step in attempts] == [(1, 0), (2, 1)]
        assert attempts[0].agent != attempts[1].agent == failed.value.details["agent"]

    play(daemon, scene)


def test_what_is_refused_for_good_is_not_tried_again(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        async with Crew(relay, 1, None, {}) as crew:
            with pytest.raises(AgentFailed, match="may not be started") as failed:
                await crew.ask(Task("Ann", "unknown", "x"), DEADLINE_S, 5)
        assert (failed.value.attempts, failed.value.details["reason"]) == (1, "cli_not_allowed")
        assert relay.strangers == []

    play(daemon, scene)


def test_a_start_waits_until_there_may_be_more_agents(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        relay.refusals = [RelayError(ErrorCode.RATE_LIMITED, "too many", retry_after_ms=10)] * 2
        async with Crew(relay, 1, None, {}) as crew:
            assert (await crew.ask(Task("Ann", "talker", "say yes"), DEADLINE_S, 0)).attempts == 1
            relay.refusals = [RelayError(ErrorCode.RATE_LIMITED, "too many", retry_after_ms=60_000)]
            with pytest.raises(AgentFailed, match="too many"):
                await crew.ask(Task("Ann", "talker", "say yes"), DEADLINE_S, 0)

    play(daemon, scene)


def test_one_that_could_not_be_released_is_named(daemon: DaemonProcess, caplog: pytest.LogCaptureFixture) -> None:
    async def scene(relay: StandIn) -> None:
        told: list[Progress] = []
        release, relay.release = relay.release, refuse_to_release  # type: ignore[method-assign]
        async with Crew(relay, 1, told.append, {}) as crew:
            answer = await crew.ask(Task("Ann", "talker", "say yes"), DEADLINE_S, 0)
        assert caplog.messages == [f"{answer.agent} was not released and may still run: no connection"]
        assert [step.kind for step in told] == ["started", "answered"]
        await release(answer.agent)

    async def refuse_to_release(name: str, reason: str | None = None) -> None:
        raise RelayError(ErrorCode.SERVICE_UNAVAILABLE, "no connection")

    play(daemon, scene)


def test_a_callback_that_fails_ends_the_run_and_no_agent_is_left(daemon: DaemonProcess) -> None:
    def fail(step: Progress) -> None:
        raise ValueError(step.kind)

    async def scene(relay: StandIn) -> None:
        with pytest.raises(ValueError, match="released") as failed:
            await patterns.fan_out(relay, tasks=[Task("Ann", "talker", "say yes")], on_progress=fail)
        assert str(failed.value.__context__) == "started"

    play(daemon, scene)


def test_a_release_is_not_broken_off_by_a_cancellation(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        asked = asyncio.Event()

        async def note(message: Message) -> None:
            asked.set()

        relay.parts["noting"] = note
        whole = asyncio.create_task(patterns.pipeline(relay, stages=[Task("Ann", "noting", "x")]))
        await asked.wait()
        whole.cancel()
        await asyncio.sleep(0)
        whole.cancel()
        with pytest.raises(asyncio.CancelledError):
            await whole

    play(daemon, scene)


class Notebook:
    """`patterns.Memory` in memory."""

    def __init__(self) -> None:
        self.answers: dict[str, patterns.Answer] = {}

    def recall(self, key: str) -> patterns.Answer | None:
        return self.answers.get(key)

    def keep(self, key: str, answer: patterns.Answer) -> None:
        self.answers[key] = answer


def test_what_is_remembered_is_not_done_again(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        memory = Notebook()
        tasks = [Task("Ann", "talker", "say a"), Task("Ann", "talker", "say a"), Task("Bob", "talker", "say b")]
        async with Crew(relay, 3, None, {"memory": memory}) as crew:
            for task in tasks:
                await crew.ask(task, DEADLINE_S, 0)
        assert len(memory.answers) == 3  # the same task twice is two
        told: list[Progress] = []
        async with Crew(relay, 4, told.append, {"memory": memory}) as again:
            found = [await again.ask(task, DEADLINE_S, 0) for task in [*tasks, Task("Bob", "talker", "say c")]]
        assert [answer.text for answer in found] == ["a", "a", "b", "c"]
        assert [step.kind for step in told] == ["recalled"] * 3 + ["started", "answered", "released"]
        assert len(relay.started) == 4

    play(daemon, scene)


def test_a_run_is_told_as_events(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        async with relay.events(["pattern.*"], timeout=DEADLINE_S) as feed:
            await patterns.pipeline(relay, stages=[Task("Ann", "talker", "say a")])
            told = []
            async for event in feed:
                if event.by_session == relay.session_id:  # another test's Lead may just have ended
                    told.append(event)
                    if isinstance(event, PatternEnded):
                        break
        begun, *steps, ended = told
        assert isinstance(begun, PatternStarted)
        assert isinstance(ended, PatternEnded)
        assert (begun.pattern, begun.total, begun.by_agent, begun.session_id) == ("pipeline", 1, "Lead", relay.session_id)
        assert [step.step for step in steps if isinstance(step, PatternProgress)] == ["started", "answered", "released"]
        assert (ended.run_id, ended.outcome, ended.done, ended.total_tokens) == (begun.run_id, "completed", 1, 0)

    play(daemon, scene)


def test_tokens_of_its_agents_are_counted_and_no_others(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        async def spend(message: Message) -> None:
            agent = relay.clients[str(message.to)]
            for _ in range(2):  # told twice, counted once
                agent.report(
                    "tokens.used", model="claude-opus-5", inputTokens=1_000_000, outputTokens=10, usageId="u1",
                    agentName=agent.name, sessionId="x",
                )  # fmt: skip
            await say_it(message)

        relay.parts["spender"] = spend
        relay.report("tokens.used", model="claude-opus-5", inputTokens=7, outputTokens=7)
        async with relay.events(["tokens.used"], timeout=DEADLINE_S) as feed, Crew(relay, 1, None, {}) as crew:
            await crew.ask(Task("Ann", "spender", "say a"), DEADLINE_S, 0)
            crew._session_ids = {event.session_id async for event in take(feed, 3) if event.by_agent != "Lead"}
        assert (crew.usage.total_tokens, crew.usage.estimated_cost_usd) == (1_000_010, 5.00025)

    async def take(feed: EventFeed, count: int) -> AsyncIterator[TokensUsed]:
        async for event in feed:
            assert isinstance(event, TokensUsed)
            yield event
            count -= 1
            if not count:
                return

    play(daemon, scene)
