"""The setup of a wrapped agent, and the plan of its start: everything that is known before its parts are built."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec import Struct

from agent_relay.protocol.places import ENV_TOKEN
from agent_relay.terminal.agent.launch import Home
from agent_relay.terminal.agent.plain_start import announce
from agent_relay.terminal.backends.program import check_program
from agent_relay.terminal.backends.terminal import Terminal, TerminalListener
from agent_relay.terminal.delivery.message_text import Wording, introduction_for_start
from agent_relay.terminal.doors.findings import DoorFindings
from agent_relay.terminal.doors.launch import AgentPlace, Launcher, Note, PreparedStart, Program
from agent_relay.terminal.files.run_file import RunFile, begin_run, take_up_run
from agent_relay.terminal.output.parser import DEFAULT_PREFIX, Syntax
from agent_relay.terminal.profiles.profile import Profile
from agent_relay.terminal.recordings.recorder import TerminalRecorder
from agent_relay.terminal.screen.contents import Screen

MakeTerminal = Callable[[TerminalListener], Terminal[Screen]]


async def _never() -> bool:
    return False


class AgentSetup(Struct, frozen=True):
    home: Home
    profile: Profile
    argv: Sequence[str]
    cwd: str
    environment: Mapping[str, str]
    make_terminal: MakeTerminal
    is_running: Callable[[], Awaitable[bool]] = _never  # whether its program runs already, where it can be taken up
    prefix: str = DEFAULT_PREFIX
    has_introduction: bool = True
    has_status: bool = False  # the person at its terminal sees how it is
    is_strict: bool = False  # on the screen only commands with the run's nonce count
    project_id: str = ""
    root: str = ""  # of the project
    recorder: TerminalRecorder | None = None
    launcher: Launcher | None = None  # the CLI's doors; without, everything is typed
    is_strict_about_doors: bool = False  # only those of a tested version
    notes: tuple[Note, ...] = ()  # why there is no launcher
    is_changed: bool = False  # flags or variables were added to what the person wrote
    announcement: str = ""  # shown in the terminal before the program
    enclose: Callable[[Program], Program] | None = None  # puts the program behind a wall
    findings: DoorFindings | None = None  # of its doors, at earlier starts
    note_version: Callable[[str], None] | None = None  # told the program's version, once a door has it

    @property
    def place(self) -> AgentPlace:
        return AgentPlace(self.home.name, self.home.team, self.project_id)


class StartPlan(Struct, frozen=True):
    run: RunFile
    wording: Wording
    program: Program  # to be started
    prepared: PreparedStart  # for the doors
    is_taken_up: bool = False  # the program runs already
    is_run_known: bool = True  # False: nothing was left of the run that is taken up
    has_doors: bool = False  # the program was prepared for them

    @property
    def introduces(self) -> bool:
        """Whether the agent gets the introduction with its start: nobody needs to give it."""
        return self.is_taken_up or self.prepared.is_introduced


async def plan_start(setup: AgentSetup) -> StartPlan:
    """A program that is already there is taken up. We hold its name, so no other wrapper does: the one that started it has
    died."""
    if await setup.is_running():
        return _plan_to_take_up(setup)
    run = begin_run(setup.home.team)
    wording = _wording(setup, run)
    program = Program(tuple(setup.argv), setup.cwd, {**setup.environment, ENV_TOKEN: run.token})
    prepared = PreparedStart(program)
    if setup.launcher is not None:
        introduction = introduction_for_start(wording) if setup.has_introduction else ""
        prepared = await asyncio.to_thread(setup.launcher.prepare, program, setup.place, introduction)  # it may ask for a version
        run.note_facts(prepared.facts)
    started = prepared.program
    if setup.enclose is not None:
        check_program(started.argv, started.cwd, started.environment)
        started = setup.enclose(started)
    if setup.announcement:
        started = announce(started, setup.announcement)
    return StartPlan(run, wording, started, prepared, has_doors=prepared.program != program)


def _plan_to_take_up(setup: AgentSetup) -> StartPlan:
    known = take_up_run(setup.home.team)
    run = known or begin_run(setup.home.team)
    program = Program(tuple(setup.argv), setup.cwd, setup.environment)
    prepared = PreparedStart(program, run.facts, session_id=run.facts.get("session"))
    return StartPlan(
        run, _wording(setup, run), program, prepared, is_taken_up=True, is_run_known=known is not None
    )  # fmt: skip


def _wording(setup: AgentSetup, run: RunFile) -> Wording:
    signed = Syntax(setup.prefix, nonce=run.nonce).signed_prefix
    is_only_seen = setup.profile.transcript is None and setup.launcher is None
    return Wording(setup.home.name, signed if setup.is_strict else setup.prefix, signed, is_only_seen)
