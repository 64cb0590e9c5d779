"""The machine: the interpreter, the terminal, tmux, and the folders that must be the user's own."""

from __future__ import annotations

import locale
import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping

from agent_relay.cli.doctor.findings import Finding, Verdict
from agent_relay.cli.formats import format_bytes
from agent_relay.sdk.locate import Place

_LEAST_FREE_BYTES = 100 * 1024 * 1024


def check_machine(place: Place, environ: Mapping[str, str]) -> Iterator[Finding]:
    yield Finding("python", Verdict.OK, f"{sys.version.split()[0]} on {sys.platform}")
    yield _check_tmux()
    yield _check_terminal(environ)
    yield from _check_state(place)


def _check_tmux() -> Finding:
    from agent_relay.terminal.launch import WrapFailed, pick_backend

    try:
        tmux = pick_backend("tmux").tmux
    except WrapFailed as error:
        return Finding("tmux", Verdict.NOTE, str(error), "Install tmux 3.0 or newer to detach from agents and come back.")
    assert tmux is not None
    return Finding("tmux", Verdict.OK, f"{tmux.version[0]}.{tmux.version[1]} at {tmux.path}")


def _check_terminal(environ: Mapping[str, str]) -> Finding:
    term = environ.get("TERM", "")
    encoding = locale.getpreferredencoding(do_setlocale=False)
    if encoding.replace("-", "").lower() != "utf8":
        return Finding(
            "terminal", Verdict.NOTE, f"the locale's encoding is {encoding}", "Set LANG to a UTF-8 locale, e.g. C.UTF-8."
        )
    if term in {"", "dumb"}:
        return Finding(
            "terminal", Verdict.NOTE, f"TERM is {term or 'not set'}", "Most CLIs need a real terminal to be wrapped here."
        )
    return Finding("terminal", Verdict.OK, f"{term}, {encoding}")


def _check_state(place: Place) -> Iterator[Finding]:
    try:
        found = os.lstat(place.state_dir)
    except FileNotFoundError:
        yield Finding("state", Verdict.OK, f"{place.state_dir} is made when the daemon starts")
        return
    except OSError as error:
        yield Finding("state", Verdict.BAD, f"{place.state_dir}: {error.strerror}", "Choose another place with --state-dir.")
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        yield Finding("state", Verdict.BAD, f"{place.state_dir} is not a folder of yours", "Choose another one with --state-dir.")
        return
    if stat.S_IMODE(found.st_mode) & 0o077:
        yield Finding("state", Verdict.BAD, f"others can look into {place.state_dir}", f"chmod 700 {place.state_dir}")
    free = shutil.disk_usage(place.state_dir).free
    if free < _LEAST_FREE_BYTES:
        yield Finding(
            "disk",
            Verdict.BAD,
            f"only {format_bytes(free)} free below {place.state_dir}",
            "Make room: a full disk stops sending.",
        )
    else:
        yield Finding("state", Verdict.OK, f"{place.state_dir}, {format_bytes(free)} free")
