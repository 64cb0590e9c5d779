"""The process that wraps an agent: joins the relay, runs the program, and ends with its status."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from logging.handlers import RotatingFileHandler
from typing import Any

import msgspec

from agent_relay.cli.failures import Failure
from agent_relay.cli.link import is_name_in_use, observe
from agent_relay.cli.safe_text import clean_line
from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.locate import Place
from agent_relay.terminal.backends.choice import Backend, Choice
from agent_relay.terminal.backends.orphans import keep_orphans
from agent_relay.terminal.doors.launching import Program
from agent_relay.terminal.doors.registry import kit_for
from agent_relay.terminal.inbox_file import INBOX_FILE
from agent_relay.terminal.joining import RECONNECT, join
from agent_relay.terminal.launch import Home, arguments, child_environment, make_terminal
from agent_relay.terminal.outbox import drop
from agent_relay.terminal.profile import Profile, profile_for
from agent_relay.terminal.project_files import find_work_folder
from agent_relay.terminal.recording import Recorder, record_from_start
from agent_relay.terminal.sandbox import DOORS_THROUGH_A_WALL, Reach, Sandbox, check_sandbox
from agent_relay.terminal.sandbox import enclose as enclose_words
from agent_relay.terminal.stop_signals import StopSignals
from agent_relay.terminal.wrapper import Setup, Wrapper

LOG_FILE = "wrapper.log"
_LOG_BYTES = 1_048_576
_WINDOW = 32  # messages on their way to this agent; the rest waits at the daemon, where it is safer
_CLOSE_S = 5.0


class Wish(msgspec.Struct, frozen=True):
    """What the person asked for."""

    argv: Sequence[str]
    name: str | None
    choice: Choice
    prefix: str
    has_introduction: bool = True
    cli: str | None = None  # the profile, where the program's name does not tell
    record: str | None = None  # a file for `replay`
    has_doors: bool = True  # False: everything is typed
    tries_doors: bool = False  # also those of a version that the relay was not tried with
    asks_for_hooks: bool = False  # the CLI may ask whether the relay's hooks may run
    session: str | None = None  # the daemon started us, for this session
    end_file: str | None = None  # where it looks for how we ended
    sandbox: Sandbox | None = None  # the wall around it
    is_strict: bool = False  # on the screen only commands with the run's nonce count


async def run_wrapper(place: Place, wish: Wish, is_ready: Callable[[str], None]) -> int:
    """Raises Failure, or what the terminal raises, when the agent cannot be started. `is_ready` is told its name."""
    cli = os.path.basename(wish.cli or wish.argv[0])
    meta: dict[str, Any] = {"backend": wish.choice.backend.value, "command": cli}
    if wish.session is not None:
        meta["session"] = wish.session
    if wish.sandbox is not None:
        meta["sandbox"] = msgspec.to_builtins(wish.sandbox)  # whoever this agent starts gets the same
        check_sandbox()

    def make_client(name: str) -> RelayClient:
        return RelayClient(
            name, socket=place.socket, state_dir=place.state_dir, cli=cli, meta=meta, max_inflight=_WINDOW,
            reconnect_attempts=None, backoff=RECONNECT, control=True,
        )  # fmt: skip

    try:
        relay = await join(make_client, wish.name, await _known_names(place) if wish.name is None else [])
    except RelayError as error:
        if wish.name and is_name_in_use(error):
            name = clean_line(wish.name)
            raise Failure(
                f"{name} is connected already: see it with `agent-relay attach {name}`, or choose another name."
            ) from None
        raise
    try:
        home = Home(place.state_dir, relay.name)
        home.make()
        _log_to(home.team)
        wrapper = Wrapper(
            _make_setup(place, wish, home, _make_recorder(wish, cli)), relay, lambda: make_client(home.name),
            lambda listener: make_terminal(wish.choice, home, place.project_id, listener),
        )  # fmt: skip
        StopSignals(wrapper.stop, wrapper.kill)
        async with _keeping_orphans(wish):
            status = await wrapper.run(lambda: is_ready(home.name))
        if wish.end_file is not None:
            with contextlib.suppress(OSError):  # then it is not known how it ended
                drop(os.path.dirname(wish.end_file), os.path.basename(wish.end_file), str(status.code))
    finally:
        await relay.close(_CLOSE_S)
    return status.code


@contextlib.asynccontextmanager
async def _keeping_orphans(wish: Wish) -> AsyncIterator[None]:
    """In tmux the program is not below us, and its pane does the same."""
    keeping = asyncio.create_task(keep_orphans()) if wish.choice.backend is Backend.PTY else None
    await asyncio.sleep(0)  # from the very first on
    try:
        yield
    finally:
        if keeping is not None:
            keeping.cancel()


def _make_recorder(wish: Wish, cli: str) -> Recorder | None:
    if wish.record is None:
        return None
    try:
        return record_from_start(wish.record, wish.choice.backend, cli, os.environ)
    except FileExistsError:
        raise Failure(f"{clean_line(wish.record)} is there already; remove it, or name another file.") from None
    except OSError as error:
        raise Failure(f"{clean_line(wish.record)} cannot be written: {error.strerror}.") from None


def _make_setup(place: Place, wish: Wish, home: Home, recorder: Recorder | None) -> Setup:
    profile = profile_for(wish.cli or wish.argv[0])
    inbox = os.path.join(home.team, INBOX_FILE)
    # Another program need not know its flags; and some doors are servers, which would stand outside of the wall.
    has_doors = wish.has_doors and wish.cli is None and (wish.sandbox is None or profile.name in DOORS_THROUGH_A_WALL)
    return Setup(
        home=home,
        profile=profile,
        argv=arguments(wish.argv, profile),
        cwd=os.getcwd(),
        environment=child_environment(os.environ, profile, home, socket=place.socket, root=place.root, inbox=inbox),
        prefix=wish.prefix,
        has_introduction=wish.has_introduction,
        is_strict=wish.is_strict,
        project_id=place.project_id,
        root=place.root,
        recorder=recorder,
        kit=kit_for(profile, asks_for_hooks=wish.asks_for_hooks) if has_doors else None,
        tries_doors=wish.tries_doors,
        enclose=_wall(place, wish, home, profile),
    )


def _wall(place: Place, wish: Wish, home: Home, profile: Profile) -> Callable[[Program], Program] | None:
    sandbox = wish.sandbox
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
    """What the wrapper did and why it waited; never what a message says."""
    path = os.path.join(folder, LOG_FILE)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600))
    handler = RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("agent_relay")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
