"""`up --foreground`: this process becomes the daemon.

The short way there reads the arguments itself. It knows exactly the options `up` has; anything else (a typing error,
`--help`) it leaves to the command-line library, which takes longer and explains better.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

_KNOCK_S = 1.0
_PLACES = {"--socket": "socket", "--state-dir": "state_dir", "--project": "project"}
_SWITCHES: dict[str, dict[str, str]] = {"--foreground": {}, "--no-http": {"http": "false"}}


def run_in_foreground(words: Sequence[str]) -> int | None:
    """The daemon's exit status; None when these are not the plain words of `up --foreground`."""
    if words[:1] != ["up"] or "--foreground" not in words:
        return None
    from agent_relay.daemon.arguments import read_flags
    from agent_relay.daemon.settings import FLAG_NAMES

    values = read_flags(words[1:], _PLACES | FLAG_NAMES, _SWITCHES)
    if values is not None and "project" in values:
        from agent_relay.cli.project.choice import choose_project

        if not os.path.isdir(os.path.expanduser(values["project"])):
            return None
        choose_project(values.pop("project"))
    if values is None or os.path.exists(_find_socket(values.get("socket"), values.get("state_dir"))):
        return None  # whether somebody answers there takes longer to find out
    return serve(values.pop("socket", None), values.pop("state_dir", None), values)


def is_up(socket: str | None, state_dir: str | None) -> bool:
    """Whether there is a daemon already: then this one is not started, and `up` says so."""
    from agent_relay.cli.project.daemon_process import Answer, knock

    return knock(_find_socket(socket, state_dir), _KNOCK_S).answer is Answer.RELAY


def _find_socket(socket: str | None, state_dir: str | None) -> str:
    from agent_relay.sdk.locate import locate

    return locate(socket=socket, state_dir=state_dir).socket


def serve(socket: str | None, state_dir: str | None, settings: Mapping[str, str]) -> int:
    from agent_relay.daemon.main import main
    from agent_relay.sdk.locate import locate

    place = locate(socket=socket, state_dir=state_dir)
    return main(daemon_arguments(place.socket, place.state_dir, place.root, settings))


def daemon_arguments(socket: str, state_dir: str, root: str, settings: Mapping[str, str]) -> list[str]:
    flags = {"socket": socket, "state-dir": state_dir, "project-root": root, **settings}
    return [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
