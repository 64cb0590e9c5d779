"""The plan of a start: which run it is, what is run, and by which words the agent is spoken to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_relay.protocol.places import ENV_TOKEN
from agent_relay.terminal.agent.launch import Home
from agent_relay.terminal.agent.setup import AgentSetup, StartPlan, plan_start
from agent_relay.terminal.doors.door import Door
from agent_relay.terminal.doors.launch import AgentPlace, PreparedStart, Program
from agent_relay.terminal.files.run_file import begin_run
from agent_relay.terminal.profiles.profile import load_profiles


class Doors:
    """A CLI that is started with a flag of ours, and introduced by it."""

    introduction = ""

    def prepare(self, program: Program, place: AgentPlace, introduction: str) -> PreparedStart:
        self.introduction = introduction
        changed = Program((*program.argv, "--hooks"), program.cwd, program.environment)
        return PreparedStart(changed, {"session": "s1"}, is_introduced=True)

    def doors(self, program: Program, place: AgentPlace, facts: Mapping[str, str], listener: Any) -> list[Door]:
        raise NotImplementedError


def plan(folder: Path, **options: Any) -> StartPlan:
    home = Home(str(folder), "Bob")
    home.make()
    setup = AgentSetup(
        home=home, profile=load_profiles()["generic"], argv=["agent", "-x"], cwd=str(folder), environment={"A": "1"},
        make_terminal=lambda _: NotImplemented, **options,
    )  # fmt: skip
    return asyncio.run(plan_start(setup))


async def yes() -> bool:
    return True


def test_a_program_is_started_with_the_token_of_its_run(tmp_path: Path) -> None:
    found = plan(tmp_path)
    assert found.program == Program(("agent", "-x"), str(tmp_path), {"A": "1", ENV_TOKEN: found.run.token})
    assert (found.is_taken_up, found.has_doors, found.introduces) == (False, False, False)
    assert plan(tmp_path).run.token != found.run.token


def test_the_words_carry_the_nonce_of_the_run_where_only_that_counts(tmp_path: Path) -> None:
    found = plan(tmp_path)
    assert found.wording.prefix == "->relay:"
    assert found.wording.signed_prefix == f"->relay-{found.run.nonce}:"
    assert found.wording.is_only_seen  # nothing but its screen tells its words
    assert not plan(tmp_path, launcher=Doors()).wording.is_only_seen
    strict = plan(tmp_path, is_strict=True)
    assert strict.wording.prefix == strict.wording.signed_prefix == f"->relay-{strict.run.nonce}:"


def test_doors_are_prepared_and_found_again_by_the_next_wrapper(tmp_path: Path) -> None:
    doors = Doors()
    found = plan(tmp_path, launcher=doors, enclose=None)
    assert found.program.argv == ("agent", "-x", "--hooks")
    assert (found.has_doors, found.introduces) == (True, True)
    assert "you are Bob" in doors.introduction
    again = plan(tmp_path, launcher=doors, is_running=yes)
    assert (again.is_taken_up, again.is_run_known, again.introduces, again.has_doors) == (True, True, True, False)
    assert again.run.id == found.run.id
    assert again.prepared.session_id == "s1"


def test_an_announcement_is_shown_before_the_program(tmp_path: Path) -> None:
    found = plan(tmp_path, announcement="once more")
    assert found.program.argv[-3:] == ("once more", "agent", "-x")
    assert found.prepared.program.argv == ("agent", "-x")


def test_a_program_of_which_nothing_is_known_begins_a_run(tmp_path: Path) -> None:
    found = plan(tmp_path, is_running=yes)
    assert (found.is_taken_up, found.is_run_known) == (True, False)
    assert begin_run(Home(str(tmp_path), "Bob").team).id != found.run.id
