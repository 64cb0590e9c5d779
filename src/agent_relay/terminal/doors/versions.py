"""Versions of a CLI: which one is installed, and in which ones its doors are used.

By default they are used in all, as long as a door passes its probe.

Doors are not interfaces that their makers promise, and CLIs change every week. So a door of a version that this release was not
tested with is on trial until a first message was seen to be read through it. `doors = "known"` is the strict setting: there
only versions of a tested series count, which is the first two numbers of a version.

Some CLIs take a second to say their version. So whoever starts one asks in a thread, goes on meanwhile, and waits a little at
the end. What was said is kept with the program's path, size and time of change, for a day: a shim of a version manager may
lead to another version though it stays as it is.
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

SETTING = "doors"
PROBE, KNOWN, OFF = "probe", "known", "off"  # what it may be
TRY = "try"  # what `probe` was called when it was not the default
_BROKEN = {"opencode": (1, 17, 0)}  # the last version that does not start with what its door needs
ASK_S = 15.0  # a cold start of some takes seconds; a program that takes longer says nothing
WAIT_S = 10.0  # for an answer, at the most, before the program is started; an old opencode would not start without it
KEPT_S = 86_400
CACHE_FILE = "cli-versions.json"
_MAX_KEPT = 32
_NUMBER = re.compile(r"(?<!\d)\d{1,9}(?:\.\d{1,9})+(?:-[\w.]+)?")


class Versions(Struct, frozen=True):
    """Of one CLI, called `title`; `tested` is the version that the tests ran with. `tried`: more versions, and by which door all
    went well there."""

    title: str
    tested: str
    is_strict: bool = False
    tried: Mapping[str, str] = {}

    def objection(self, version: str, door: str = "") -> tuple[str, str]:
        """The reason why a door of this version is not used, and what to do; empty where it is used."""
        if not self.is_strict or self.is_tested(version, door):
            return "", ""
        way_out = f'`--{SETTING} {PROBE}` or `{SETTING} = "{PROBE}"` uses it if its probe passes.'
        return f"{self._say(version)}, but only {self.tested} was tested", way_out

    def is_tested(self, version: str, door: str = "") -> bool:
        return is_known(version, self.tested) or (bool(version) and bool(door) and self.tried.get(version) == door)

    def trial(self, version: str, door: str = "") -> str:
        """A note on a door until a message was read through it; empty for a tested version."""
        if self.is_tested(version, door):
            return ""
        return f"{self._say(version)}, but {self.tested} was tested: on trial until a first message is read"

    def _say(self, version: str) -> str:
        return f"{self.title} {version[:20]}" if version else f"{self.title} does not report its version"


def is_known(version: str, tested: str) -> bool:
    """The same series: the versions differ only after the second number."""
    return bool(version) and version.split(".")[:2] == tested.split(".")[:2]


def objection_to_start(cli: str, version: str) -> tuple[str, str]:
    """The reason why a CLI of this version is not started with what its doors need, and what to do; empty where it is."""
    last, numbers = _BROKEN.get(cli), numbers_of(version)
    if last is None or not numbers or numbers > last:
        return "", ""
    text = f"{cli} {version[:20]} ends at once when it is given a port and a password."
    return text, f"Update {cli}: versions after {'.'.join(map(str, last))} take them."


def numbers_of(version: str) -> tuple[int, ...]:
    """For comparing; what is not a number ends it."""
    found: list[int] = []
    for part in version.split(".")[:4]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits))
        if digits != part:
            break
    return tuple(found)


class _Entry(Struct, frozen=True):
    version: str
    asked_at: float  # in seconds since 1970


class _Cache(Struct):
    versions: dict[str, _Entry] = {}  # by program, see `_key`


def ask_version(
    program: str, environment: Mapping[str, str] | None = None, cwd: str | None = None, timeout_s: float = ASK_S
) -> str:
    """The version that `program --version` says; empty where it says none, or not in time."""
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
                self._version = _recall(self._cache_path, key) or self._ask(key)
        finally:
            self._is_done.set()

    def _ask(self, key: str) -> str:
        version = ask_version(self._path or "", self._environment)
        if version:
            _remember(self._cache_path, key, version)
        return version


def recall_version(program: str, environment: Mapping[str, str], folder: str) -> str:
    """The version that the program said before, without asking it; empty where that was too long ago."""
    key = find_program_key(program, environment)
    return _recall(os.path.join(folder, CACHE_FILE), key) if key else ""


def remember_version(program: str, environment: Mapping[str, str], folder: str, version: str) -> None:
    key = find_program_key(program, environment)
    if key and version:
        _remember(os.path.join(folder, CACHE_FILE), key, version)


def find_program_key(program: str, environment: Mapping[str, str]) -> str:
    """The key of this very program file; empty for one that is not there."""
    path = shutil.which(program, path=environment.get("PATH"))
    return _key(path) if path else ""


def _recall(cache_path: str, key: str) -> str:
    entry = load_private(cache_path, _Cache).versions.get(key)
    return entry.version if entry is not None and 0 <= time.time() - entry.asked_at < KEPT_S else ""


def _remember(cache_path: str, key: str, version: str) -> None:
    cache = load_private(cache_path, _Cache)
    latest = sorted(cache.versions.items(), key=lambda item: item[1].asked_at)[-_MAX_KEPT + 1 :]
    cache.versions = {**dict(latest), key: _Entry(version, time.time())}
    with contextlib.suppress(OSError):  # it is asked again the next time
        save_private(cache_path, cache)


def _key(path: str) -> str:
    """Another one for a program that was replaced."""
    try:
        real = os.path.realpath(path)
        status = os.stat(real)
    except OSError:
        return ""
    return f"{real}\n{status.st_mtime_ns}\n{status.st_size}"
