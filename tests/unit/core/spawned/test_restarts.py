"""Agents that crash and are started again: only where their start said so, only so often, and over the daemon's own end."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.core.spawned.restarts import STEADY_MS
from agent_relay.protocol.errors import ErrorCode, RelayError
from tests.unit.core.spawned.test_orders import Scene

SOON_MS, LONG_MS = 1_200, 70_000


def crash(scene: Scene, name: str = "Bob", code: int | None = 1) -> None:
    scene.end(code, name)


def come_back(scene: Scene) -> Any:
    """Its next process, all the way."""
    id_ = scene.launch()
    agent = scene.join()
    scene.relay.turn(lambda: scene.spawning.running(id_))
    return agent


def begin(**more: Any) -> Scene:
    scene = Scene()
    agent = scene.start(**({"restarts": 2, "task": "x" * 300} | more))
    for task in agent.take("DELIVER"):
        agent.ack(task)
    agent.drop()
    scene.wrappers.take()
    return scene


def test_one_that_crashed_is_started_again_with_its_whole_task() -> None:
    scene = begin(environment={"ANTHROPIC_MODEL": "x"}, permission_mode="plan", model="opus", role="reviewer", team="t1")
    first = scene.session()
    crash(scene)
    scene.relay.advance(900)
    assert scene.wrappers.take() == []
    scene.relay.advance(SOON_MS)
    assert scene.wrappers.take() == ["start"]
    again = scene.session()
    kept = ("agent", "cli", "permission_mode", "model", "role", "team", "spawned_by", "restart_limit")
    assert {name: again[name] for name in kept} == {name: first[name] for name in kept}
    assert (again["restarts"], again["status"]) == (1, "starting")
    assert again["session_id"] != first["session_id"]
    assert scene.wrappers.environments == [{"ANTHROPIC_MODEL": "x"}] * 2
    assert come_back(scene).payload("DELIVER")["body"] == "x" * 300


def test_a_task_that_still_waits_is_not_given_twice() -> None:
    scene = Scene()
    scene.start(restarts=2, task="Look.").drop()
    for _ in range(2):
        crash(scene)
        scene.relay.advance(2 * SOON_MS)
        again = come_back(scene)
        assert again.bodies() == ["Look."]
        again.drop()


@pytest.mark.parametrize(("code", "more"), [(0, {}), (1, {"restarts": 0})])
def test_one_that_ended_by_itself_or_is_not_to_come_back_stays_ended(code: int, more: dict[str, Any]) -> None:
    scene = begin(**more)
    crash(scene, code=code)
    scene.relay.advance(LONG_MS)
    assert scene.wrappers.take() == []


def test_one_that_was_released_stays_ended() -> None:
    scene = begin()
    scene.lead.say("RELEASE", {"name": "Bob"})
    crash(scene)
    scene.relay.advance(LONG_MS)
    assert scene.wrappers.take() == ["stop"]


def test_it_is_started_so_often_and_no_more() -> None:
    scene = begin()
    for _ in range(4):
        crash(scene)
        scene.relay.advance(LONG_MS)
        if scene.wrappers.take():
            come_back(scene).drop()
    assert scene.session()["restarts"] == 2
    assert sum(found["agent"] == "Bob" for found in scene.spawning.describe()) == 3


def test_a_long_run_resets_the_count() -> None:
    scene = begin(restarts=1)
    for _ in range(3):
        scene.relay.wall_ms += STEADY_MS
        scene.relay.advance(50)
        crash(scene)
        scene.relay.advance(SOON_MS)
        assert scene.wrappers.take() == ["start"]
        come_back(scene).drop()


def test_the_next_daemon_starts_it_again() -> None:
    scene = begin()
    crash(scene)
    scene.restart()
    scene.wrappers.take()
    scene.relay.advance(SOON_MS)
    assert scene.wrappers.take() == ["start"]
    come_back(scene).drop()
    scene.restart()  # a session that has a successor has no other
    assert scene.wrappers.take() == ["adopt"]
    scene.relay.advance(LONG_MS)
    assert scene.wrappers.take() == []


def test_a_release_before_it_is_back_cancels_it_for_good() -> None:
    scene = begin()
    crash(scene)
    request = scene.lead.say("RELEASE", {"name": "bob"})
    assert scene.lead.payload("RELEASE_RESULT") == {"name": "Bob", "success": True, "reply_to": request}
    scene.restart()
    scene.relay.advance(LONG_MS)
    assert scene.wrappers.take() == []


def test_one_that_never_ran_is_told_and_not_tried_again() -> None:
    scene = Scene()
    request = scene.ask(restarts=3)
    id_ = scene.launch()
    scene.relay.turn(lambda: scene.spawning.failed(id_, "No."))
    assert "No." in scene.error(request)["message"]
    scene.wrappers.take()
    scene.relay.advance(LONG_MS)
    assert scene.wrappers.take() == []


def test_a_start_that_is_refused_counts_and_a_busy_moment_does_not() -> None:
    scene = begin()
    scene.spawning.pause("The budget is spent.")
    crash(scene)
    scene.relay.advance(LONG_MS)
    scene.spawning.resume()
    assert scene.session()["restarts"] == 0
    scene.wrappers.refusal = RelayError(ErrorCode.INVALID_TARGET, "It is gone.")
    scene.relay.advance(3 * LONG_MS)
    assert scene.session()["restarts"] == 2
    scene.wrappers.refusal = None
    scene.relay.advance(3 * LONG_MS)
    assert scene.wrappers.take() == []


@pytest.mark.parametrize("more", [{"restarts": 1}, {"model": "opus"}, {"team": "t"}])
def test_an_agent_that_may_only_start_agents_chooses_none_of_it(more: dict[str, Any]) -> None:
    scene = Scene(agent_rights=frozenset({("ann", "spawn")}))
    ann = scene.relay.connect("Ann", capabilities={"control": True})
    scene.ask(by=ann, **more)
    assert ann.payload("ERROR")["details"]["right"] == "spawn-any"


def test_a_rule_against_starting() -> None:
    scene = Scene(agent_rights=frozenset({("ann", "spawn")}))
    ann = scene.relay.connect("Ann", capabilities={"control": True})
    scene.lead.say(
        "CONTROL", {"command": "set_team", "rules": [{"effect": "deny", "action": "spawn", "from": "Ann", "to": "B*"}]}
    )
    scene.ask(by=ann)
    assert ann.payload("ERROR")["details"]["reason"] == "team_rule"
    scene.ask(by=ann, name="Carl")
    assert scene.wrappers.take() == ["start"]


@pytest.mark.parametrize(("more", "field"), [({"model": "--evil"}, "payload.model"), ({"restarts": -1}, "payload.restarts")])
def test_values_that_cannot_be_meant(more: dict[str, Any], field: str) -> None:
    assert Scene().refusal(**more)["details"]["field"] == field
