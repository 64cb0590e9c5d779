"""Finding tmux, its version, and running one of its commands; the one place where its stderr becomes an exception.

Every call names our own socket and an empty configuration, so the person's tmux is neither read nor touched.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence

from msgspec import Struct

from agent_relay.terminal.backends.terminal import BackendMissing, TerminalEnded, TerminalError
from agent_relay.terminal.backends.tmux_control import escape_argument

OLDEST = (3, 0)  # control mode with flags, send-keys -H and the command parser that `quote_word` writes for
_ANSWER_DEADLINE_S = 20.0  # a tmux that does not answer is stopped or stuck; a loaded machine needs tenths of a second
_VERSION = re.compile(r"(?<!\d)(\d{1,9})\.(\d{1,9})")
_GONE = ("no server running", "error connecting", "can't find", "server exited", "lost server", "no current", "no sessions")

Version = tuple[int, int]
_NEWEST: Version = (99, 0)  # "tmux master" and "tmux openbsd-7.4" carry no number of their own


class TmuxFailed(TerminalError):  # noqa: N818 - named by the condition
    """tmux refused; the text is its own."""


class TmuxGone(TerminalEnded):
    """The server, session or pane that was spoken to is not there."""


class Tmux(Struct, frozen=True):
    """A tmux that can be used, by the path of its program."""

    path: str
    version: Version


def find_tmux(search_path: str | None = None) -> Tmux:
    """The tmux on the PATH; raises BackendMissing with what to do."""
    path = shutil.which("tmux", path=search_path)
    if path is None:
        raise BackendMissing("tmux was not found. Install it (`apt install tmux`, `brew install tmux`), or use `--backend pty`.")
    try:
        done = subprocess.run([path, "-V"], capture_output=True, timeout=_ANSWER_DEADLINE_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BackendMissing(f"{path} cannot be run: {error}. Use `--backend pty`.") from None
    if done.returncode:
        raise BackendMissing(f"{path} cannot be run: it ended with {done.returncode}. Use `--backend pty`.")
    version = parse_version(done.stdout.decode("utf-8", "replace"))
    if version < OLDEST:
        raise BackendMissing(f"{path} is version {version[0]}.{version[1]}; 3.0 or newer is needed. Use `--backend pty`.")
    return Tmux(path, version)


def parse_version(said: str) -> Version:
    """`tmux 3.3a`, `tmux next-3.5`, `tmux master`, `tmux openbsd-7.4`."""
    match = _VERSION.search(said)
    if match is None or "openbsd" in said:
        return _NEWEST
    return int(match[1]), int(match[2])


def base_command(tmux: Tmux, socket: str) -> list[str]:
    # -u: UTF-8 whatever the locale says; a daemon started by a service manager has none.
    return [tmux.path, "-u", "-f", os.devnull, "-S", socket]


def client_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """For a tmux client: inside another tmux it would refuse to nest, or talk to that one."""
    return {name: value for name, value in environment.items() if name not in {"TMUX", "TMUX_PANE"}}


async def run_tmux(
    base: Sequence[str],
    *commands: tuple[str, ...],
    environment: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> str:
    """Runs these commands one after the other, every word of them passed as it is; `base` comes from `base_command`."""
    words = [word for command in commands for word in (*map(escape_argument, command), ";")]
    # In a thread and not through the loop: uvloop lets the far ends of its pipes leak into the child, a tmux server that
    # is started on the way keeps them for life, and whoever waits for the end of the output waits as long.
    try:
        done = await asyncio.to_thread(
            subprocess.run,
            [*base, *words[:-1]],
            env=client_environment(os.environ if environment is None else environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TmuxFailed(f"tmux did not answer within {_ANSWER_DEADLINE_S:.0f} seconds.") from None
    raise_tmux_error(done.returncode, done.stderr.decode("utf-8", "replace"))
    return done.stdout.decode("utf-8", "surrogateescape")


def raise_tmux_error(code: int, said: str) -> None:
    """Nothing, when it went well. tmux prints its errors and, in most but not all versions, exits with 1."""
    said = said.strip()
    if code == 0 and not said:
        return
    if any(phrase in said for phrase in _GONE):
        raise TmuxGone(f"tmux: {said}")
    raise TmuxFailed(f"tmux: {said or f'exit code {code}'}")
