"""The selection of the door in use: the best that opens, the next one when it is lost, and none, which means typing.

A door is used when it passes its probe, whatever the version of the CLI. In a version that was not tested it is on trial until
a first message was read through it. What a door says is passed on as long as it is the one in use. Of every better door it is
known why it is not used.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence

from agent_relay.protocol.reports import UnusedDoor
from agent_relay.terminal.doors.door import Door, DoorShut
from agent_relay.terminal.doors.findings import AGAIN, DoorFindings
from agent_relay.terminal.doors.launch import Note
from agent_relay.terminal.doors.versions import Versions
from agent_relay.terminal.reports.reporter import Reporter, unused_door

TYPING = "typing"
CLOSE_S = 5.0
_TRYING = "It is not open yet; it is used as soon as it is."
_NOT_TRIED = "It was not set up when the program was started."
_log = logging.getLogger("agent_relay.terminal")


class DoorSelection:
    """`names`: of all the doors that this CLI can have, the best first. `findings`: of earlier starts of the program."""

    def __init__(
        self, reporter: Reporter, notes: Sequence[Note] = (), versions: Versions | None = None, names: Sequence[str] = (),
        findings: DoorFindings | None = None,
    ) -> None:  # fmt: skip
        self._waiting: deque[Door] = deque()
        self._reporter = reporter
        self._notes = [(note.doors, note.whole) for note in notes]  # of which doors, and what is to be known of them
        self._reasons = {door: (note.text, note.mend) for note in notes for door in note.doors}
        self._versions = versions
        self._names = list(names)
        self._findings = findings
        self._trial = ""  # what is to be known of the door in use until it has proven itself
        self._dropped: asyncio.Queue[Door] = asyncio.Queue()
        self._callbacks: list[Callable[[], None]] = []
        self.current: Door | None = None
        self.is_decided = False  # False: the first door is still being tried
        self.introduces = False
        self.version = ""  # of the program, as the door in use tells it

    def call_when_changed(self, callback: Callable[[], None]) -> None:
        """Whenever another door is in use, or none."""
        self._callbacks.append(callback)

    async def run(self, doors: deque[Door]) -> None:
        """Opens doors, the best first, one after the other, until none is left; those that are over are taken out of `doors`."""
        self._waiting = doors
        while doors:
            door = doors[0]
            if await self._open(door):
                await self._dropped.get()
            doors.popleft()
            with contextlib.suppress(Exception):
                async with asyncio.timeout(CLOSE_S):
                    await door.close()
        self._use(None)

    async def _open(self, door: Door) -> bool:
        failure = None if self._findings is None else self._findings.failure(door.name)
        if failure is not None:
            self._note(door, f"{failure.reason} Found at an earlier start.", " ".join(filter(None, [failure.mend, AGAIN])))
            return False
        try:
            probe = await door.open()
        except DoorShut as error:
            self._note(door, str(error), error.mend, lasts=error.lasts)
            return False
        except Exception as error:  # noqa: BLE001 - a door that fails is a door less, and nothing worse
            _log.exception("%s could not be opened", door.name)
            self._note(door, f"It failed ({type(error).__name__}); the agent's log has more.")
            return False
        trial = ""
        if self._versions is not None and not probe.is_published:
            objection, way_out = self._versions.objection(probe.version, door.name)
            if objection:
                self._note(door, objection, way_out)
                return False
            has_proven = self._findings is not None and self._findings.is_proven(door.name, probe.version)
            trial = "" if has_proven else self._versions.trial(probe.version, door.name)
        note = "; ".join(filter(None, [trial, probe.note]))
        _log.info("%s is open (version %s)%s", door.name, probe.version or "unknown", f": {note}" if note else "")
        if probe.note:
            self._notes.append(((door.name,), probe.note))
        self._trial = trial
        self.introduces, self.version = probe.introduces, probe.version
        self._use(door)
        return True

    @property
    def is_proven(self) -> bool:
        """Whether what the door in use tells, or does not tell, of a message can be relied on."""
        return not self._trial

    def prove(self) -> None:
        """A message was read through the door in use."""
        if self._trial and self.current is not None:
            self._trial = ""
            _log.info("%s has proven itself", self.current.name)
            if self._findings is not None:
                self._findings.note_proven(self.current.name, self.version)
            self._report(self.current)

    def stop_waiting(self) -> None:
        """Types until a door opens: the agent is at its prompt, and it has not been seen so far."""
        if not self.is_decided and self._waiting:
            _log.info("%s is not open yet: messages are typed meanwhile", self._waiting[0].name)
            self._use(None)

    def drop(self, reason: str, mend: str = "", *, lasts: bool = False) -> None:
        """The door in use does not work any more. `lasts`: nor will it at the next start of this program."""
        door, self.current = self.current, None
        if door is not None:
            self._trial = ""
            self._note(door, reason, mend, lasts=lasts)
            self.is_decided = len(self._waiting) < 2
            self._dropped.put_nowait(door)
            self._tell_changed()

    async def close(self) -> None:
        for door in self._waiting:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(CLOSE_S):
                    await door.close()

    def _use(self, door: Door | None) -> None:
        self.current = door
        self.is_decided = True
        self._report(door)
        self._tell_changed()

    def _tell_changed(self) -> None:
        for callback in self._callbacks:
            callback()

    def _report(self, door: Door | None) -> None:
        self._reporter.door(door.name if door is not None else TYPING, self._tell_notes(door), self._unused(door))

    def _note(self, door: Door, reason: str, mend: str = "", *, lasts: bool = False) -> None:
        _log.warning("%s is not used: %s", door.name, reason)
        if lasts and self._findings is not None:
            self._findings.note_failed(door.name, _end(reason), mend)
        self._notes.append(((door.name,), " ".join(filter(None, [_end(reason) if mend else reason, mend]))))
        self._reasons[door.name] = (reason, mend)

    def _unused(self, door: Door | None) -> list[UnusedDoor]:
        """The doors that would be better than the one in use."""
        better = self._names
        if door is not None and door.name in better:
            better = better[: better.index(door.name)]
        tried = {one.name for one in self._waiting}
        return [unused_door(name, *self._reasons.get(name, (_TRYING if name in tried else _NOT_TRIED, ""))) for name in better]

    def _tell_notes(self, current: Door | None) -> str:
        """Doors with the same trouble are named together, and nothing is said twice: there is little room for it."""
        doors: dict[str, list[str]] = {}
        trial = [((current.name,), self._trial)] if current is not None and self._trial else []
        for names, note in [*trial, *self._notes]:
            doors.setdefault(note, []).extend(names)
        return "; ".join(": ".join(filter(None, [", ".join(dict.fromkeys(names)), note])) for note, names in doors.items())


def _end(sentence: str) -> str:
    return sentence if sentence[-1:] in {".", "!", "?", ""} else f"{sentence}."
