"""Whole plans with agents inside the test's process: results passed on, failures, and going on afterwards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_relay.events.prices import Prices
from agent_relay.patterns.run.journal import Journal
from agent_relay.patterns.run.plan import read_plan
from agent_relay.patterns.run.runner import RunResult, StepChange, StepProgress, run_plan
from agent_relay.sdk.messages import Message
from agent_relay.testing.daemon import DaemonProcess
from tests.unit.patterns.standing_in import StandIn, play, refuse, say_it

HEAD = "agents: {cli: talker, timeout: 60}\n"


class Run:
    def __init__(self, folder: Path, text: str, **given: str) -> None:
        self.plan = read_plan(HEAD + text, "f.yaml", "f", given)
        self.folder = folder
        self.heard: list[StepChange | StepProgress] = []

    async def go(self, relay: StandIn) -> RunResult:
        self.heard.clear()
        with Journal(str(self.folder), self.plan) as journal:
            journal.open()
            return await run_plan(relay, self.plan, journal, self.heard.append, Prices())

    @property
    def statuses(self) -> list[tuple[str, str]]:
        return [(change.step, change.status) for change in self.heard if isinstance(change, StepChange)]


def test_results_are_passed_on(daemon: DaemonProcess, tmp_path: Path) -> None:
    text = """
vars: {words: [a, b]}
steps:
  - {id: one, map: {task: "say {{item}}!", items: "{{vars.words}}"}}
  - {id: two, pipeline: {input: "{{steps.one.results.1.result}}", stages: [{name: S, task: "say got {{input}}"}]}}
  - {id: three, fan_out: {tasks: [{name: A, task: "say {{steps.two.output}}"}, {name: B, task: say b}]}}
output: "{{steps.three.results.A}}; {{steps.one.values}}"
"""

    async def scene(relay: StandIn) -> None:
        run = Run(tmp_path, text)
        found = await run.go(relay)
        assert (found.failed_step, found.output) == ("", 'got b!; ["a!","b!"]')
        assert run.statuses == [(id_, status) for id_ in ("one", "two", "three") for status in ("begun", "done")]
        assert found.steps["one"]["failures"] == []

    play(daemon, scene)


def test_an_item_that_failed_is_all_that_is_done_again(daemon: DaemonProcess, tmp_path: Path) -> None:
    text = """
steps:
  - {id: one, map: {task: "{{item}}", items: [say a, say b, say c], retries: 0}}
  - {id: two, pipeline: {stages: [{name: S, task: "say {{steps.one.output}}"}]}}
"""
    bad = {"say b"}

    async def moody(message: Message) -> None:
        await (refuse if message.body.partition("\n")[0] in bad else say_it)(message)

    async def scene(relay: StandIn) -> None:
        relay.parts["talker"] = moody
        run = Run(tmp_path, text)
        first = await run.go(relay)
        assert (first.failed_step, first.failures) == ("one", ("say b: I will not.",))
        assert [each["result"] for each in first.steps["one"]["results"]] == ["a", "c"]
        assert run.statuses == [("one", "begun"), ("one", "failed")]
        bad.clear()
        before = len(relay.started)
        again = await run.go(relay)
        assert again.output == "say a:"  # the first line of what it was told to say
        assert len(relay.started) - before == 2  # one item, and the pipeline
        assert [each["result"] for each in again.steps["one"]["results"]] == ["a", "b", "c"]
        kept = await run.go(relay)
        assert (len(relay.started) - before, run.statuses) == (2, [("one", "kept"), ("two", "kept")])
        assert kept.output == again.output

    play(daemon, scene)


def test_a_step_may_go_on_without_all_its_results(daemon: DaemonProcess, tmp_path: Path) -> None:
    text = """
steps:
  - id: one
    on_failure: continue
    fan_out: {tasks: [{name: A, task: say a}, {name: B, cli: unwilling, task: x}]}
  - {id: two, pipeline: {stages: [{name: S, task: "say {{steps.one.failed.B}}"}]}}
"""

    async def scene(relay: StandIn) -> None:
        found = await Run(tmp_path, text).go(relay)
        assert (found.failed_step, found.output) == ("", "I will not.")

    play(daemon, scene)


def test_every_pattern_can_be_a_step(daemon: DaemonProcess, tmp_path: Path) -> None:
    text = """
steps:
  - {id: s, supervise: {tasks: [{name: A, task: say a}], idle: 1m}}
  - {id: d, debate: {question: Q, sides: [{name: X, task: x}, {name: Y, task: y}], judge: {name: J, cli: judge}, rounds: 1}}
  - {id: v, vote: {question: Q, voters: [{name: X, cli: voter}, {name: Y, cli: voter}], options: [go, stay], rule: unanimous}}
output: "{{steps.s.output}} {{steps.d.winner}} {{steps.v.choice}}"
"""
    replies: Mapping[str, str] = {"judge": '{"winner": "Y", "verdict": "so"}', "voter": '{"choice": "go"}'}

    async def scene(relay: StandIn) -> None:
        for name, reply in replies.items():

            async def answer(message: Message, reply: str = reply) -> None:
                await message.reply(reply)

            relay.parts[name] = answer
        found = await Run(tmp_path, text).go(relay)
        assert (found.failed_step, found.output) == ("", "A:\na Y go")
        assert found.usage.total_tokens == 0

    play(daemon, scene)


def test_what_is_only_known_when_it_runs_fails_its_step(daemon: DaemonProcess, tmp_path: Path) -> None:
    cases: list[tuple[str, Any]] = [
        ('{id: one, map: {task: x, items: "{{vars.n}}"}}', "must be a list"),
        ('{id: one, map: {task: x, items: "{{vars.o.p}}"}}', "leads nowhere"),
    ]

    async def scene(relay: StandIn) -> None:
        for step, reason in cases:
            found = await Run(tmp_path, f"vars: {{n: 3, o: {{q: 1}}}}\nsteps:\n  - {step}\n").go(relay)
            assert (found.failed_step, bool(re.search(reason, found.failures[0]))) == ("one", True)
        assert relay.started == []

    play(daemon, scene)
