from __future__ import annotations

import pytest

from agent_relay import patterns
from agent_relay.testing.daemon import DaemonProcess
from tests.unit.patterns.standing_in import StandIn, play


def test_each_stage_is_given_what_the_one_before_gave(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        stages: list[patterns.Task | dict[str, str]] = [
            patterns.Task("Plan", "talker", "say a {{input}}"),
            {"name": "Build", "cli": "talker", "task": "say b {{input}} c"},
            patterns.Task("Test", "talker", "say d"),
        ]
        found = await patterns.pipeline(relay, stages=stages, input="{{input}}")
        assert [(stage.name, stage.input, stage.output) for stage in found.stages] == [
            ("Plan", "{{input}}", "a {{input}}"),
            ("Build", "a {{input}}", "b a {{input}} c"),
            ("Test", "b a {{input}} c", "d"),
        ]
        assert (found.output, relay.most_running) == ("d", 1)
        assert [name.partition("-")[0] for name in relay.started] == ["Plan", "Build", "Test"]

    play(daemon, scene)


def test_what_has_no_place_for_the_input_is_followed_by_it(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        found = await patterns.pipeline(relay, stages=[patterns.Task("Echo", "talker", "Do as told.")], input="say yes")
        assert found.output == "yes"

    play(daemon, scene)


def test_a_stage_that_fails_ends_it_and_the_others_results_are_kept(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        stages = [patterns.Task(*words) for words in (("A", "talker", "say x"), ("B", "unwilling", ""), ("C", "talker", "say z"))]
        with pytest.raises(patterns.PipelineFailed, match="I will not") as failed:
            await patterns.pipeline(relay, stages=stages)
        assert (failed.value.task, failed.value.attempts) == ("B", 1)
        assert [(stage.name, stage.output) for stage in failed.value.stages] == [("A", "x")]
        assert len(relay.started) == 2

    play(daemon, scene)
