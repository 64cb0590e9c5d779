"""The places that the daemon writes to. Each is really written to, in a file of its own that is removed again."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import stat
from collections.abc import Iterator

from agent_relay.cli.doctor.findings import Finding, Verdict
from agent_relay.cli.output.formats import format_bytes
from agent_relay.protocol.places import LOG_FILE
from agent_relay.sdk.locate import Place

_LEAST_FREE_BYTES = 100 * 1024 * 1024
_TRIAL_BYTES = 4_096


def check_places(place: Place) -> Iterator[Finding]:
    yield from _check_state(place.state_dir)
    yield _check_socket(place.socket)
    yield from _check_log(os.path.join(place.state_dir, LOG_FILE))


def _check_state(state_dir: str) -> Iterator[Finding]:
    try:
        found = os.lstat(state_dir)
    except FileNotFoundError:
        parent = _nearest_folder(state_dir)
        if why := _try_folder(parent):
            yield Finding("state", Verdict.BAD, f"{state_dir} cannot be created: {parent}: {why}", _ELSEWHERE)
        else:
            yield Finding("state", Verdict.OK, f"{state_dir} will be created when the daemon starts")
        return
    except OSError as error:
        yield Finding("state", Verdict.BAD, f"{state_dir}: {error.strerror}", _ELSEWHERE)
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        yield Finding("state", Verdict.BAD, f"{state_dir} is not a directory that you own", _ELSEWHERE)
        return
    if stat.S_IMODE(found.st_mode) & 0o077:
        yield Finding("state", Verdict.BAD, f"other users can read {state_dir}", f"chmod 700 {state_dir}")
    if why := _try_file(state_dir):
        yield Finding("state", Verdict.BAD, f"{state_dir} is not writable: {why}", f"chmod u+rwx {state_dir}, or free some space")
        return
    free = shutil.disk_usage(state_dir).free
    if free < _LEAST_FREE_BYTES:
        yield Finding(
            "disk",
            Verdict.BAD,
            f"only {format_bytes(free)} free in {state_dir}",
            "Free some space: on a full disk nothing can be sent.",
        )
    else:
        yield Finding("state", Verdict.OK, f"{state_dir} is writable, {format_bytes(free)} free")


def _check_socket(path: str) -> Finding:
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        parent = _nearest_folder(folder)
        if error := _try_folder(parent):
            return Finding("socket", Verdict.BAD, f"{folder} cannot be created: {parent}: {error}", _OTHER_SOCKET)
        return Finding("socket", Verdict.OK, f"{path} will be created when the daemon starts")
    # No longer than the real one's name, which is known to fit.
    trial = os.path.join(folder, secrets.token_hex(3))
    try:
        with (
            contextlib.closing(socket.socket(socket.AF_UNIX)) as listener,
            contextlib.closing(socket.socket(socket.AF_UNIX)) as caller,
        ):
            listener.bind(trial)
            listener.listen()
            caller.connect(trial)
    except OSError as error:
        return Finding("socket", Verdict.BAD, f"sockets do not work in {folder}: {error.strerror or error}", _OTHER_SOCKET)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(trial)
    return Finding("socket", Verdict.OK, f"sockets work in {folder}")


def _check_log(path: str) -> Iterator[Finding]:
    """Only where there is one: else it is made where the state is."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        yield Finding("log", Verdict.BAD, f"{path} is not writable: {error.strerror}", f"Remove it, or: chmod u+rw {path}")


def _nearest_folder(path: str) -> str:
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def _try_folder(parent: str) -> str:
    """The reason why no folder can be made there; empty where one can."""
    trial = os.path.join(parent, f".agent-relay-{secrets.token_hex(6)}")
    try:
        os.mkdir(trial, 0o700)
        os.rmdir(trial)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _try_file(folder: str) -> str:
    """The reason why no file can be written there; empty where one can."""
    trial = os.path.join(folder, f".doctor-{secrets.token_hex(6)}")
    try:
        descriptor = os.open(trial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, bytes(_TRIAL_BYTES))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
            os.unlink(trial)
    except OSError as error:
        return error.strerror or str(error)
    return ""


_ELSEWHERE = "Choose another place with --state-dir."
_OTHER_SOCKET = "Choose another place with --socket, or AGENT_RELAY_SOCKET."
