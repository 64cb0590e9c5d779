"""The book about agents that the daemon starts, over a service that does what the test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from agent_relay.core.announcements import _session_started
from agent_relay.core.spawned.book import REMEMBERED
from agent_relay.core.spawned.life import START_MS, STOP_MS
from agent_relay.events.types import SessionStarted
from agent_relay.ports.agents import SessionRow, SessionStatus
from agent_relay.ports.callers import Caller
from agent_relay.protocol.errors import ErrorCode, RelayError
from tests.support.harness import HarnessClient, RelayHarness


class Wrappers:
    """`ports.AgentService`: remembers what it was asked for. Processes come and go when the test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.environments: list[Mapping[str, str]] = []
        self.saved = b"[]"
        self.refusal: RelayError | None = None

    def start(self, session: SessionRow, environment: Mapping[str, str]) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.asked.append(("start", session.name))
        self.environments.append(environment)

    def adopt(self, session: SessionRow) -> None:
        self.asked.append(("adopt", session.name))

    def stop(self, session: SessionRow, *, force: bool) -> None:
        self.asked.append(("kill" if force else "stop", session.name))

    def save(self, sessions: Sequence[SessionRow]) -> None:
        self.saved = msgspec.json.encode(sessions)

    def take(self) -> list[str]:
        asked, self.asked = self.asked, []
        return [what for what, _ in asked]


class Scene:
    def __init__(self, **limits: Any) -> None:
        self.relay = RelayHarness(**limits)
        self.wrappers = Wrappers()
        self.changes: list[str] = []
        self._begin()
        self.lead = self.relay.connect("Lead")

    def _begin(self) -> None:
        self.spawning = self.relay.relay.spawning
        self.spawning._on_change = lambda session: self.changes.append(f"{session.name} {session.status} {session.reason or ''}")
        self.spawning.begin(self.wrappers, msgspec.json.decode(self.wrappers.saved, type=list[SessionRow]))

    def restart(self) -> None:
        token = self.lead.token
        self.relay.restart()
        self._begin()
        self.lead = self.relay.connect("Lead", token=token)

    def ask(self, name: str = "Bob", *, by: HarnessClient | None = None, **more: Any) -> str:
        return (by or self.lead).say("SPAWN", {"name": name, "cli": "claude", **more})

    def refusal(self, **more: Any) -> dict[str, Any]:
        request = self.ask(**more)
        return self.error(request)

    def error(self, request: str) -> dict[str, Any]:
        found = self.lead.payload("ERROR")
        assert (found["reply_to"], found["fatal"]) == (request, False)
        return found

    def session(self, name: str = "Bob") -> dict[str, Any]:
        return [found for found in self.spawning.describe() if found["agent"] == name][-1]

    def launch(self, name: str = "Bob", pid: int = 77) -> str:
        """There is a process."""
        id_ = str(self.session(name)["session_id"])
        self.relay.turn(lambda: self.spawning.launched(id_, pid, "mark"))
        return id_

    def join(self, name: str = "Bob", **hello: Any) -> HarnessClient:
        """Its wrapper connects."""
        meta = {"session": self.session(name)["session_id"], "pid": 77}
        return self.relay.connect(name, capabilities={"control": True}, meta=meta, **hello)

    def start(self, name: str = "Bob", **more: Any) -> HarnessClient:
        """All the way."""
        request = self.ask(name, **more)
        id_ = self.launch(name)
        agent = self.join(name)
        self.relay.turn(lambda: self.spawning.running(id_))
        result = self.lead.payload("SPAWN_RESULT")
        assert result == {"name": name, "success": True, "session_id": id_, "reply_to": request}
        return agent

    def end(self, code: int | None, name: str = "Bob") -> None:
        id_ = str(self.session(name)["session_id"])
        self.relay.turn(lambda: self.spawning.ended(id_, code))


@pytest.fixture
def scene() -> Scene:
    return Scene()


# --- starting -----------------------------------------------------------------------------------------------------------


def test_an_agent_is_started_and_its_session_is_known_before(scene: Scene) -> None:
    bob = scene.start(environment={"LANG": "C"})
    assert bob.welcome["session_id"] == scene.session()["session_id"]
    assert (scene.wrappers.take(), scene.wrappers.environments) == (["start"], [{"LANG": "C"}])
    assert scene.changes == ["Bob running "]
    assert (scene.session()["status"], scene.session()["spawned_by"], scene.session()["pid"]) == ("running", "Lead", 77)


def test_somebody_else_under_the_name_is_not_the_one_that_was_started(scene: Scene) -> None:
    scene.ask(task="x")
    stranger = scene.relay.connect("Bob")
    assert stranger.welcome["session_id"] != scene.session()["session_id"]
    scene.relay.advance(2_000)
    assert stranger.bodies() == []


def test_the_task_is_the_first_message_and_comes_once(scene: Scene) -> None:
    scene.ask(task="Fix it.")
    id_ = scene.launch()
    bob = scene.join()
    assert bob.bodies() == []  # the program does not run yet
    scene.relay.turn(lambda: scene.spawning.running(id_))
    (frame,) = bob.take("DELIVER")
    assert (frame["from"], frame["payload"], frame["delivery"]["seq"]) == ("Lead", {"body": "Fix it."}, 1)
    bob.ack(frame)
    token = bob.token
    bob.drop()
    again = scene.join(token=token)
    scene.relay.advance(5_000)
    assert again.bodies() == []


def test_a_task_comes_once_whatever_else_was_sent() -> None:
    scene = Scene(dedup_ids=1)
    bob = scene.start(task="Fix it.")
    scene.lead.send("Bob", "and this")
    frames = bob.take("DELIVER")
    assert [frame["payload"]["body"] for frame in frames] == ["Fix it.", "and this"]
    for frame in frames:
        bob.ack(frame)
    scene.relay.advance(5_000)
    assert bob.bodies() == []


def test_a_task_is_given_again_to_a_store_that_failed(scene: Scene) -> None:
    scene.ask(task="Fix it.")
    id_ = scene.launch()
    bob = scene.join()
    scene.relay.store.fail_next()
    scene.relay.turn(lambda: scene.spawning.running(id_))
    assert bob.bodies() == []
    scene.relay.advance(2_000)
    assert bob.bodies() == ["Fix it."]


def test_an_observer_starts_agents_and_gives_no_tasks(scene: Scene) -> None:
    watcher = scene.relay.connect("Watcher", mode="observer")
    scene.ask(by=watcher, task="x")
    assert watcher.payload("ERROR")["code"] == "PERMISSION_DENIED"
    scene.ask(by=watcher)
    assert scene.session()["spawned_by"] == "human"


@pytest.mark.parametrize("ran", [True, False])
def test_a_wish_that_is_said_again_after_its_agent_has_ended_starts_nothing(scene: Scene, ran: bool) -> None:
    """As a client does that lost its connection before the answer."""
    frame = scene.lead.frame("SPAWN", {"name": "Bob", "cli": "claude"}, id="wish")
    scene.lead.say_frames(frame)
    id_ = scene.launch()
    if ran:
        scene.join()
        scene.relay.turn(lambda: scene.spawning.running(id_))
    scene.end(1)
    scene.lead.take()
    scene.wrappers.take()
    scene.lead.say_frames(frame)
    error = scene.error("wish")
    assert (error["code"], error["details"]["reason"]) == ("SERVICE_UNAVAILABLE", "start_failed")
    assert scene.wrappers.take() == []


def test_the_same_wish_is_one_agent(scene: Scene) -> None:
    wish = {"name": "Bob", "cli": "claude"}
    for _ in range(2):
        scene.lead.say("SPAWN", wish, id="wish-1")
    id_ = scene.launch()
    scene.relay.turn(lambda: scene.spawning.running(id_))
    scene.lead.say("SPAWN", wish, id="wish-1")
    assert [frame["payload"]["session_id"] for frame in scene.lead.take("SPAWN_RESULT")] == [id_] * 3
    assert scene.wrappers.take() == ["start"]
    assert scene.refusal()["details"]["reason"] == "name_in_use"


@pytest.mark.parametrize(
    ("asked", "code", "details"),
    [
        ({"name": "a b"}, "INVALID_TARGET", {}),
        ({"name": "relay"}, "INVALID_TARGET", {}),
        ({"name": "Lead"}, "PERMISSION_DENIED", {"reason": "name_in_use"}),
        ({"cli": "bash"}, "INVALID_TARGET", {"reason": "cli_not_allowed"}),
        ({"cli": "/usr/bin/claude"}, "INVALID_TARGET", {"reason": "cli_not_allowed"}),
        ({"cli": "claude --dangerously"}, "INVALID_TARGET", {"reason": "cli_not_allowed"}),
        ({"cli": "claude\nrm"}, "INVALID_TARGET", {"reason": "cli_not_allowed"}),
        ({"backend": "screen"}, "INVALID_FORMAT", {"field": "payload.backend"}),
        (
            {"environment": {"LD_PRELOAD": "x"}},
            "INVALID_TARGET",
            {
                "reason": "environment_not_allowed",
                "allowed": ["*_API_KEY", "*_MODEL", "LANG", "LC_*", "TZ", "NO_COLOR"],
            },
        ),
        ({"environment": {"AGENT_RELAY_MODEL": "x"}}, "INVALID_TARGET", {"reason": "environment_not_allowed"}),
        ({"environment": {"A=B_MODEL": "x"}}, "INVALID_TARGET", {"reason": "environment_not_allowed"}),
        ({"environment": {"A_MODEL": "x\0y"}}, "INVALID_TARGET", {"reason": "environment_not_allowed"}),
        ({"environment": {"A_MODEL": 7}}, "INVALID_FORMAT", {}),
        ({"permission_mode": "yolo"}, "INVALID_TARGET", {"reason": "mode_unknown"}),
        ({"permission_mode": ""}, "INVALID_TARGET", {"reason": "mode_unknown"}),
        ({"permission_mode": "plan --dangerously-skip-permissions"}, "INVALID_TARGET", {"reason": "mode_unknown"}),
        ({"permission_mode": "bypassPermissions"}, "INVALID_TARGET", {"reason": "mode_not_allowed"}),
        ({"permission_mode": "auto"}, "INVALID_TARGET", {"reason": "mode_not_allowed"}),
        ({"cli": "codex", "permission_mode": "danger-full-access"}, "INVALID_TARGET", {"setting": "spawn_unattended"}),
        ({"cli": "gemini", "permission_mode": "yolo"}, "INVALID_TARGET", {"field": "payload.permission_mode"}),
        ({"permission_mode": 7}, "INVALID_FORMAT", {}),
    ],
)
def test_what_may_not_be(scene: Scene, asked: dict[str, Any], code: str, details: dict[str, str]) -> None:
    error = scene.refusal(**asked)
    assert (error["code"], details.items() <= error["details"].items()) == (code, True)
    assert (scene.wrappers.take(), scene.spawning.describe()) == ([], [])


def test_the_allow_list_is_exact() -> None:
    scene = Scene(spawn_allow=frozenset({"/opt/agent"}))
    assert scene.refusal(cli="/opt/agent2")["details"]["reason"] == "cli_not_allowed"
    scene.ask(cli="/opt/agent")
    assert scene.wrappers.take() == ["start"]


def test_a_permission_mode_is_one_that_the_cli_has(scene: Scene) -> None:
    scene.start(permission_mode="plan")
    assert (scene.session()["permission_mode"], scene.wrappers.take()) == ("plan", ["start"])
    refusal = scene.refusal(name="Carol", cli="gemini", permission_mode="acceptEdits")
    assert refusal["message"] == "'gemini' has no permission mode 'acceptEdits': it has default, plan, auto_edit, yolo."
    assert refusal["details"]["known"] == ["default", "plan", "auto_edit", "yolo"]


def test_a_program_of_no_known_cli_has_no_permission_modes() -> None:
    scene = Scene(spawn_allow=frozenset({"/opt/agent", "/opt/bin/claude"}))
    assert scene.refusal(cli="/opt/agent", permission_mode="plan")["details"]["known"] == []
    scene.ask(cli="/opt/bin/claude", permission_mode="plan")
    assert scene.wrappers.take() == ["start"]


def test_a_mode_that_asks_nobody_is_for_whoever_runs_the_daemon_to_allow() -> None:
    scene = Scene(spawn_unattended=("bypassPermissions",))
    assert scene.refusal(cli="gemini", permission_mode="yolo")["details"]["setting"] == "spawn_unattended"
    scene.ask(permission_mode="bypassPermissions")
    assert scene.wrappers.take() == ["start"]


def test_the_start_is_told_with_its_permission_mode() -> None:
    scene = Scene()
    told: list[SessionRow] = []
    scene.spawning._on_change = told.append
    scene.start(permission_mode="plan")
    started = _session_started(told[0])[0]
    assert isinstance(started, SessionStarted)
    assert started.config.permission_mode == "plan"
    assert (started.config.environment, started.agent.model, started.agent.version) == (None, None, None)


def test_the_start_is_told_with_what_is_known_of_the_program_and_no_secret() -> None:
    row = SessionRow("ses_1", "Bob", "claude", "/p", "pty", "Lead", 1, variables=["API_KEY"], known_model="opus", version="2.1")
    started = _session_started(row)[0]
    assert isinstance(started, SessionStarted)
    assert (started.agent.model, started.agent.version, started.config.environment) == ("opus", "2.1", {"API_KEY": "set"})


def test_what_the_service_refuses_is_not_in_the_book(scene: Scene) -> None:
    scene.wrappers.refusal = RelayError(ErrorCode.INVALID_TARGET, "It is not installed.", reason="cli_not_found")
    assert scene.refusal()["details"]["reason"] == "cli_not_found"
    assert scene.spawning.describe() == []


def test_there_are_not_too_many_and_not_too_fast() -> None:
    scene = Scene(max_agents=2, spawns_per_minute=3)
    scene.ask("A")
    scene.ask("B")
    error = scene.refusal(name="C")
    assert (error["code"], error["details"]["reason"]) == ("RATE_LIMITED", "too_many_agents")
    scene.end(0, "A")
    scene.lead.take()
    scene.ask("C")
    scene.end(0, "B")
    scene.lead.take()
    scene.relay.advance(10_000)
    error = scene.refusal(name="D")
    assert (error["details"]["reason"], error["retry_after_ms"]) == ("too_fast", 50_000)
    scene.relay.advance(50_000)
    scene.ask("D")
    assert scene.wrappers.take().count("start") == 4


def test_starting_can_be_paused(scene: Scene) -> None:
    scene.spawning.pause("The budget is used up.")
    error = scene.refusal()
    assert (error["code"], error["message"], error["details"]) == (
        "SERVICE_UNAVAILABLE", "The budget is used up.", {"reason": "spawning_paused"}
    )  # fmt: skip
    scene.spawning.resume()
    scene.ask()
    assert scene.wrappers.take() == ["start"]


def test_what_never_ran_is_told_and_is_no_session(scene: Scene) -> None:
    request = scene.ask()
    id_ = scene.launch()
    scene.relay.turn(lambda: scene.spawning.failed(id_, "There is no terminal."))
    error = scene.error(request)
    assert (error["message"], error["details"]["reason"]) == ("Bob could not be started. There is no terminal.", "start_failed")
    assert (scene.changes, scene.session()["status"]) == ([], "ended")
    scene.ask()
    assert scene.wrappers.take() == ["start", "start"]


def test_a_start_that_takes_too_long_is_ended(scene: Scene) -> None:
    request = scene.ask()
    scene.launch()
    scene.relay.advance(START_MS)
    assert scene.error(request)["details"]["reason"] == "start_failed"
    assert scene.wrappers.take() == ["start", "kill"]
    scene.end(None)
    assert scene.session()["status"] == "ended"


# --- ending -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "reason"), [(0, "completed"), (1, "crashed"), (-9, "crashed"), (None, "crashed")])
def test_how_it_ended(scene: Scene, code: int | None, reason: str) -> None:
    scene.start()
    scene.relay.advance(1_000)
    scene.end(code)
    found = scene.session()
    assert (found["status"], found["reason"], found["exit_code"]) == ("ended", reason, code)
    assert found["ended_at"] - found["started_at"] == 1_000
    assert scene.changes[-1] == f"Bob ended {reason}"


def test_a_release_is_answered_when_the_program_has_ended(scene: Scene) -> None:
    scene.start()
    first = scene.lead.say("RELEASE", {"name": "bob", "reason": "done"})
    second = scene.lead.say("RELEASE", {"name": "Bob"})
    assert scene.wrappers.take() == ["start", "stop"]
    assert (scene.lead.take(), scene.session()["status"]) == ([], "ending")
    scene.end(143)
    assert [frame["payload"] for frame in scene.lead.take("RELEASE_RESULT")] == [
        {"name": "Bob", "success": True, "reply_to": first},
        {"name": "Bob", "success": True, "reply_to": second},
    ]
    assert scene.session()["reason"] == "released"
    scene.lead.say("RELEASE", {"name": "Bob"}, id=first)  # the answer was missed
    assert scene.lead.payload("RELEASE_RESULT")["success"] is True


def test_what_does_not_end_is_ended(scene: Scene) -> None:
    scene.start()
    scene.lead.say("RELEASE", {"name": "Bob"})
    scene.relay.advance(STOP_MS)
    assert scene.wrappers.take() == ["start", "stop", "kill"]
    scene.end(-9)
    assert scene.lead.payload("RELEASE_RESULT")["success"] is True


def test_one_that_is_released_before_it_runs(scene: Scene) -> None:
    spawning = scene.ask(task="x")
    releasing = scene.lead.say("RELEASE", {"name": "Bob"})
    assert scene.error(spawning)["message"] == "Bob could not be started. It was released before it ran."
    scene.launch()
    assert scene.wrappers.take() == ["start", "stop", "stop"]
    scene.end(143)
    assert scene.lead.payload("RELEASE_RESULT")["reply_to"] == releasing


def test_what_was_not_started_here_is_not_ended_here(scene: Scene) -> None:
    request = scene.lead.say("RELEASE", {"name": "Nobody"})
    assert scene.error(request)["code"] == "AGENT_NOT_FOUND"
    request = scene.lead.say("RELEASE", {"name": "Lead"})
    error = scene.error(request)
    assert (error["code"], error["details"]["reason"]) == ("INVALID_TARGET", "not_spawned")


def test_only_the_last_of_those_that_have_ended_are_remembered() -> None:
    scene = Scene(spawns_per_minute=1_000)
    for number in range(REMEMBERED + 5):
        scene.ask(f"A{number}")
        scene.end(0, f"A{number}")
    assert [found["agent"] for found in scene.spawning.describe()] == [f"A{number}" for number in range(5, REMEMBERED + 5)]


def test_a_daemon_without_the_service_says_so() -> None:
    relay = RelayHarness()
    lead = relay.connect("Lead")
    for kind, payload in (("SPAWN", {"name": "Bob", "cli": "claude"}), ("RELEASE", {"name": "Bob"})):
        lead.say(kind, payload)
        error = lead.payload("ERROR")
        assert (error["code"], error["details"]) == ("FEATURE_UNSUPPORTED", {"type": kind})


# --- another daemon -----------------------------------------------------------------------------------------------------


def test_the_next_daemon_takes_it_up(scene: Scene) -> None:
    bob = scene.start(task="x")
    session_id, token = scene.session()["session_id"], bob.token
    scene.restart()
    assert scene.wrappers.take() == ["start", "adopt"]
    again = scene.join(token=token)
    assert again.welcome["session_id"] == session_id
    assert [frame["payload"]["body"] for frame in again.take("DELIVER")] == ["x"]  # it was never acknowledged
    assert scene.refusal()["details"]["reason"] == "name_in_use"
    scene.end(0)
    assert (scene.session()["reason"], scene.changes) == ("completed", ["Bob running ", "Bob ended completed"])


def test_one_that_was_starting_is_found_when_it_connects(scene: Scene) -> None:
    scene.ask(task="x")
    scene.restart()
    assert scene.wrappers.take() == ["start"]
    bob = scene.join()
    assert scene.wrappers.take() == ["adopt"]
    assert (scene.session()["status"], scene.session()["pid"]) == ("running", 77)
    assert bob.bodies() == ["x"]


def test_one_that_was_starting_and_never_comes_has_ended(scene: Scene) -> None:
    scene.ask()
    scene.restart()
    scene.relay.advance(START_MS)
    assert scene.session()["status"] == SessionStatus.ENDED
    assert scene.changes == []


def test_a_release_goes_on(scene: Scene) -> None:
    scene.start()
    scene.lead.say("RELEASE", {"name": "Bob"}, id="r1")
    scene.restart()
    assert scene.wrappers.take() == ["start", "stop", "adopt", "stop"]
    scene.lead.say("RELEASE", {"name": "Bob"}, id="r1")
    scene.end(143)
    assert scene.lead.payload("RELEASE_RESULT")["reply_to"] == "r1"
    assert scene.session()["reason"] == "released"


# --- agents that start agents ---------------------------------------------------------------------------------------------


def test_an_agent_starts_others_plainly_and_releases_its_own(scene: Scene) -> None:
    boss = scene.relay.connect("Boss", capabilities={"control": True})
    for more in ({"permission_mode": "plan"}, {"environment": {"LANG": "C"}}):
        scene.ask(by=boss, **more)
        refused = boss.payload("ERROR")["details"]
        assert (refused["reason"], refused["right"]) == ("inside_agent", "spawn-any")
    scene.ask(by=boss)
    scene.ask("Carol")
    assert [scene.session(name)["spawned_by"] for name in ("Bob", "Carol")] == ["Boss", "Lead"]
    boss.say("RELEASE", {"name": "Carol"})
    assert boss.payload("ERROR")["details"]["right"] == "spawn-any"
    boss.say("RELEASE", {"name": "Bob"})
    assert scene.session()["status"] == "ending"


def test_a_shell_inside_an_agent_starts_in_its_name(scene: Scene) -> None:
    inside = scene.relay.open()
    inside.connection.process = Caller("Boss")
    inside.hello("x", mode="observer")
    scene.ask(by=inside)
    assert scene.session()["spawned_by"] == "agent:Boss via cli"
    inside.say("RELEASE", {"name": "Bob"})
    assert scene.session()["status"] == "ending"


def test_no_agent_starts_another_where_that_is_not_granted() -> None:
    scene = Scene(agent_rights=frozenset())
    boss = scene.relay.connect("Boss", capabilities={"control": True})
    scene.ask(by=boss)
    assert boss.payload("ERROR")["details"]["right"] == "spawn"


def test_who_stands_behind_a_wall_starts_nobody_in_front_of_it(scene: Scene) -> None:
    wall = {"network": "off", "home": "none"}
    boss = scene.relay.connect("Boss", capabilities={"control": True}, meta={"sandbox": wall})
    scene.ask(by=boss)
    scene.ask("Carol", sandbox=True)
    scene.ask("Dave")
    assert [row.sandbox for row in scene.spawning._sessions.values()] == [wall, {}, None]
    assert [scene.session(name)["sandbox"] for name in ("Bob", "Carol", "Dave")] == [True, True, False]


# --- leaving nothing ----------------------------------------------------------------------------------------------------


def known(scene: Scene) -> set[str]:
    return {agent.name for agent in scene.relay.relay.queries.agents()}


def test_an_ephemeral_agent_takes_its_name_and_its_mail_along(scene: Scene) -> None:
    bob = scene.start(ephemeral=True)
    scene.lead.send("Bob", "never read")
    request = scene.lead.say("RELEASE", {"name": "Bob"})
    scene.end(0)
    assert scene.lead.take("RELEASE_RESULT") == []  # its connection is about to end
    assert known(scene) == {"Lead", "Bob"}
    bob.drop()
    scene.relay.advance(100)
    assert scene.lead.payload("RELEASE_RESULT")["reply_to"] == request
    assert known(scene) == {"Lead"}
    assert scene.lead.payload("NACK")["code"] == "AGENT_NOT_FOUND"
    assert scene.relay.relay.journal.dead_letters == 0


def test_it_goes_also_where_the_daemon_died_meanwhile(scene: Scene) -> None:
    scene.start(ephemeral=True)
    scene.restart()
    scene.end(1)
    scene.relay.advance(2_000)
    assert known(scene) == {"Lead"}


def test_one_that_is_not_ephemeral_stays_known(scene: Scene) -> None:
    scene.start().drop()
    scene.end(0)
    scene.relay.advance(2_000)
    assert known(scene) == {"Lead", "Bob"}


def test_a_name_that_somebody_else_has_by_now_stays(scene: Scene) -> None:
    bob = scene.start(ephemeral=True)
    bob.drop()
    scene.end(0)
    scene.relay.advance(100)
    scene.relay.connect("Bob")
    scene.relay.advance(2_000)
    assert known(scene) == {"Lead", "Bob"}


def test_one_that_never_ran_leaves_no_name(scene: Scene) -> None:
    scene.ask()
    id_ = scene.launch()
    scene.join().drop()
    scene.relay.turn(lambda: scene.spawning.failed(id_, "It is no program."))
    scene.relay.advance(100)
    assert known(scene) == {"Lead"}


def test_one_that_was_known_before_and_fails_this_time_stays_known(scene: Scene) -> None:
    scene.start().drop()
    scene.end(0)
    scene.relay.advance(100)
    scene.ask()
    id_ = scene.launch()
    scene.relay.turn(lambda: scene.spawning.failed(id_, "It is no program."))
    scene.relay.advance(2_000)
    assert known(scene) == {"Lead", "Bob"}


# --- runs ---------------------------------------------------------------------------------------------------------------


def test_agents_of_a_run_are_released_once_its_program_is_gone_for_good() -> None:
    scene = Scene(run_grace_ms=10_000)
    scene.start("Bob", run="run-1")
    scene.start("Carol", run="run-1")
    scene.start("Dan")
    assert (scene.session("Bob")["run"], scene.session("Dan")["run"]) == ("run-1", None)
    scene.lead.drop()
    scene.wrappers.take()
    scene.relay.advance(9_000)
    assert scene.wrappers.take() == []
    scene.relay.advance(3_000)
    assert scene.wrappers.asked == [("stop", "Bob"), ("stop", "Carol")]
    scene.end(0, "Bob")
    assert scene.session("Bob")["reason"] == "released"
    (ended,) = scene.relay.events.named("pattern.ended")
    assert (ended["runId"], ended["outcome"], ended["_agentName"]) == ("run-1", "abandoned", "Lead")


def test_a_program_that_resumes_its_session_keeps_its_agents() -> None:
    scene = Scene(run_grace_ms=10_000)
    scene.start("Bob", run="run-1")
    token = scene.lead.token
    for _ in range(3):
        scene.lead.drop()
        scene.relay.advance(8_000)
        scene.lead = scene.relay.connect("Lead", token=token)
        token = scene.lead.token
        scene.relay.advance(2_000)
    assert "stop" not in scene.wrappers.take()


def test_another_session_under_the_name_ends_the_runs_of_the_one_before() -> None:
    scene = Scene(run_grace_ms=10_000)
    scene.start("Bob", run="run-1")
    scene.lead.drop()
    scene.lead = scene.relay.connect("Lead")
    scene.relay.advance(2_000)
    assert scene.wrappers.asked[-1] == ("stop", "Bob")


def test_the_next_daemon_releases_the_agents_of_a_program_that_does_not_come_back() -> None:
    scene = Scene(run_grace_ms=10_000)
    scene.start("Bob", run="run-1")
    scene.relay.restart()
    scene._begin()
    scene.wrappers.take()
    scene.relay.advance(9_000)
    assert "stop" not in scene.wrappers.take()
    scene.relay.advance(3_000)
    assert "stop" in scene.wrappers.take()


def test_one_that_was_to_leave_nothing_goes_with_the_last_agent_of_its_run() -> None:
    scene = Scene(run_grace_ms=10_000)
    scene.lead = scene.relay.connect("Run-1", meta={"ephemeral": True})
    bob = scene.start("Bob", run="run-1", ephemeral=True)
    bob.send("Run-1", "never heard")
    scene.lead.drop()
    scene.relay.advance(12_000)
    assert known(scene) == {"Lead", "Run-1", "Bob"}
    bob.drop()
    scene.end(0)
    scene.relay.advance(12_000)
    assert known(scene) == {"Lead"}


def test_an_observer_has_no_runs(scene: Scene) -> None:
    watcher = scene.relay.connect("Watcher", mode="observer")
    scene.ask(by=watcher, run="run-1")
    assert watcher.payload("ERROR")["code"] == "PERMISSION_DENIED"
