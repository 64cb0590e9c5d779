"""Patterns with agents that are really started: scripted ones, in terminals, released whatever happens."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay import RelayClient, patterns
from agent_relay.events.types import AgentSpawned, SessionEnded
from tests.integration.stage import DEADLINE_S, Stage, until
from tests.integration.test_spawning import is_alive

pytestmark = pytest.mark.terminals
ID = r"[\s\S]*result (task-[\w-]+) <<<"
TURNS = [
    {"when": r"Count (\d+)" + ID, "busy_ms": 20, "say": [r"->relay:result \2 <<<", r'{"count": \1}', ">>>"]},
    {"when": r"Count crash", "busy_ms": 20, "exit": 7},
    {"when": r"Count hang", "busy_ms": 20, "say": ["I think about it."]},
    {"when": r"(?:Count garbage|was not accepted)" + ID, "busy_ms": 20, "say": [r"->relay:result \1 <<<many>>>"]},
    {"when": r"Make one of[\s\S]*pear is ripe", "busy_ms": 20, "say": ["->relay:Lead a salad"]},
    {"when": r"Work on: break", "busy_ms": 20, "exit": 7},
    {"when": r"Work on: last", "busy_ms": 20, "say": ["->relay:Lead last words"], "exit": 0},
    {"when": r"Work on: sleep", "busy_ms": 20, "say": ["I think about it."]},
    {"when": r"Work on: (\w+)", "busy_ms": 20, "say": [r"->relay:Lead \1 is ripe"]},
]
# The first to be started ends when it is given its task.
FLAKY = '#!/bin/sh\nif mkdir "{0}/begun" 2>/dev/null; then exec "{0}/Breaking.sh"; else exec "{0}/Worker.sh"; fi\n'


class Scene:
    """A daemon that may start workers, and what became of those it started."""

    def __init__(self, folder: Path) -> None:
        self.worker, self.flaky = str(folder / "Worker.sh"), str(folder / "Flaky.sh")
        self.stage = Stage(folder, f"--spawn-allow={self.worker},{self.flaky}", "--spawns-per-minute=1000")
        self.stage.play("Worker", turns=TURNS)
        self.stage.play("Breaking", turns=[{"when": "Work on", "busy_ms": 20, "exit": 7}])
        Path(self.flaky).write_text(FLAKY.format(folder))
        Path(self.flaky).chmod(0o755)

    def run(
        self, play: Callable[[RelayClient], Coroutine[Any, Any, None]], deadline_s: float = DEADLINE_S
    ) -> list[dict[str, Any]]:  # fmt: skip
        """Plays it as Lead. Returns the sessions of the agents it started, of which none runs any more."""

        async def main() -> list[dict[str, Any]]:
            async with self.stage.daemon.connect("Lead") as relay, asyncio.timeout(deadline_s):
                before = {session["session_id"] for session in (await relay.agents()).sessions}
                await play(relay)
                started = [session for session in (await relay.agents()).sessions if session["session_id"] not in before]
            assert started
            assert {session["status"] for session in started} == {"ended"}
            until(lambda: not [session for session in started if is_alive(session["pid"])], "their processes are gone")
            async with self.stage.daemon.connect(observer=True) as relay:
                left = {agent.name for agent in (await relay.agents()).agents} & {session["agent"] for session in started}
                assert not left  # nor is a name of theirs
                assert (await relay.dead_letters()).messages == []
            return started

        return asyncio.run(main())

    def close(self) -> None:
        with self.stage.daemon.connect_sync("Lead") as lead:
            for session in lead.agents().sessions:
                if session["status"] != "ended":  # left by a test that has failed
                    lead.release(session["agent"])
        self.stage.close()


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    folder = Path(tempfile.mkdtemp(prefix="relay-p-"))
    made = Scene(folder)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


async def most_at_once(relay: RelayClient) -> int:
    """As the relay's events have it."""
    running = most = 0
    for event in (await relay.past_events(["agent.spawned", "session.ended"], limit=500)).events:
        running += isinstance(event, AgentSpawned)
        running -= isinstance(event, SessionEnded)
        most = max(most, running)
    return most


def test_map_reduce_with_real_agents(scene: Scene) -> None:
    async def play(relay: RelayClient) -> None:
        found = await patterns.map_reduce(
            relay, task="Judge fruit.", items=["apple", "pear", "plum"], worker_cli=scene.worker, max_workers=2,
            reduce="Make one of these.", timeout=DEADLINE_S, backend="pty",
        )  # fmt: skip
        assert [(each.item, each.result, each.attempts) for each in found.results] == [
            ("apple", "apple is ripe", 1),
            ("pear", "pear is ripe", 1),
            ("plum", "plum is ripe", 1),
        ]
        assert (found.failures, found.output, found.worker_count) == ((), "a salad", 4)
        assert await most_at_once(relay) == 2

    started = scene.run(play)
    assert [session["reason"] for session in started] == ["released"] * 4
    assert len({session["agent"] for session in started}) == 4


def test_a_worker_that_ends_is_replaced_as_often_as_allowed(scene: Scene) -> None:
    async def play(relay: RelayClient) -> None:
        told: list[patterns.Progress] = []
        mended = await patterns.map_reduce(
            relay,
            task="Judge.",
            items=["kiwi"],
            worker_cli=scene.flaky,
            timeout=DEADLINE_S,
            on_progress=told.append,
            backend="pty",
        )
        assert [(each.result, each.attempts) for each in mended.results] == [("kiwi is ripe", 2)]
        assert [step.kind for step in told] == ["started", "released", "failed", "started", "answered", "released"]
        lost = await patterns.map_reduce(
            relay, task="Judge.", items=["break", "last"], worker_cli=scene.worker, retries=0, timeout=DEADLINE_S, backend="pty"
        )
        (failure,) = lost.failures
        assert (failure.item, failure.attempts) == ("break", 1)
        assert [(each.item, each.result) for each in lost.results] == [("last", "last words")]
        assert failure.error.message.endswith("ended without replying (crashed).")

    reasons = [session["reason"] for session in scene.run(play)]
    assert (reasons[:2], "crashed" in reasons[2:]) == (["crashed", "released"], True)


def test_a_pattern_that_is_cancelled_leaves_no_agent(scene: Scene) -> None:
    async def play(relay: RelayClient) -> None:
        steps: asyncio.Queue[patterns.Progress] = asyncio.Queue()
        whole = asyncio.create_task(
            patterns.map_reduce(
                relay,
                task="Judge.",
                items=["sleep", "sleep"],
                worker_cli=scene.worker,
                on_progress=steps.put_nowait,
                backend="pty",
            )
        )
        assert [(await steps.get()).kind for _ in range(2)] == ["started", "started"]
        whole.cancel()
        with pytest.raises(asyncio.CancelledError):
            await whole

    assert [session["reason"] for session in scene.run(play)] == ["released", "released"]


def test_a_start_that_is_called_off_leaves_no_agent(scene: Scene) -> None:
    async def play(relay: RelayClient) -> None:
        stages = [patterns.Task("Judge", scene.worker, "Work on: sleep")]
        whole = asyncio.create_task(patterns.pipeline(relay, stages=stages, backend="pty"))
        while not any(session["status"] == "starting" for session in (await relay.agents()).sessions):
            await asyncio.sleep(0.005)
        whole.cancel()
        with pytest.raises(asyncio.CancelledError):
            await whole

    assert len(scene.run(play)) == 1


def test_a_fan_out_ends_with_the_first_answer_of_real_agents(scene: Scene) -> None:
    async def play(relay: RelayClient) -> None:
        tasks = [{"name": name, "cli": scene.worker, "task": f"Work on: {name}"} for name in ("sleep", "plum")]
        found = await patterns.fan_out(relay, tasks=tasks, wait_for="any", timeout=DEADLINE_S, backend="pty")
        assert [(answer.name, answer.text) for answer in found.completed] == [("plum", "plum is ripe")]
        assert (found.failed, found.pending) == ((), ("sleep",))

    scene.run(play)


def test_a_pipeline_and_fan_outs_with_real_agents(scene: Scene) -> None:
    async def play(relay: RelayClient) -> None:
        stages = [
            patterns.Task("First", scene.worker, "Work on: {{input}}"),
            patterns.Task("Then", scene.worker, "Work on: so{{input}}"),
        ]
        staged = await patterns.pipeline(relay, stages=stages, input="fig", timeout=DEADLINE_S, backend="pty")
        assert [(stage.input, stage.output) for stage in staged.stages] == [
            ("fig", "fig is ripe"),
            ("fig is ripe", "sofig is ripe"),
        ]
        tasks = [patterns.Task(name, scene.worker, f"Work on: {name}") for name in ("plum", "pear", "sleep")]
        every = await patterns.fan_out(relay, tasks=tasks[:2], wait_for="all", timeout=DEADLINE_S, backend="pty")
        assert sorted(answer.text for answer in every.completed) == ["pear is ripe", "plum is ripe"]
        two = await patterns.fan_out(relay, tasks=tasks, wait_for=2, timeout=DEADLINE_S, backend="pty")
        assert (len(two.completed), two.pending) == (2, ("sleep",))
        late = await patterns.fan_out(relay, tasks=tasks[2:], timeout=3, backend="pty")
        assert (late.completed, late.pending) == ((), ("sleep",))

    scene.run(play, 220)


def test_thirty_items_ten_workers_and_three_that_misbehave(scene: Scene) -> None:
    items = [str(number) for number in range(30)]
    items[3], items[7], items[15] = "hang", "crash", "garbage"
    schema = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}

    async def play(relay: RelayClient) -> None:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        await patterns.pipeline(relay, stages=[patterns.Task("Probe", scene.worker, "Count 1")], timeout=120, backend="pty")
        # As long as ten at once may need on this machine at this hour, so that only the one that hangs takes too long.
        timeout_s = 10 + 12 * (loop.time() - begun_s)
        told: list[patterns.Progress] = []
        running = most = 0

        def hear(step: patterns.Progress) -> None:
            nonlocal running, most
            told.append(step)
            running += (step.kind == "started") - (step.kind == "released")
            most = max(most, running)

        found = await patterns.map_reduce(
            relay, task="", items=items, worker_cli=scene.worker, template="Count {{item}}", schema=schema, retries=0,
            timeout=timeout_s, backend="pty", on_progress=hear,
        )  # fmt: skip
        good = [int(item) for item in items if item.isdecimal()]
        assert [(each.item, each.value) for each in found.results] == [(str(n), {"count": n}) for n in good]
        errors = {each.item: each.error.message for each in found.failures}
        assert list(errors) == ["hang", "crash", "garbage"]
        assert "did not reply within" in errors["hang"]
        assert "ended without replying (crashed)" in errors["crash"]
        assert "gave a wrong result twice. It is not JSON" in errors["garbage"]
        assert (found.worker_count, most) == (30, 10)  # by default, ten at once
        assert [step.task for step in told if step.kind == "asked_again"] == ["Worker"]
        while (mine := (await relay.agents()).find("Lead")) is None or (mine.queue_depth, mine.inflight) != (0, 0):
            await asyncio.sleep(0.01)  # until the last acknowledgement is written; the scene's deadline ends it

    assert len(scene.run(play, 220)) == 31
