"""The status line: what it says of an agent, and that a start without a prompt becomes a finding."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_relay.protocol.holds import Hold
from agent_relay.protocol.states import ClientState
from agent_relay.terminal.agent import status_line
from agent_relay.terminal.agent.status_line import StatusLine, describe_status
from agent_relay.terminal.delivery.queue import DeliveryQueue
from agent_relay.terminal.reports.relay_link import RelayLink
from agent_relay.terminal.reports.reporter import CurrentState, Reporter


def now(state: str = "idle", door: str = "claude inbox", hold: str = "", *, is_paused: bool = False) -> CurrentState:
    return CurrentState(state, door, hold, is_paused)


@pytest.mark.parametrize(
    ("state", "waiting", "is_away", "line"),
    [
        (now(), 0, False, "Bob · claude inbox · idle"),
        (now("working"), 1, False, "Bob · claude inbox · working, 1 waits"),
        (now("working"), 3, True, "Bob · claude inbox · relay away, 3 wait"),
        (now("waiting", "typing"), 0, False, "Bob · typing · asks for a decision"),
        (now("starting", ""), 0, False, "Bob · finding a way in · starting"),
        (now("starting", "typing", "prompt"), 2, False, "Bob · typing · prompt not recognised, 2 wait"),
        (now(is_paused=True), 1, False, "Bob · claude inbox · paused, 1 waits"),
        (now(door="#(touch x)"), 0, False, "Bob · (touch x) · idle"),
    ],
)
def test_what_it_says(state: CurrentState, waiting: int, is_away: bool, line: str) -> None:
    assert describe_status("Bob", state, waiting, is_away=is_away) == line


class Daemon:
    state = ClientState.READY

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

    def report(self, kind: str, /, **fields: Any) -> None:
        assert kind == "agent.state"
        self.told = fields


class Bar:
    def __init__(self) -> None:
        self.daemon = Daemon()
        link = RelayLink(self.daemon, lambda: self.daemon)  # type: ignore[arg-type, return-value]
        self.reporter = Reporter(link)
        self.lines: list[str] = []
        self.line = StatusLine("Bob", self.reporter, link, DeliveryQueue(), self.show)

    async def show(self, text: str) -> None:
        self.lines.append(text)

    async def until(self, line: str) -> None:
        async with asyncio.timeout(10):
            while self.lines[-1:] != [line]:
                await asyncio.sleep(0.005)


def test_it_follows_the_state_and_says_nothing_twice() -> None:
    async def run() -> None:
        bar = Bar()
        watching = asyncio.create_task(bar.line.run())
        await bar.until("Bob · finding a way in · starting")
        bar.reporter.door("typing")
        bar.reporter.state("idle")
        await bar.until("Bob · typing · idle")
        bar.reporter.state("idle")
        bar.reporter.state("waiting", "Proceed?")
        await bar.until("Bob · typing · asks for a decision")
        watching.cancel()
        assert len(bar.lines) == len(set(bar.lines))

    asyncio.run(run())


def test_a_start_that_goes_on_is_a_finding_until_a_prompt_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_line, "STARTING_S", 0.05)

    async def run() -> None:
        bar = Bar()
        bar.reporter.door("typing")
        watching = asyncio.create_task(bar.line.run())
        await bar.until("Bob · typing · prompt not recognised")
        assert bar.daemon.told["hold"] == "prompt"
        bar.reporter.state("idle")
        await bar.until("Bob · typing · idle")
        assert "hold" not in bar.daemon.told
        watching.cancel()

    asyncio.run(run())


def test_another_reason_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_line, "STARTING_S", 0.0)

    async def run() -> None:
        bar = Bar()
        bar.reporter.held(Hold("program", "it runs what is typed"))
        watching = asyncio.create_task(bar.line.run())
        await bar.until("Bob · finding a way in · nothing can be typed")
        bar.reporter.state("idle")
        await asyncio.sleep(0)
        assert bar.daemon.told["hold"] == "program"
        watching.cancel()

    asyncio.run(run())
