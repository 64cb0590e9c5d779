"""All recorded events of one type, read from the files as they are, whether or not a daemon is running.

Nothing is written, mended or held: a line that is only half there is passed over. The newest file is opened first, so that
one that is put aside meanwhile is read once, under whichever name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import BinaryIO

from agent_relay.events.codec import BadEvent, decode_event
from agent_relay.events.types import AnyEvent
from agent_relay.protocol import places

_ASIDE = re.compile(r"events-\d+\.jsonl")


def scan_events(state_dir: str, kind: str) -> Iterator[AnyEvent]:
    """Oldest first. Raises OSError for a file that is there and cannot be read."""
    beginning = f'{{"type":"{kind}",'.encode()  # as every line is written; the others are not even decoded
    with ExitStack() as stack:
        for file in _open_all(state_dir, stack):
            for line in file:
                if line.startswith(beginning):
                    try:
                        yield decode_event(line)
                    except BadEvent:
                        continue


def _open_all(state_dir: str, stack: ExitStack) -> list[BinaryIO]:
    newest = _open(os.path.join(state_dir, places.EVENTS_FILE), stack)
    known = {os.fstat(file.fileno()).st_ino for file in newest}
    names = sorted(os.listdir(state_dir)) if os.path.isdir(state_dir) else []
    aside = [file for name in names if _ASIDE.fullmatch(name) for file in _open(os.path.join(state_dir, name), stack)]
    return [file for file in aside if os.fstat(file.fileno()).st_ino not in known] + newest


def _open(path: str, stack: ExitStack) -> list[BinaryIO]:
    """None or one: its time may be over."""
    try:
        return [stack.enter_context(open(path, "rb"))]
    except FileNotFoundError:
        return []
