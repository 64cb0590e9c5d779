"""The options that commands share, and how their values are read."""

from __future__ import annotations

import os
import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.project.agents_file import read_names
from agent_relay.protocol.durations import parse_duration_ms
from agent_relay.protocol.places import ENV_PROJECT
from agent_relay.sdk.locate import Place, locate

if TYPE_CHECKING:
    from agent_relay.terminal.agent.sandbox import Sandbox


def complete_names(context: typer.Context, incomplete: str) -> list[str]:
    """Runs while somebody types, so nothing may be printed or raised."""
    chosen = context.params.get("project")
    environ = os.environ | ({ENV_PROJECT: chosen} if chosen else {})
    place = locate(socket=context.params.get("socket"), state_dir=context.params.get("state_dir"), environ=environ)
    return [name for name in read_names(place.state_dir) if name.lower().startswith(incomplete.lower())]


Socket = Annotated[str | None, typer.Option("--socket", metavar="PATH", help="The daemon's socket; by default the project's.")]
StateDir = Annotated[
    str | None, typer.Option("--state-dir", metavar="DIR", help="The daemon's directory; by default the project's.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AgentName = Annotated[str, typer.Argument(metavar="NAME", help="The agent's name.", autocompletion=complete_names)]
MessageId = Annotated[
    str, typer.Argument(metavar="ID", help="The message's id, or the eight digits that send, history and inbox show.")
]


def agent_option(flag: str, help_text: str, *others: str) -> Any:
    """An option that takes an agent's name, and completes it. `others`: further spellings."""
    return typer.Option(flag, *others, metavar="NAME", help=help_text, autocompletion=complete_names)


def inherit(
    context: typer.Context, socket: str | None, state_dir: str | None, as_json: bool
) -> tuple[str | None, str | None, bool, Any]:
    """Options may stand before or after the second word; the group leaves its own in `context.obj`, and one more."""
    outer = context.obj if isinstance(context.obj, tuple) else (None, None, False)
    return socket or outer[0], state_dir or outer[1], as_json or bool(outer[2]), outer[3] if len(outer) > 3 else None


def find_place(socket: str | None, state_dir: str | None) -> Place:
    return locate(socket=socket, state_dir=state_dir)


def read_doors(place: Place) -> str:
    """The doors to use, as the settings say: `probe`, `known` or `off`."""
    return str(_read_setting("doors", place))


def choose_doors(place: Place, wanted: str | None, *, is_off: bool, is_tried: bool) -> str:
    """The same, as the options of a start say, and then the settings."""
    from agent_relay.cli.failures import USAGE, Failure
    from agent_relay.terminal.doors.versions import KNOWN, OFF, PROBE, TRY

    given = {*([wanted] if wanted is not None else []), *([OFF] if is_off else []), *([PROBE] if is_tried else [])}
    given = {PROBE if one == TRY else one for one in given}
    if not given <= {PROBE, KNOWN, OFF}:
        raise Failure(f"--doors must be {PROBE}, {KNOWN} or {OFF}.", USAGE)
    if len(given) > 1:
        raise Failure("--doors, --no-doors and --try-doors cannot be combined; give one of them.", USAGE)
    if is_tried:
        sys.stderr.write("--try-doors is now the default: doors are used if their probe passes. You can leave it out.\n")
    return given.pop() if given else read_doors(place)


def is_strict(place: Place) -> bool:
    """Whether only commands with the run's nonce count on a screen, as the settings say."""
    return bool(_read_setting("strict_prefix", place))


def _read_setting(name: str, place: Place) -> object:
    from agent_relay.cli.failures import Failure
    from agent_relay.daemon.config import ConfigError, read_setting

    try:
        return read_setting(name, os.environ, project_root=place.root, home=place.home)
    except ConfigError as error:
        raise Failure(str(error)) from None


def read_sandbox(place: Place, network: str | None, home: str | None, *, wanted: bool) -> Sandbox | None:
    """The wall around an agent, as the options and then the settings say; None: there is none."""
    from agent_relay.cli.failures import USAGE, Failure
    from agent_relay.terminal.agent.sandbox import NETWORK, Sandbox

    if not wanted and not _read_setting("sandbox", place):
        if network is not None or home is not None:
            raise Failure("--sandbox-network and --sandbox-home require --sandbox.", USAGE)
        return None
    found = Sandbox(
        network or str(_read_setting("sandbox_network", place)), home or str(_read_setting("sandbox_home", place))
    )  # fmt: skip
    if found.network not in NETWORK:
        raise Failure("--sandbox-network must be on or off.", USAGE)
    for path in found.paths:
        if not os.path.exists(path):
            raise Failure(f"--sandbox-home: {clean_line(path)} does not exist.", USAGE)
    return found


def read_duration_ms(text: str, flag: str) -> int:
    try:
        value = parse_duration_ms(text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint=flag) from None
    if value < 1:
        raise typer.BadParameter("the duration must be greater than zero.", param_hint=flag)
    return value


def read_moment_ms(text: str | None, flag: str) -> int | None:
    """A span back from now (`1h`), or a date and time (`2025-01-31`, `2025-01-31 14:00`)."""
    if text is None:
        return None
    try:
        return max(0, time.time_ns() // 1_000_000 - parse_duration_ms(text))
    except ValueError:
        pass
    try:
        return max(0, int(datetime.fromisoformat(text).astimezone().timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        raise typer.BadParameter(
            f"{text!r} is neither a duration (30s, 5m, 1h, 7d) nor a date and time (2025-01-31 14:00).", param_hint=flag
        ) from None
