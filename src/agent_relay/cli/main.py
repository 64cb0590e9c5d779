"""The entry point: turns arguments into an exit status, and every failure into one sentence.

Nothing heavy is imported before it is needed. `up --foreground` in particular goes to the daemon without the
command-line library, because what waits for a daemon waits for its imports.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in `typing`, which would have to be imported where Ctrl-C still shows a traceback
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_relay.cli.failures import Failure

EXIT_INTERRUPTED = 130  # what shells report for a program that Ctrl-C ended
_SECRETS = {"AGENT_RELAY_API_TOKEN", "AGENT_RELAY_STORAGE_URL", "PGPASSWORD"}  # as in `daemon.secret_variable`
_DEBUG_VARIABLE = "AGENT_RELAY_DEBUG"


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _hide_secrets()
        for stream in (sys.stdout, sys.stderr):
            _never_fail_to_encode(stream)
        status = _run(words)
        sys.stdout.flush()  # here, where a closed pipe is still ours to be quiet about
        return status
    except BrokenPipeError:
        return _leave_quietly()
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            sys.stderr.write("\n")  # the prompt goes below the ^C that the terminal has echoed
        return EXIT_INTERRUPTED


def _run(words: list[str]) -> int:
    if words == ["--version"]:
        from agent_relay.version import __version__

        sys.stdout.write(f"agent-relay {__version__}\n")
        return 0
    from agent_relay.cli.foreground import run_in_foreground

    status = run_in_foreground(words)
    if status is not None:
        return status
    from agent_relay.cli.interrupts import ending_at_once

    try:
        with ending_at_once():
            from agent_relay.cli.app import run_app

            return run_app(words)
    except (BrokenPipeError, KeyboardInterrupt):
        raise
    except Exception as error:
        if is_debugging():
            raise
        from agent_relay.cli.failures import explain_failure

        failure = explain_failure(error)
        sys.stdout.flush()
        sys.stderr.write(_show_failure(failure, words))
        return failure.status


def _show_failure(failure: Failure, words: list[str]) -> str:
    """A sentence; with --json an object, on the same stream: what stands on standard output is data and nothing else."""
    from agent_relay.cli.first_word import wants_json

    if not wants_json(words):
        return f"agent-relay: {failure.sentence}\n"
    import json

    return json.dumps(failure.for_programs(), default=str) + "\n"


def _hide_secrets() -> None:
    """Before there is an agent that could look."""
    if not _SECRETS.isdisjoint(os.environ):
        from agent_relay.daemon.secret_variable import hide_secrets

        hide_secrets()


def is_debugging() -> bool:
    return os.environ.get(_DEBUG_VARIABLE, "").strip().lower() not in {"", "0", "false", "no", "off"}


def _never_fail_to_encode(stream: object) -> None:
    """A terminal of another encoding shows an escape where it lacks a character; that beats failing half-way."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _leave_quietly() -> int:
    """Whoever read our output has seen enough (`| head`); Python must not complain about it at exit either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return 0
