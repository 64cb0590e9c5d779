"""Which door is used: the best that opens, the next one when it is lost, and none, which means typing.

What a door says is passed on, as long as it is the one in use: a door that was dropped is not heard any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence

from agent_relay.ports.door import Door, DoorShut
from agent_relay.terminal.doors.versions import Versions
from agent_relay.terminal.reporting import Reporter

TYPING = "typing"
CLOSE_S = 5.0
_log = logging.getLogger("agent_relay.terminal")


class Doorway:
    """`doors` are not open yet, the best first. `changed` is called whenever another door is in use."""

    def __init__(
        self, doors: Sequence[Door], reporter: Reporter, changed: Callable[[], None], notes: Sequence[str] = (),
        versions: Versions | None = None,
    ) -> None:  # fmt: skip
        self._waiting = list(doors)
        self._reporter = reporter
        self._changed = changed
        self._notes = [("", note) for note in notes]  # of which door, and what is to be known of it
        self._versions = versions
        self._dropped: asyncio.Queue[Door] = asyncio.Queue()
        self.current: Door | None = None
        self.is_decided = not self._waiting  # False: the first door is still being tried
        self.introduces = False

    async def run(self) -> None:
        """Opens doors, one after the other, until none is left."""
        while self._waiting:
            door = self._waiting[0]
            if await self._open(door):
                await self._dropped.get()
            self._waiting.pop(0)
            with contextlib.suppress(Exception):
                async with asyncio.timeout(CLOSE_S):
                    await door.close()
        self._use(None)

    async def _open(self, door: Door) -> bool:
        try:
            probe = await door.open()
        except DoorShut as error:
            self._note(door, str(error))
            return False
        except Exception as error:  # noqa: BLE001 - a door that fails is a door less, and nothing worse
            _log.exception("%s could not be opened", door.name)
            self._note(door, f"failed ({type(error).__name__})")
            return False
        objection = self._versions.objection(probe.version) if self._versions is not None else ""
        if objection:
            self._note(door, objection)
            return False
        untried = self._versions.note(probe.version) if self._versions is not None else ""
        note = "; ".join(filter(None, [untried, probe.note]))
        _log.info("%s is open (version %s)%s", door.name, probe.version or "unknown", f": {note}" if note else "")
        if note:
            self._notes.append((door.name, note))
        self.introduces = probe.introduces
        self._use(door)
        return True

    def drop(self, reason: str) -> None:
        """The door in use does not work any more."""
        door, self.current = self.current, None
        if door is not None:
            self._note(door, reason)
            self.is_decided = len(self._waiting) < 2
            self._dropped.put_nowait(door)
            self._changed()

    async def close(self) -> None:
        for door in self._waiting:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(CLOSE_S):
                    await door.close()

    def _use(self, door: Door | None) -> None:
        self.current = door
        self.is_decided = True
        self._reporter.door(door.name if door is not None else TYPING, self._tell_notes())
        self._changed()

    def _note(self, door: Door, reason: str) -> None:
        _log.warning("%s is not used: %s", door.name, reason)
        self._notes.append((door.name, reason))

    def _tell_notes(self) -> str:
        """Doors with the same trouble are named together, and nothing is said twice: there is little room for it."""
        doors: dict[str, list[str]] = {}
        for door, note in self._notes:
            doors.setdefault(note, []).append(door)
        return "; ".join(": ".join(filter(None, [", ".join(dict.fromkeys(names)), note])) for note, names in doors.items())
