"""The machine: the interpreter, the backends, the terminal, and the places that must be the user's own.

Each backend really runs a small program and is taken down again.
"""

from __future__ import annotations

import contextlib
import locale
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping

from agent_relay.cli.doctor.findings import Finding, Verdict
from agent_relay.cli.doctor.places import check_places
from agent_relay.sdk.locate import Place

_ANSWER_S = 10.0  # a loaded machine needs tenths of a second
_WORD = "agent-relay-doctor"
_USE_PTY = "Use --backend pty, which needs no tmux."
_PROGRAM = ("/bin/sh", "-c", f"echo {_WORD}; read answer")


def check_machine(place: Place, environ: Mapping[str, str]) -> Iterator[Finding]:
    yield Finding("python", Verdict.OK, f"{sys.version.split()[0]} on {sys.platform}")
    yield from check_backends()
    yield _check_terminal(environ)
    yield from check_places(place)


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


def check_backends() -> Iterator[Finding]:
    tmux, terminal = _check_tmux(), _check_pty()
    if tmux.verdict is not Verdict.OK and terminal.verdict is Verdict.OK:
        tmux = Finding(tmux.about, Verdict.NOTE, tmux.text, tmux.mend)  # agents run in the other one
    yield tmux
    yield terminal


def _check_tmux() -> Finding:
    from agent_relay.terminal.agent.launch import WrapFailed, pick_backend
    from agent_relay.terminal.backends.tmux_program import base_command, client_environment

    try:
        tmux = pick_backend("tmux").tmux
    except WrapFailed as error:
        return Finding("tmux", Verdict.BAD, str(error), "Install tmux 3.0 or newer to detach from agents and come back.")
    assert tmux is not None
    name = f"{tmux.version[0]}.{tmux.version[1]} at {tmux.path}"
    folder = tempfile.mkdtemp(prefix="agent-relay-")
    base = base_command(tmux, os.path.join(folder, "tmux"))
    environment = client_environment(os.environ)

    def run(*words: str) -> str:
        done = subprocess.run(  # noqa: S603 - the tmux that agents would run in
            [*base, *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=_ANSWER_S, check=False,
        )  # fmt: skip
        if done.returncode:
            raise OSError(0, done.stderr.strip() or f"it ended with {done.returncode}")
        return done.stdout

    try:
        run("new-session", "-d", "-x", "80", "-y", "24", *_PROGRAM)
        deadline = time.monotonic() + _ANSWER_S
        while _WORD not in run("capture-pane", "-p"):
            if time.monotonic() > deadline:
                return Finding("tmux", Verdict.BAD, f"{name} shows no output of a program that it runs", _USE_PTY)
            time.sleep(0.02)
    except (OSError, subprocess.TimeoutExpired) as error:
        why = error.strerror if isinstance(error, OSError) else "it does not answer"
        return Finding("tmux", Verdict.BAD, f"{name} cannot run a program: {why}", _USE_PTY)
    finally:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            run("kill-server")
        shutil.rmtree(folder, ignore_errors=True)
    return Finding("tmux", Verdict.OK, f"{name}, runs programs")


def _check_pty() -> Finding:
    """Pseudo-terminals: without them nothing can be wrapped, because tmux needs them as well."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        return Finding(
            "pty", Verdict.BAD, f"the system cannot open a terminal: {error.strerror}", "Mount /dev/pts, or close some terminals."
        )
    try:
        child = subprocess.Popen(  # noqa: S603 - a fixed program
            _PROGRAM, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
    except OSError as error:
        os.close(ours)
        return Finding("pty", Verdict.BAD, f"cannot run a program: {error.strerror}", "Free some memory, or end some processes.")
    finally:
        os.close(theirs)
    try:
        if _WORD in _read(ours):
            return Finding("pty", Verdict.OK, "runs programs")
        return Finding("pty", Verdict.BAD, "a program in its own terminal shows no output", "Check that /bin/sh works.")
    finally:
        os.close(ours)
        child.kill()
        child.wait()


def _read(descriptor: int) -> str:
    """Everything shown until the word is there, or the time over."""
    shown = b""
    deadline = time.monotonic() + _ANSWER_S
    while _WORD.encode() not in shown and (left := deadline - time.monotonic()) > 0:
        if select.select([descriptor], [], [], left)[0]:
            try:
                shown += os.read(descriptor, 4_096)
            except OSError:  # it has ended
                break
    return shown.decode("utf-8", "replace")
