"""The file of a run: what a wrapper must know of the one before it, when it takes up a program that was still running.

`run.json` in the agent's folder: which run this is, how far the agent was heard, and which messages were being handed in. It is
written anew, whole, whenever that changes; losing the last change means that something is looked at twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time

import msgspec
from msgspec import Struct

from agent_relay.private_files import read_private, replace_private

RUN_FILE = "run.json"
OVERLAP_MS = 60_000  # what was said so long before the last command that was carried out, was carried out before it
_REMEMBERED = 200
_NONCE_DIGITS = 8


class _Run(Struct):
    id: str  # of this run of the program, also in ids of what it sends
    token: str  # a secret that the program was given: whoever shows it is inside this very run
    mark: str  # words that only this agent was given
    started_ms: int
    heard_ms: int  # when the last command was carried out
    places: list[str] = []  # of the last commands that were carried out
    last_said: str = ""  # the digest of the last one
    begun: list[str] = []  # deliveries that were begun and not seen to be taken
    facts: dict[str, str] = {}  # by which the doors of the program are found


class RunFile:
    """`begin_run` makes one for a program that is to be started, `take_up_run` for one that was there."""

    def __init__(self, folder: str, run: _Run) -> None:
        self._path = os.path.join(folder, RUN_FILE)
        self._run = run

    @property
    def id(self) -> str:
        return self._run.id

    @property
    def token(self) -> str:
        return self._run.token

    @property
    def mark(self) -> str:
        return self._run.mark

    @property
    def nonce(self) -> str:
        """The word that this run's own commands carry. The agent is taught it; a file that it shows cannot know it."""
        return hashlib.sha256(f"nonce:{self._run.token}".encode()).hexdigest()[:_NONCE_DIGITS]

    @property
    def heard_since_ms(self) -> int:
        """Records of the session file from then on may hold something that was not carried out."""
        return max(self._run.started_ms, self._run.heard_ms - OVERLAP_MS)

    @property
    def last_said(self) -> str:
        return self._run.last_said

    def send_id(self, place: str) -> str:
        """The id of what was said at this place of the session file: the same, whoever sends it, and however often."""
        return f"w_{hashlib.sha256(f'{self._run.id}:{place}'.encode()).hexdigest()[:40]}"

    def was_said(self, place: str) -> bool:
        return place in self._run.places

    def note_said(self, place: str, text: str) -> None:
        """Carried out. `place`: in the session file, empty for what the screen told."""
        run = self._run
        run.heard_ms = _now_ms()
        run.last_said = digest(text)
        if place:
            run.places.append(place)
            del run.places[:-_REMEMBERED]
        self.write()

    @property
    def facts(self) -> dict[str, str]:
        return self._run.facts

    def note_facts(self, facts: dict[str, str]) -> None:
        self._run.facts = facts
        self.write()

    def was_begun(self, delivery_id: str) -> bool:
        return delivery_id in self._run.begun

    def note_begun(self, delivery_id: str) -> None:
        if delivery_id not in self._run.begun:
            self._run.begun.append(delivery_id)
            del self._run.begun[:-_REMEMBERED]
            self.write()

    def note_ended(self, delivery_id: str) -> None:
        if delivery_id in self._run.begun:
            self._run.begun.remove(delivery_id)
            self.write()

    def write(self) -> None:
        with contextlib.suppress(OSError):  # a full disk must not keep a message from the agent
            replace_private(self._path, msgspec.json.encode(self._run))


def begin_run(folder: str) -> RunFile:
    now = _now_ms()
    run = _Run(
        id=secrets.token_hex(8),
        token="run_" + secrets.token_urlsafe(32),
        mark=secrets.token_hex(4),
        started_ms=now,
        heard_ms=now,
    )
    file = RunFile(folder, run)
    file.write()
    return file


def take_up_run(folder: str) -> RunFile | None:
    """None where nothing is known of the run."""
    text = read_private(os.path.join(folder, RUN_FILE))
    with contextlib.suppress(msgspec.MsgspecError):
        if text is not None:
            return RunFile(folder, msgspec.json.decode(text, type=_Run))
    return None


def digest(text: str) -> str:
    return hashlib.sha256("".join(text.split()).encode("utf-8", "replace")).hexdigest()[:16]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
