"""The daemon's command line. What is plain is read at once; for the rest there is the library, which explains better.

Loading that library and telling it every setting takes longer than opening the store, and whoever started a daemon waits.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from agent_relay.daemon.settings import FLAG_NAMES, SETTINGS

_SOCKET, _STATE_DIR, _PROJECT_ROOT = "socket", "state_dir", "project_root"
_NAMES = {"--socket": _SOCKET, "--state-dir": _STATE_DIR, "--project-root": _PROJECT_ROOT}


def read_arguments(words: Sequence[str]) -> dict[str, Any]:
    """Its place and the settings, by name; one that was not given is None. Ends the process where it must explain."""
    plain = read_flags(words, _NAMES | FLAG_NAMES)
    if plain is None or not {_SOCKET, _STATE_DIR} <= plain.keys():
        return _read_at_length(words)
    return {setting.name: None for setting in SETTINGS} | {_PROJECT_ROOT: os.getcwd()} | plain


def read_flags(
    words: Sequence[str], names: Mapping[str, str], switches: Mapping[str, Mapping[str, str]] | None = None
) -> dict[str, str] | None:
    """`--flag value` and `--flag=value`, by name, and switches by what they stand for; None for anything that is not that."""
    values: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if switches is not None and word in switches:
            values |= switches[word]
            continue
        flag, equals, value = word.partition("=")
        if flag not in names:
            return None
        if not equals:
            following = next(rest, None)
            if following is None or following.startswith("-"):
                return None
            value = following
        values[names[flag]] = value
    return values


def _read_at_length(words: Sequence[str]) -> dict[str, Any]:
    import argparse  # noqa: PLC0415 - see above

    parser = argparse.ArgumentParser(prog="python -P -m agent_relay.daemon", description="The relay daemon, in the foreground.")
    parser.add_argument("--socket", required=True, help="path of the Unix socket")
    parser.add_argument("--state-dir", required=True, help="directory for the daemon's files")
    parser.add_argument("--project-root", default=os.getcwd(), help="the project whose .agent-relay/config.toml is used")
    for setting in SETTINGS:
        alone: dict[str, Any] = {"nargs": "?", "const": "true"} if setting.is_switch else {}
        about = f"{setting.help} (default: {setting.default})"
        parser.add_argument(setting.flag, dest=setting.name, default=None, help=about, **alone)
    return vars(parser.parse_args(words))
