"""The version of an installed CLI, as it says itself: asked beside the start, and remembered for the next one.

Some CLIs take a second to say it. So whoever starts one asks in a thread, goes on meanwhile, and waits a little at the end. What
was said is kept with the program's path, size and time of change, for a day: a shim of a version manager may lead to another
version though it stays as it is.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Mapping

from msgspec import Struct

from agent_relay.terminal.files.private_files import load_private, save_private

ASK_S = 15.0  # a cold start of some takes seconds; a program that takes longer says nothing
WAIT_S = 10.0  # for an answer, at the most, before the program is started; an old opencode would not start without it
KEPT_S = 86_400
CACHE_FILE = "cli-versions.json"
_MAX_KEPT = 32
_NUMBER = re.compile(r"(?<!\d)\d{1,9}(?:\.\d{1,9})+(?:-[\w.]+)?")


class _Entry(Struct, frozen=True):
    version: str
    asked_at: float  # in seconds since 1970


class _Cache(Struct):
    versions: dict[str, _Entry] = {}  # by program, see `_key`


def ask_version(
    program: str, environment: Mapping[str, str] | None = None, cwd: str | None = None, timeout_s: float = ASK_S
) -> str:
    """What `program --version` says; empty where it says none, or not in time."""
    try:
        done = subprocess.run(  # noqa: S603 - a CLI of the person's own
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=timeout_s, check=False, cwd=cwd, env=None if environment is None else dict(environment),
        )  # fmt: skip
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    found = _NUMBER.search(done.stdout) or _NUMBER.search(done.stderr)
    return found[0] if found else ""


class VersionLookup:
    """Asks at once, in a thread. `folder`: of the user's own, where answers are kept."""

    def __init__(self, program: str, environment: Mapping[str, str], folder: str) -> None:
        self._cache_path = os.path.join(folder, CACHE_FILE)
        self._environment = environment
        self._version = ""
        self._is_done = threading.Event()
        self._path = shutil.which(program, path=environment.get("PATH"))
        threading.Thread(target=self._find, name="version", daemon=True).start()

    def wait(self, timeout_s: float = WAIT_S) -> str:
        """Empty where it was not said in time."""
        self._is_done.wait(timeout_s)
        return self._version

    def _find(self) -> None:
        try:
            key = _key(self._path) if self._path else ""
            if key:
                self._version = self._remembered(key) or self._ask(key)
        finally:
            self._is_done.set()

    def _remembered(self, key: str) -> str:
        entry = load_private(self._cache_path, _Cache).versions.get(key)
        return entry.version if entry is not None and 0 <= time.time() - entry.asked_at < KEPT_S else ""

    def _ask(self, key: str) -> str:
        version = ask_version(self._path or "", self._environment)
        if version:
            cache = load_private(self._cache_path, _Cache)
            latest = sorted(cache.versions.items(), key=lambda item: item[1].asked_at)[-_MAX_KEPT + 1 :]
            cache.versions = {**dict(latest), key: _Entry(version, time.time())}
            with contextlib.suppress(OSError):  # it is asked again the next time
                save_private(self._cache_path, cache)
        return version


def _key(path: str) -> str:
    """Another one for a program that was replaced."""
    try:
        real = os.path.realpath(path)
        status = os.stat(real)
    except OSError:
        return ""
    return f"{real}\n{status.st_mtime_ns}\n{status.st_size}"
