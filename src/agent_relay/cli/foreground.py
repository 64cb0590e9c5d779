"""`up --foreground`: this process becomes the daemon.

The short way there reads the arguments itself. It knows exactly the options `up` has; anything else (a typing error,
`--help`) it leaves to the command-line library, which takes longer and explains better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_SWITCHES: dict[str, dict[str, str]] = {"--foreground": {}, "--no-http": {"http": "false"}}


def run_in_foreground(words: Sequence[str]) -> int | None:
    """The daemon's exit status; None when these are not the plain words of `up --foreground`."""
    if words[:1] != ["up"] or "--foreground" not in words:
        return None
    from agent_relay.daemon.arguments import read_flags
    from agent_relay.daemon.config import SETTINGS

    names = {"--socket": "socket", "--state-dir": "state_dir"} | {setting.flag: setting.name for setting in SETTINGS}
    values = read_flags(words[1:], names, _SWITCHES)
    if values is None:
        return None
    return serve(values.pop("socket", None), values.pop("state_dir", None), values)


def serve(socket: str | None, state_dir: str | None, settings: Mapping[str, str]) -> int:
    from agent_relay.daemon.main import main
    from agent_relay.sdk.locate import locate

    place = locate(socket=socket, state_dir=state_dir)
    return main(daemon_arguments(place.socket, place.state_dir, place.root, settings))


def daemon_arguments(socket: str, state_dir: str, root: str, settings: Mapping[str, str]) -> list[str]:
    flags = {"socket": socket, "state-dir": state_dir, "project-root": root, **settings}
    return [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
