"""Findings about the doors of a program, kept for its next starts: which have proven themselves, and which fail.

It holds for this very program file: an update makes another one. Only what cannot change between two starts is kept as a failure,
and that for a day, because a version manager may put another version behind the same file. Without a known version nothing is
kept as proven.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping

from msgspec import Struct

from agent_relay.terminal.doors.versions import find_program_key
from agent_relay.terminal.files.private_files import load_private, save_private

FINDINGS_FILE = "door-findings.json"
FAILED_S = 86_400
PROVEN_S = 30 * 86_400  # the makers change what a server of theirs accepts, too
AGAIN = "It is tried again after an update, or a day later."
_MAX_KEPT = 32  # programs


class DoorFinding(Struct, frozen=True):
    works: bool
    found_at: float  # in seconds since 1970
    version: str = ""
    reason: str = ""  # why it does not work
    mend: str = ""


class _Findings(Struct):
    programs: dict[str, dict[str, DoorFinding]] = {}  # by program, then by door


class DoorFindings:
    """Of one program. `folder`: of the user's own, where they are kept."""

    def __init__(self, program: str, environment: Mapping[str, str], folder: str) -> None:
        self._path = os.path.join(folder, FINDINGS_FILE)
        self._key = find_program_key(program, environment)

    def failure(self, door: str) -> DoorFinding | None:
        """The reason why it is not tried."""
        found = self._find(door, FAILED_S)
        return None if found is None or found.works else found

    def is_proven(self, door: str, version: str) -> bool:
        found = self._find(door, PROVEN_S)
        return found is not None and found.works and bool(version) and found.version == version

    def note_proven(self, door: str, version: str) -> None:
        if version:
            self._keep(door, DoorFinding(True, time.time(), version))

    def note_failed(self, door: str, reason: str, mend: str = "") -> None:
        self._keep(door, DoorFinding(False, time.time(), reason=reason, mend=mend))

    def _find(self, door: str, kept_s: float) -> DoorFinding | None:
        found = load_private(self._path, _Findings).programs.get(self._key, {}).get(door) if self._key else None
        return found if found is not None and 0 <= time.time() - found.found_at < kept_s else None

    def _keep(self, door: str, finding: DoorFinding) -> None:
        if not self._key:
            return
        kept = load_private(self._path, _Findings)
        others = [(key, doors) for key, doors in kept.programs.items() if key != self._key]
        others.sort(key=lambda item: max((each.found_at for each in item[1].values()), default=0.0))
        doors = {**kept.programs.get(self._key, {}), door: finding}
        kept.programs = {**dict(others[-_MAX_KEPT + 1 :]), self._key: doors}
        with contextlib.suppress(OSError):  # it is found out again the next time
            save_private(self._path, kept)
