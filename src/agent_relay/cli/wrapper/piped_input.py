"""Standard input that is a pipe or a file: typed to the program as a person would type it, once it is ready.

The program has a terminal of its own, so nothing can simply be passed through: a prompt may not be there yet, and a dialog would
take the first line for an answer. The end of the input does not end the program; it stays, and gets messages.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
import threading
from collections.abc import Callable, Iterator

MAX_BYTES = 262_144
_PAUSE_S = 0.3  # what comes without such a pause is one text
_READ_BYTES = 65_536
CUT = f"Standard input is longer than {MAX_BYTES:,} bytes; the rest is not read."


def is_piped(descriptor: int = 0) -> bool:
    """Whether something may come from there: not from a terminal, nor from /dev/null."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def has_input(descriptor: int = 0) -> bool:
    """Whether something has come already; nothing is read."""
    if not is_piped(descriptor):
        return False
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode):
        return os.lseek(descriptor, 0, os.SEEK_CUR) < found.st_size
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return any(events & select.POLLIN for _, events in poll.poll(0))


def follow(give: Callable[[str], None], complain: Callable[[str], None], descriptor: int = 0) -> None:
    """Gives each text to the running loop, from a thread of its own that ends with the process."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        for data, is_cut in read_texts(descriptor):
            text = data.decode("utf-8", "replace").strip("\n")
            if text.strip():
                loop.call_soon_threadsafe(give, text)
            if is_cut:
                loop.call_soon_threadsafe(complain, CUT)

    threading.Thread(target=read, name="standard input", daemon=True).start()


def read_texts(descriptor: int) -> Iterator[tuple[bytes, bool]]:
    """Each with whether more was there than is read."""
    total, data, is_over = 0, b"", False
    while not is_over:
        piece = os.read(descriptor, min(_READ_BYTES, MAX_BYTES + 1 - total))
        total += len(piece)
        data += piece
        is_over = not piece or total > MAX_BYTES
        if is_over or not select.select([descriptor], [], [], _PAUSE_S)[0]:
            if data:
                yield data[: len(data) - (total > MAX_BYTES)], total > MAX_BYTES
            data = b""
