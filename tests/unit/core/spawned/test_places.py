"""The host that a new agent is started on, and what the seat's book makes of what other hosts say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_relay.core.host_rules import HostRules
from agent_relay.ports.agents import SessionRow, SessionStatus
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.hosts import HostFacts, HostRole
from tests.support.harness import HarnessClient, RelayHarness

HOSTS = [
    HostFacts("a", HostRole.SEAT, load=0.9, starts=["claude"]),
    HostFacts("b", HostRole.EDGE, load=0.2, agents=9, starts=["claude"]),
    HostFacts("c", HostRole.EDGE, load=0.5, starts=["claude", "codex"]),
    HostFacts("d", HostRole.LOST, load=0.0, starts=["claude"]),
]


class Wrappers:
    """`ports.AgentService` of all hosts."""

    def __init__(self) -> None:
        self.rows: list[SessionRow] = []
        self.asked: list[str] = []
        self.saved = b""

    def start(self, session: SessionRow, environment: Mapping[str, str]) -> None:
        self.rows.append(replace(session))

    def adopt(self, session: SessionRow) -> None:
        self.asked.append(f"adopt {session.name}")

    def stop(self, session: SessionRow, *, force: bool) -> None:
        self.asked.append(f"stop {session.name}")

    def save(self, sessions: Sequence[SessionRow]) -> None:
        self.saved = msgspec.json.encode(sessions)


class Scene:
    def __init__(self, control: str = "", **limits: Any) -> None:
        """`control`: whom hosts b and c let."""
        self.relay = RelayHarness(host="a", **limits)
        self.wrappers = Wrappers()
        self.spawning = self.relay.relay.spawning
        self.spawning.begin(self.wrappers, [], lambda: HOSTS)
        for host in "bc":
            rights = frozenset({("*", "spawn")})
            self.relay.relay.rights.learn(host, HostRules(frozenset(control), rights))
        self.lead = self.relay.connect("Lead")

    def ask(self, client: HarnessClient | None = None, **more: Any) -> str:
        """The host that it is started on, or why it is not."""
        (client or self.lead).say("SPAWN", {"name": f"Bob{len(self.wrappers.rows)}", "cli": "claude", **more})
        errors = (client or self.lead).take("ERROR")
        return str(errors[0]["payload"]["details"]["reason"]) if errors else self.wrappers.rows[-1].host

    def hear(self, host: str, *rows: SessionRow) -> None:
        self.relay.turn(lambda: self.spawning.hear_runs(host, rows))

    def statuses(self) -> dict[str, str]:
        return {found["agent"]: found["status"] for found in self.spawning.describe()}


def test_an_agent_runs_on_the_host_of_whoever_wants_it() -> None:
    scene = Scene()
    assert scene.ask() == "a"
    assert scene.ask(scene.relay.connect("Eve", host="b")) == "b"


def test_a_named_host_must_be_there_and_let_the_asker() -> None:
    scene = Scene()
    assert scene.ask(host="a") == "a"
    assert scene.ask(host="b") == "host_control"
    assert scene.ask(host="d") == "host_not_found"  # lost
    assert scene.ask(host="x") == "host_not_found"
    assert Scene(control="a").ask(host="b") == "b"


def test_the_least_loaded_of_those_that_allow_it_is_taken() -> None:
    scene = Scene(control="a")
    assert scene.ask() == "c"  # b has more agents than its load shows yet
    assert scene.ask(cli="codex") == "c"
    assert scene.ask(cli="gemini") == "a"  # nobody has it: whoever wants it is told so at home
    assert scene.ask(cwd="/srv/lead/project") == "a"  # a folder of its own machine


def test_without_a_cluster_there_is_no_other_host() -> None:
    relay = RelayHarness()
    wrappers = Wrappers()
    relay.relay.spawning.begin(wrappers, [])
    lead = relay.connect("Lead")
    lead.say("SPAWN", {"name": "Bob", "cli": "claude", "host": "b"})
    assert lead.payload("ERROR")["details"]["reason"] == "host_not_found"
    lead.say("SPAWN", {"name": "Bob", "cli": "claude"})
    assert [row.host for row in wrappers.rows] == [""]


def test_the_programs_of_another_host_are_for_that_host_to_allow() -> None:
    scene = Scene(control="a")
    assert scene.ask(cli="vim", host="b") == "b"
    assert scene.ask(cli="vim", host="a") == "cli_not_allowed"


def test_what_a_host_says_of_its_agents_is_entered_once() -> None:
    scene = Scene(control="a")
    scene.ask(host="b")
    (row,) = scene.wrappers.rows
    scene.hear("b")
    assert scene.statuses() == {"Bob0": "starting"}  # it may not have heard of it yet
    row.pid, row.cwd = 7, "/srv/project"
    scene.hear("b", row)
    row.status = SessionStatus.RUNNING
    scene.hear("b", row)
    scene.hear("b", row)
    assert len(scene.lead.take("SPAWN_RESULT")) == 1
    assert scene.spawning.describe()[0]["cwd"] == "/srv/project"
    scene.hear("c")  # says nothing about b
    assert scene.statuses() == {"Bob0": "running"}
    row.status, row.exit_code = SessionStatus.ENDED, 3
    scene.hear("b", row)
    scene.hear("b", row)
    (found,) = scene.spawning.describe()
    assert (found["status"], found["reason"], found["exit_code"], found["host"]) == ("ended", "crashed", 3, "b")


def test_a_start_that_failed_there_is_told_with_its_reason() -> None:
    scene = Scene(control="a")
    scene.ask(host="b")
    row = replace(scene.wrappers.rows[0], status=SessionStatus.ENDED, is_failed=True, failure="It is not installed.")
    scene.hear("b", row)
    assert "It is not installed." in scene.lead.payload("ERROR")["message"]


def test_a_host_that_refuses_is_quoted() -> None:
    scene = Scene(control="a")
    scene.ask(host="b")
    error = RelayError(ErrorCode.INVALID_TARGET, "No.", reason="cwd_not_found")
    scene.relay.turn(lambda: scene.spawning.refused(scene.wrappers.rows[0].id, error))
    assert scene.lead.payload("ERROR")["details"]["reason"] == "cwd_not_found"
    assert scene.statuses() == {"Bob0": "ended"}


def test_a_release_on_a_silent_host_is_an_error_and_stays_wanted() -> None:
    scene = Scene(control="a")
    scene.ask(host="b")
    row = replace(scene.wrappers.rows[0], status=SessionStatus.RUNNING, pid=7)
    scene.hear("b", row)
    scene.lead.say("RELEASE", {"name": "Bob0"})
    error = RelayError(ErrorCode.SERVICE_UNAVAILABLE, "Host b does not answer.", reason="host_silent")
    scene.relay.turn(lambda: scene.spawning.refused(row.id, error))
    assert scene.lead.payload("ERROR")["details"]["reason"] == "host_silent"
    assert scene.statuses() == {"Bob0": "ending"}
    scene.relay.advance(20_000)
    assert scene.wrappers.asked == ["stop Bob0", "stop Bob0"]  # asked again, when the host may be back


def test_a_host_that_has_forgotten_an_agent_does_not_run_it() -> None:
    scene = Scene(control="a")
    scene.ask(host="b")
    scene.hear("b", replace(scene.wrappers.rows[0], status=SessionStatus.RUNNING, pid=7))
    scene.hear("b")
    assert scene.statuses() == {"Bob0": "ended"}


def test_an_agent_that_is_in_no_book_is_entered_and_no_host_speaks_of_another_s() -> None:
    scene = Scene(control="a")
    row = SessionRow("ses_1", "Kim", "claude", "/srv", "pty", "Lead", 0, status=SessionStatus.RUNNING, pid=9, host="b")
    scene.hear("b", row)
    assert scene.statuses() == {"Kim": "running"}
    scene.hear("c", replace(row, status=SessionStatus.ENDED, exit_code=0))
    assert scene.statuses() == {"Kim": "running"}
