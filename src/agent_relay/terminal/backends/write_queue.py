"""Bytes on their way into a terminal, without ever blocking the loop: a reader that is slow, stopped or gone only lets
the queue wait. Chunks stay whole and in order, so a paste is never mixed with what a person types meanwhile.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable

_WRITE_BYTES = 16_384
_BLOCKING_WRITE_BYTES = 256  # what a terminal that says it is ready will surely take, where we cannot ask it not to block


class WriteQueue:
    """`on_room` is called whenever the queue has run empty. A descriptor that fails drops everything from then on."""

    def __init__(self, descriptor: int, on_room: Callable[[], None] | None = None) -> None:
        self._descriptor = descriptor
        self._on_room = on_room
        self._loop = asyncio.get_running_loop()
        self._chunks: deque[memoryview] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._put_bytes = 0
        self._written_bytes = 0
        self._is_writing = False
        self._is_broken = False
        self._at_most = _BLOCKING_WRITE_BYTES if os.get_blocking(descriptor) else _WRITE_BYTES

    @property
    def unsent_bytes(self) -> int:
        return self._put_bytes - self._written_bytes

    @property
    def is_broken(self) -> bool:
        return self._is_broken

    def put(self, data: bytes) -> None:
        if self._is_broken or not data:
            return
        self._chunks.append(memoryview(data))
        self._put_bytes += len(data)
        if not self._is_writing:
            self._write()

    async def flush(self) -> None:
        """Returns when everything put so far was taken, or can never be."""
        if self.unsent_bytes and not self._is_broken:
            done: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append((self._put_bytes, done))
            await done

    def close(self) -> None:
        """Stops writing; the descriptor stays its owner's."""
        self._break()

    def _write(self) -> None:
        try:
            if self._at_most == _WRITE_BYTES or self._is_writing:  # a blocking descriptor is written to only when it is ready
                while self._chunks:
                    self._write_some()
                    if self._at_most == _BLOCKING_WRITE_BYTES:
                        break
        except BlockingIOError:
            pass
        except OSError:
            self._break()
            return
        self._tell_progress()
        self._watch(wanted=bool(self._chunks))

    def _write_some(self) -> None:
        chunk = self._chunks[0]
        written = os.write(self._descriptor, chunk[: self._at_most])
        self._written_bytes += written
        if written == len(chunk):
            self._chunks.popleft()
        else:
            self._chunks[0] = chunk[written:]

    def _watch(self, *, wanted: bool) -> None:
        if wanted and not self._is_writing:
            self._loop.add_writer(self._descriptor, self._write)
        elif not wanted and self._is_writing:
            self._loop.remove_writer(self._descriptor)
        was_writing, self._is_writing = self._is_writing, wanted
        if was_writing and not wanted and self._on_room is not None and not self._is_broken:
            self._on_room()

    def _tell_progress(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._written_bytes:
            _finish(self._waiting.popleft()[1])

    def _break(self) -> None:
        self._is_broken = True
        self._chunks.clear()
        self._written_bytes = self._put_bytes
        self._watch(wanted=False)
        for _, done in self._waiting:
            _finish(done)
        self._waiting.clear()


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
