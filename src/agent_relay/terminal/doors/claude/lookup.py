"""Where a message is that was handed to Claude Code, as its session files tell: read, waiting for its turn, or never seen."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_relay.protocol.short_ids import short_id
from agent_relay.terminal.doors.claude.record import Known, find_session, transcript_paths
from agent_relay.terminal.doors.claude.signals import Given, NotGiven, Queued, SignalReader
from agent_relay.terminal.doors.door import DoorMessage, Whereabouts
from agent_relay.terminal.output.transcripts.records import decode_record

WRITTEN_S = 2.0  # Claude Code writes its session file a moment after it took a message


def mark_of(message: DoorMessage) -> str:
    """What stands in every text by which a message is handed in, and in no other."""
    return f"[{short_id(message.id)}]"


async def look_up(home: Path, known: Known, message: DoorMessage) -> Whereabouts:
    if not known.sessions:
        return Whereabouts.UNKNOWN
    found = await asyncio.to_thread(_search, home, known, message)
    if found is not Whereabouts.NOWHERE or await asyncio.to_thread(find_session, home, known) is None:
        return found
    await asyncio.sleep(WRITTEN_S)
    return await asyncio.to_thread(_search, home, known, message)


def _search(home: Path, known: Known, message: DoorMessage) -> Whereabouts:
    waiting = 0
    for path in transcript_paths(home, known.sessions):
        is_read, more = _search_file(path, message)
        if is_read:
            return Whereabouts.READ
        waiting += more
    # What waits in a program that has ended is gone with it.
    return Whereabouts.HELD if waiting > 0 and find_session(home, known) is not None else Whereabouts.NOWHERE


def _search_file(path: Path, message: DoorMessage) -> tuple[bool, int]:
    """Whether it was read, and how often it waits."""
    mark, reader, waiting = mark_of(message), SignalReader(), 0
    needles = (mark.encode(), message.uuid.encode())
    try:
        with path.open("rb") as file:
            for line in file:
                record = decode_record(line) if any(needle in line for needle in needles) else None
                if record is not None:
                    reader.read(record)
    except OSError:
        pass  # what was read of it counts
    for signal in reader.take():
        match signal:
            case Given(text, uuid) if uuid == message.uuid or mark in text:
                return True, 0
            case NotGiven(text) if mark in text:
                waiting = 0
            case Queued(text, is_waiting) if mark in text:
                waiting += 1 if is_waiting else -1
            case _:
                pass
    return False, waiting
