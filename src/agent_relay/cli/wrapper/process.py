"""The process that wraps an agent: joins the relay, runs the program, and ends with its status."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import pairwise
from logging.handlers import RotatingFileHandler
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_relay.cli.failures import Failure
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.project.link import is_name_in_use, observe
from agent_relay.cli.wrapper.piped_input import follow
from agent_relay.cli.wrapper.profile_shelf import load_shelf
from agent_relay.cli.wrapper.revival import WrapperStart, forget_start, note_start
from agent_relay.protocol.clis import ACP
from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.locate import Place
from agent_relay.terminal.agent.launch import Home, WrapFailed, arguments, child_environment, is_running, make_terminal
from agent_relay.terminal.agent.plain_start import FailedStart
from agent_relay.terminal.agent.registration import RECONNECT, join
from agent_relay.terminal.agent.sandbox import DOORS_THROUGH_A_WALL, Reach, Sandbox, check_sandbox
from agent_relay.terminal.agent.sandbox import enclose as enclose_words
from agent_relay.terminal.agent.setup import AgentSetup
from agent_relay.terminal.agent.stop_signals import StopSignals
from agent_relay.terminal.agent.wrapper import Wrapper
from agent_relay.terminal.backends.choice import Backend, Choice
from agent_relay.terminal.backends.orphans import keep_orphans
from agent_relay.terminal.delivery.inbox_file import INBOX_FILE
from agent_relay.terminal.delivery.queue import DeliveryQueue
from agent_relay.terminal.doors.acp.launch import AcpLauncher, console_words
from agent_relay.terminal.doors.acp.wire import socket_path
from agent_relay.terminal.doors.findings import DoorFindings
from agent_relay.terminal.doors.launch import ASKED_FOR_VERSION, Note, Program, launcher_for
from agent_relay.terminal.doors.versions import KNOWN, OFF, PROBE, SETTING, VersionLookup, recall_version, remember_version
from agent_relay.terminal.files.project_files import find_work_folder
from agent_relay.terminal.output.outbox import drop
from agent_relay.terminal.profiles.acp_console import ACP_CONSOLE
from agent_relay.terminal.profiles.acp_start import acp_words
from agent_relay.terminal.profiles.custom_profile import customise
from agent_relay.terminal.profiles.profile import Launch, Profile
from agent_relay.terminal.recordings.recorder import TerminalRecorder, record_from_start

LOG_FILE = "wrapper.log"
_LOG_BYTES = 1_048_576
_WINDOW = 32  # messages on their way to this agent; the rest waits at the daemon, where it is safer
_CLOSE_S = 5.0
_MODEL_VARIABLES = {"claude": "ANTHROPIC_MODEL", "gemini": "GEMINI_MODEL", "aider": "AIDER_MODEL"}


class LookOptions(msgspec.Struct, frozen=True):
    """The look of the program, as options say it; expressions."""

    prompts: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
    dialogs: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        flags = (("--prompt", self.prompts), ("--busy", self.busy), ("--dialog", self.dialogs))
        return [f"{flag}={pattern}" for flag, patterns in flags for pattern in patterns]


class WrapOptions(msgspec.Struct, frozen=True):
    """The options of `wrap`, as the person gave them."""

    argv: Sequence[str]
    name: str | None
    choice: Choice
    prefix: str
    has_introduction: bool = True
    cli: str | None = None  # the profile, where the program's name does not tell
    record: str | None = None  # a file for `replay`
    doors: str = PROBE  # which doors are used; see terminal.doors.versions
    asks_for_hooks: bool = False  # the CLI may ask whether the relay's hooks may run
    session: str | None = None  # the daemon started us, for this session
    end_file: str | None = None  # where it looks for how we ended
    sandbox: Sandbox | None = None  # the wall around it
    is_strict: bool = False  # on the screen only commands with the run's nonce count
    looks: LookOptions = LookOptions()
    has_input: bool = False  # standard input is to be typed to it
    has_status: bool = False  # its tmux shows how it is
    is_acp: bool = False  # by the Agent Client Protocol, below a console of ours


async def run_wrapper(
    place: Place, options: WrapOptions, is_ready: Callable[[str], None], start: Callable[[str], WrapperStart] | None = None
) -> int:
    """Raises Failure, or what the terminal raises, when the agent cannot be started. `is_ready` is told its name. `start`: how a
    wrapper of this agent, by its name, is started again if this one dies."""
    cli = os.path.basename(options.cli or options.argv[0])
    meta: dict[str, Any] = {"backend": options.choice.backend.value, "command": cli}
    if options.is_acp:
        meta["transport"] = ACP
    if options.session is not None:
        meta["session"] = options.session
    if options.sandbox is not None:
        meta["sandbox"] = msgspec.to_builtins(options.sandbox)  # whoever this agent starts gets the same
        check_sandbox()

    meta |= _describe_program(place, options)
    version = _begin_version_lookup(place, options)

    def make_client(name: str) -> RelayClient:
        return RelayClient(
            name, socket=place.socket, state_dir=place.state_dir, cli=cli, meta=meta, max_inflight=_WINDOW,
            reconnect_attempts=None, backoff=RECONNECT, control=True,
        )  # fmt: skip

    try:
        relay = await join(make_client, options.name, await _known_names(place) if options.name is None else [])
    except RelayError as error:
        if options.name and is_name_in_use(error):
            name = clean_line(options.name)
            raise Failure(
                f"{name} is already connected: see it with `agent-relay attach {name}`, or choose another name."
            ) from None
        raise
    recorder: TerminalRecorder | None = None
    try:
        home = Home(place.state_dir, relay.name)
        home.make()
        _log_to(home.team)
        if start is not None and options.choice.backend is Backend.TMUX:
            note_start(home.team, start(home.name))
        recorder = _make_recorder(options, cli)

        def make_wrapper(
            relay: RelayClient, failed: FailedStart | None = None, queue: DeliveryQueue | None = None
        ) -> Wrapper:  # fmt: skip
            setup = _make_setup(place, options, home, recorder, version, failed)
            return Wrapper(setup, relay, lambda: make_client(home.name), queue)

        wrapper = make_wrapper(relay)
        StopSignals(lambda: wrapper.stop(), lambda: wrapper.kill())  # noqa: PLW0108 - of the one that runs then
        if options.has_input:
            follow(lambda text: wrapper.type_in(text), logging.getLogger("agent_relay.terminal").warning)  # noqa: PLW0108
        async with _keeping_orphans(options):
            status = await wrapper.run(lambda: is_ready(home.name))
            if wrapper.failed_start is not None and not wrapper.is_stopping:
                wrapper = make_wrapper(wrapper.relay, wrapper.failed_start, wrapper.hand_back())
                status = await wrapper.run()
        if options.end_file is not None:
            with contextlib.suppress(OSError):  # then it is not known how it ended
                drop(os.path.dirname(options.end_file), os.path.basename(options.end_file), str(status.code))
        forget_start(home.team)
    finally:
        if recorder is not None:
            recorder.close()
        await relay.close(_CLOSE_S)
    return status.code


@contextlib.asynccontextmanager
async def _keeping_orphans(options: WrapOptions) -> AsyncIterator[None]:
    """In tmux the program is not below us, and its pane does the same."""
    keeping = asyncio.create_task(keep_orphans()) if options.choice.backend is Backend.PTY else None
    await asyncio.sleep(0)  # from the very first on
    try:
        yield
    finally:
        if keeping is not None:
            keeping.cancel()


def _make_recorder(options: WrapOptions, cli: str) -> TerminalRecorder | None:
    if options.record is None:
        return None
    try:
        return record_from_start(options.record, options.choice.backend, cli, os.environ)
    except FileExistsError:
        raise Failure(f"{clean_line(options.record)} already exists; remove it, or choose another file.") from None
    except OSError as error:
        raise Failure(f"{clean_line(options.record)} cannot be written: {error.strerror}.") from None


def find_profile(place: Place, options: WrapOptions, notes: list[str] | None = None) -> Profile:
    """As files and options describe the program. `notes`: what was left out. Raises ProfileError."""
    shelf = load_shelf(place.root, place.home)
    if notes is not None:
        notes += shelf.notes
    profile = shelf.find(options.cli or options.argv[0])
    return customise(profile, options.looks.prompts, options.looks.busy, options.looks.dialogs)


def _describe_program(place: Place, options: WrapOptions) -> dict[str, str]:
    """Model and version, as far as they are known before it runs: by flags and variables, and by what it said the last time."""
    profile = find_profile(place, options)
    if options.cli is not None or not profile.is_tried:  # of another program, the same flags may mean anything
        return {}
    found = {
        "model": find_model(profile.name, options.argv, os.environ),
        "version": recall_version(options.argv[0], os.environ, place.home),
    }
    return {name: value for name, value in found.items() if value}


def find_model(cli: str, argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """The model that a CLI is asked to use; empty where its own settings decide."""
    for word, following in pairwise([*argv[1:], ""]):
        if word in {"--model", "-m"}:
            return "" if following.startswith("-") else following
        if word.startswith("--model="):
            return word.removeprefix("--model=")
    variable = _MODEL_VARIABLES.get(cli)
    return "" if variable is None else environ.get(variable, "")


def _begin_version_lookup(place: Place, options: WrapOptions) -> Callable[[], str]:
    """Of a program that is started in another way in some versions: asked while we join the relay."""
    profile = find_profile(place, options)
    if options.is_acp or profile.name not in ASKED_FOR_VERSION or _why_no_doors(options, profile) is not None:
        return lambda: ""
    return VersionLookup(options.argv[0], os.environ, place.home).wait


def _why_no_doors(options: WrapOptions, profile: Profile) -> Note | None:
    if options.doors == OFF:
        return Note(
            "Doors are switched off for this agent.", profile.doors, f"Start it without `--no-doors` and `{SETTING} = {OFF}`."
        )
    if options.cli is not None:  # another program need not know its flags
        return Note("With --cli, the program may be another one that does not know the flags this needs.", profile.doors)
    if options.sandbox is not None and profile.name not in DOORS_THROUGH_A_WALL:
        return Note("Its doors are servers that would run outside the sandbox.", profile.doors)
    return None


def _make_setup(
    place: Place, options: WrapOptions, home: Home, recorder: TerminalRecorder | None, version: Callable[[], str],
    failed: FailedStart | None,
) -> AgentSetup:  # fmt: skip
    """`failed`: it was started before, and what we add may be the reason why it ended."""
    if options.is_acp:
        return make_acp_setup(place, options, home, recorder)
    profile = find_profile(place, options)
    inbox = os.path.join(home.team, INBOX_FILE)
    added = profile if failed is None else replace(profile, launch=Launch())
    argv = arguments(options.argv, added)
    closed = _why_no_doors(options, profile)
    if failed is not None and profile.doors:
        closed = Note(f"{failed.reason}.", profile.doors, "Update the program; its last lines are in the agent's wrapper.log.")
    return AgentSetup(
        home=home,
        profile=profile,
        argv=argv,
        cwd=os.getcwd(),
        environment=child_environment(os.environ, added, home, socket=place.socket, root=place.root, inbox=inbox),
        make_terminal=lambda listener: make_terminal(options.choice, home, place.project_id, listener),
        is_running=lambda: is_running(options.choice, home, place.project_id),
        prefix=options.prefix,
        has_introduction=options.has_introduction,
        has_status=options.has_status,
        is_strict=options.is_strict,
        project_id=place.project_id,
        root=place.root,
        recorder=recorder,
        launcher=launcher_for(profile, asks_for_hooks=options.asks_for_hooks, version=version) if closed is None else None,
        is_strict_about_doors=options.doors == KNOWN,
        notes=() if closed is None or not profile.doors else (closed,),
        is_changed=argv != list(options.argv) or bool(added.launch.environment.keys() - os.environ.keys()),
        announcement="" if failed is None else failed.text,
        enclose=_wall(place, options, home, profile),
        findings=DoorFindings(options.argv[0], os.environ, place.home),
        note_version=lambda version: remember_version(options.argv[0], os.environ, place.home, version),
    )


def find_acp_words(place: Place, options: WrapOptions) -> list[str]:
    """The program's words, as it speaks the Agent Client Protocol. Raises ProfileError, and WrapFailed without the package."""
    if importlib.util.find_spec("acp") is None:
        raise WrapFailed("The Agent Client Protocol needs a package that is not installed: pip install 'agent-relay[acp]'")
    shelf = load_shelf(place.root, place.home)
    return acp_words(options.argv, shelf.profiles, find_profile(place, options), os.environ.get("PATH"))


def make_acp_setup(place: Place, options: WrapOptions, home: Home, recorder: TerminalRecorder | None) -> AgentSetup:
    """A console in the terminal, and the agent below it; a wall stands around the agent, and the console before it."""
    words = find_acp_words(place, options)
    inbox = os.path.join(home.team, INBOX_FILE)
    environment = child_environment(os.environ, ACP_CONSOLE, home, socket=place.socket, root=place.root, inbox=inbox)
    wall = _wall(place, options, home, find_profile(place, options))
    agent = words if wall is None else wall(Program(tuple(words), os.getcwd(), environment)).argv
    is_adapted = words[0] != options.argv[0]
    return AgentSetup(
        home=home,
        profile=ACP_CONSOLE,
        argv=console_words(
            home.team, socket_path(home.team, place.project_id, home.name), os.path.basename(options.argv[0]), agent
        ),
        cwd=os.getcwd(),
        environment=environment,
        make_terminal=lambda listener: make_terminal(options.choice, home, place.project_id, listener),
        is_running=lambda: is_running(options.choice, home, place.project_id),
        prefix=options.prefix,
        has_introduction=options.has_introduction,
        is_strict=options.is_strict,
        project_id=place.project_id,
        root=place.root,
        recorder=recorder,
        launcher=AcpLauncher(),
        note_version=None if is_adapted else lambda version: remember_version(options.argv[0], os.environ, place.home, version),
    )


def _wall(place: Place, options: WrapOptions, home: Home, profile: Profile) -> Callable[[Program], Program] | None:
    sandbox = options.sandbox
    if sandbox is None:
        return None
    cwd = os.path.realpath(os.getcwd())
    reach = Reach(
        Home(os.path.realpath(home.state_dir), home.name), os.path.realpath(place.home), place.root, cwd,
        os.path.realpath(place.socket), find_work_folder(cwd, place.root),
    )  # fmt: skip

    def enclose(program: Program) -> Program:
        words = enclose_words(check_sandbox(), sandbox, reach, profile, program.argv, program.environment)
        return Program(words, program.cwd, program.environment)

    return enclose


async def _known_names(place: Place) -> list[str]:
    async with observe(place) as relay:
        return [agent.name for agent in (await relay.agents()).agents]


def _log_to(folder: str) -> None:
    """Logs what the wrapper did and why it waited; never what a message says."""
    path = os.path.join(folder, LOG_FILE)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600))
    handler = RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("agent_relay")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
