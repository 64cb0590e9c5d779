"""`up`: starts the daemon, in the background unless told otherwise, and waits until it answers."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Annotated

import msgspec
import typer

from agent_relay.cli.failures import FAILED, USAGE, Failure
from agent_relay.cli.interrupts import ending_in_order, run_until_interrupted
from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.project.cluster_file import describe_cluster, wait_for_seat
from agent_relay.cli.project.http_server import HttpPlace, find_page_address, wait_for_http_place
from agent_relay.cli.project.notes import find_config_notes, show_config_notes, show_former_relay
from agent_relay.daemon.config import ConfigError
from agent_relay.daemon.settings import SETTINGS, Setting
from agent_relay.interpreter import run_module
from agent_relay.protocol import places
from agent_relay.sdk.locate import Place

START_DEADLINE_S = 20.0  # a cold interpreter on a busy machine; a daemon usually answers in a fraction of a second
_KNOCK_S = 2.0
_POLL_S = 0.02
_LAST_WORDS_BYTES = 65_536
_LEAST_FREE_BYTES = 65_536  # with less the daemon cannot even begin, nor write down why


def with_settings(command: Callable[..., int]) -> Callable[..., int]:
    """Gives the command an option for each of the daemon's settings, so that a new one needs no change here."""
    signature = inspect.signature(command, eval_str=True)
    own = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    parameters = [*own, *(_option(setting) for setting in SETTINGS)]
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _option(setting: Setting) -> inspect.Parameter:
    if setting.is_switch:
        switch = typer.Option(setting.flag, help=f"{setting.help} [{setting.env}]", show_default=False)
        return inspect.Parameter(setting.name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, switch])
    default = f"; default {setting.default}" if setting.default else ""
    option = typer.Option(setting.flag, metavar="VALUE", help=f"{setting.help} [{setting.env}{default}]", show_default=False)
    return inspect.Parameter(setting.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, option])


def read_settings(settings: Mapping[str, str | bool | None], *, no_http: bool) -> dict[str, str]:
    """Those that were given."""
    chosen = {name: "true" if value is True else str(value) for name, value in settings.items() if value not in {None, False}}
    return chosen | ({"http": "false"} if no_http else {})


@with_settings
def up(
    foreground: Annotated[bool, typer.Option("--foreground", help="Run in the foreground until Ctrl-C.")] = False,
    no_http: Annotated[bool, typer.Option("--no-http", help="Start without the HTTP server.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
    **settings: str | bool | None,
) -> int:
    """Start the project's daemon; returns once it answers.

    Every setting can also be an environment variable or a line in config.toml; see docs/configuration.md.
    """
    chosen = read_settings(settings, no_http=no_http)
    if foreground:
        from agent_relay.cli.foreground import is_up, serve

        if not is_up(socket, state_dir):
            with ending_in_order():
                return serve(socket, state_dir, chosen)
    place = find_place(socket, state_dir)
    pid, was_up = start(place, chosen)
    if was_up:
        show_config_notes(place)
    show_former_relay(place)
    show_up(place, pid, chosen, as_json=as_json, word="already up" if was_up else "up")
    return 0


def show_up(place: Place, pid: int | None, chosen: dict[str, str], *, as_json: bool, word: str) -> None:
    """Shows what runs now, and where. Of one that was up already also which of the given settings it does not have."""
    was_up = word == "already up"
    with _progress("waiting for the cluster's seat"):
        cluster = wait_for_seat(place.state_dir)
    http = wait_for_http_place(place.state_dir)
    url = http.url if http is not None else None
    page = find_page_address(place.state_dir, http) if http is not None and url is not None else None
    if http is not None and http.warning:
        Screen(sys.stderr).line(("WARNING  ", "bold red"), (clean_line(http.warning), "yellow"))
    screen = Screen()
    unused = _find_unused(place, chosen, http) if was_up else {}
    if as_json:
        screen.json(
            {"up": True, "already_up": was_up, "pid": pid, "project": place.root, "project_name": place.name}
            | {"socket": place.socket, "state_dir": place.state_dir, "url": url, "dashboard": page}
            | {"notes": find_config_notes(place), "need_restart": list(unused)}
            | ({} if cluster is None else {"cluster": msgspec.to_builtins(cluster)})
        )
    else:
        width = max(9, len(word))
        screen.line((f"{word:<{width}}", "bold green"), f"  pid {pid}" if pid else "")
        screen.line((f"{'project':<{width}}", "dim"), f"  {clean_line(place.name)}", (f"  {clean_line(place.root)}", "dim"))
        screen.line((f"{'socket':<{width}}", "dim"), f"  {place.socket}")
        if page is not None:
            screen.line((f"{'dashboard':<{width}}", "dim"), f"  {page}")
        elif http is not None and chosen.get("http") != "false":
            screen.line((f"{'http':<{width}}", "dim"), "  ", (f"none: {clean_line(http.reason)}", "yellow"))
        for label, text in zip(("cluster", ""), describe_cluster(cluster) if cluster is not None else (), strict=False):
            screen.line((f"{label:<{width}}", "dim"), "  ", *text)
        if unused:
            change = f"agent-relay restart {' '.join(unused.values())}"
            advice = f"{', '.join(unused)}: the daemon was started with another setting. To change it: {change}"
            screen.line((f"{'unused':<{width}}", "dim"), "  ", (clean_line(advice), "yellow"))


def _find_unused(place: Place, chosen: dict[str, str], http: HttpPlace | None) -> dict[str, str]:
    """Flags that the running daemon does not meet, each with how it is spelled whole."""
    from agent_relay.daemon.config import find_differences
    from agent_relay.daemon.project_record import read_record

    record = read_record(place.state_dir)
    flags, variables = ({}, {}) if record is None else (record.flags, record.variables)
    try:
        differing = find_differences(chosen, flags, variables, project_root=place.root, home=place.home)
    except ConfigError as error:
        raise Failure(str(error), USAGE) from None
    names = list(chosen) if record is None else differing
    if http is not None and chosen.get("port") == str(http.port):
        names = [name for name in names if name != "port"]
    settings = {setting.name: setting for setting in SETTINGS}
    spelled: dict[str, str] = {}
    for name in names:
        setting, value = settings[name], chosen[name]
        is_alone = setting.is_switch and value == "true"
        flag = "--no-http" if name == "http" and value == "false" else setting.flag
        spelled[flag] = flag if is_alone or flag == "--no-http" else f"{flag} {shlex.quote(value)}"
    return spelled


# --- the background daemon --------------------------------------------------------------------------------------------


def start(place: Place, settings: dict[str, str]) -> tuple[int | None, bool]:
    """The daemon's pid, and whether it was up before."""
    from agent_relay.cli.project.daemon_process import Answer, knock

    found = knock(place.socket, _KNOCK_S)
    if found.answer is Answer.RELAY:
        return found.pid, True
    if found.answer is Answer.STRANGER:
        raise Failure(found.why or f"Something at {place.socket} answers, but it is not your daemon; choose another --socket.")
    log = prepare(place, settings)
    show_config_notes(place)
    return run_until_interrupted(_start(place, settings, log))


async def _start(place: Place, settings: dict[str, str], log: str) -> tuple[int | None, bool]:
    child, said_before = _spawn(place, settings, log)
    with _progress("starting the daemon"):
        return await _wait_until_it_answers(place, child, log, said_before)


def prepare(place: Place, settings: dict[str, str]) -> str:
    """Finds out what is wrong while there is somebody to tell; returns the path of the log."""
    from agent_relay.cli.foreground import daemon_arguments
    from agent_relay.daemon.directories import PlaceUnusable, make_private_directory
    from agent_relay.daemon.main import parse

    try:
        config = parse(daemon_arguments(place.socket, place.state_dir, place.root, settings))
        make_private_directory(config.state_dir)
    except ConfigError as error:
        raise Failure(str(error), USAGE) from None
    except PlaceUnusable as error:
        raise Failure(str(error)) from None
    return config.file(places.LOG_FILE)


def _spawn(place: Place, settings: dict[str, str], log: str) -> tuple[subprocess.Popen[bytes], int]:
    """Its own session, so that no terminal takes it along. What it says outside its log goes to the same file; also
    returned: how long that file was before."""
    from agent_relay.cli.foreground import daemon_arguments

    arguments = daemon_arguments(place.socket, place.state_dir, place.root, settings)
    descriptor = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    try:
        said_before = os.fstat(descriptor).st_size
        child = subprocess.Popen(  # noqa: S603 - ourselves, with arguments we made
            run_module("agent_relay.daemon", *arguments),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=descriptor, start_new_session=True,
        )  # fmt: skip
        return child, said_before
    finally:
        os.close(descriptor)


def _progress(text: str) -> contextlib.AbstractContextManager[object]:
    """A sign of life for a person who waits."""
    screen = Screen(sys.stderr)
    return screen.console.status(text) if screen.is_terminal else contextlib.nullcontext()


async def _wait_until_it_answers(
    place: Place, child: subprocess.Popen[bytes], log: str, said_before: int
) -> tuple[int | None, bool]:  # fmt: skip
    from agent_relay.cli.project.daemon_process import Answer, knock
    from agent_relay.private_files import is_locked

    deadline = time.monotonic() + START_DEADLINE_S
    try:
        while time.monotonic() < deadline:
            ended = child.poll() is not None
            found = knock(place.socket, _KNOCK_S)
            if found.answer is Answer.RELAY:
                return found.pid, found.pid not in {None, child.pid}  # another: somebody else started one just before us
            if ended and not is_locked(os.path.join(place.state_dir, places.LOCK_FILE)):
                break  # else another one was faster, and is about to answer
            await asyncio.sleep(_POLL_S)
    except asyncio.CancelledError:
        child.terminate()
        raise
    if child.poll() is None:
        child.terminate()
        raise Failure(f"The daemon did not answer within {START_DEADLINE_S:g} s and was stopped; {log} shows how far it got.")
    status = USAGE if child.returncode == USAGE else FAILED
    raise Failure(last_words(log, said_before) or _guess(place.state_dir, log), status)


def _guess(state_dir: str, log: str) -> str:
    """A reason, where the daemon could not say itself what was wrong."""
    if shutil.disk_usage(state_dir).free < _LEAST_FREE_BYTES:
        return f"The daemon ended at once: the disk that holds {state_dir} is full."
    return f"The daemon ended at once; {log} may say why."


def last_words(log: str, start_at: int) -> str:
    """The sentence that the child died with: what it wrote there that is not a line of its log."""
    try:
        with open(log, "rb") as file:
            file.seek(start_at)
            said = file.read(_LAST_WORDS_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    lines = [line.strip() for line in said if line.strip() and not line.startswith("{")]
    return clean_line(lines[-1].removeprefix("agent-relay: ")) if lines else ""
