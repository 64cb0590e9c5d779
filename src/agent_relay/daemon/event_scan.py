"""All recorded events of one type, read from the files as they are, whether or not a daemon is running.

Nothing is written, mended or held: a line that is only half there is passed over. The newest file is opened first, so that
one that is put aside meanwhile is read once, under whichever name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

from agent_relay.events.codec import BadEvent, decode_event
from agent_relay.events.types import AnyEvent
from agent_relay.protocol import places
from agent_relay.storage.jsonl.lines import first_head
from agent_relay.storage.jsonl.segments import open_all, read_whole


def scan_events(state_dir: str, kind: str) -> Iterator[AnyEvent]:
    """Oldest first. Raises OSError for a file that is there and cannot be read."""
    beginning = f'{{"type":"{kind}",'.encode()  # as every line is written; the others are not even decoded
    with ExitStack() as stack:
        newest = _open_newest(os.path.join(state_dir, places.EVENTS_FILE), stack)
        first = None if newest is None else first_head(newest, os.fstat(newest).st_size)
        for seq, descriptor, is_packed in open_all(state_dir):
            stack.callback(os.close, descriptor)
            if first is None or seq < first.seq:
                yield from _scan(descriptor, is_packed, beginning)
        if newest is not None:
            yield from _scan(newest, False, beginning)


def _scan(descriptor: int, is_packed: bool, beginning: bytes) -> Iterator[AnyEvent]:
    rest = b""
    for chunk in read_whole(descriptor, is_packed=is_packed):
        lines = (rest + (chunk or b"")).split(b"\n")
        rest = lines.pop()
        for line in lines:
            if line.startswith(beginning):
                try:
                    yield decode_event(line)
                except BadEvent:
                    continue


def _open_newest(path: str, stack: ExitStack) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    stack.callback(os.close, descriptor)
    return descriptor
