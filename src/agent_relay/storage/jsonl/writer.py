"""Writing events, in a thread of its own: numbered, encoded, appended in batches, flushed to the disk a few times a second.

What cannot be written stays here and is tried again, in order, until it can be.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple

from msgspec import Struct

from agent_relay.events.drafts import Draft, Lost, encode_drafts, weigh
from agent_relay.events.erasure import stand_in
from agent_relay.ports.events import CountDone, OnAppended
from agent_relay.ports.store import StoreError
from agent_relay.storage.jsonl.erasure import erase_in
from agent_relay.storage.jsonl.life import Ending, Life
from agent_relay.storage.jsonl.lines import Head, read_head
from agent_relay.storage.jsonl.packer import Packer
from agent_relay.storage.jsonl.segments import Segment
from agent_relay.storage.jsonl.shelf import Found, Shelf
from agent_relay.storage.posting import Post, post_answer

_log = logging.getLogger(__name__)

MAX_WAITING = 10_000  # events that wait to be written; with a disk that takes nothing, what comes beyond is lost
MAX_WAITING_BYTES = 32 * 1024 * 1024
_AT_ONCE = 1_000  # events in one write
_SYNC_S = 0.5
_RETRY_S = 1.0
_PASSED_OVER = 10_000  # numbers, after a power cut; more than are given out between two flushes


class Rotation(NamedTuple):
    max_bytes: int = 16 * 1024 * 1024
    max_age_ms: int = 86_400_000
    keep_bytes: int | None = None  # of all files together; None: however much there is


class _Prune(NamedTuple):
    before_ms: int


class _Covered(NamedTuple):
    message: int


class _Erase(Struct):
    agent: str
    done: CountDone
    left: list[Segment | None] | None = None  # the files still to do, None for the newest; not known before it is begun
    changed: int = 0


_Item = tuple[list[Draft], int] | _Prune | _Covered | _Erase | None  # drafts with their weight; None: stop


class Writer:
    def __init__(self, shelf: Shelf, life: Life, rotation: Rotation, post: Post, *, syncs: bool) -> None:
        self._shelf = shelf
        self._life = life
        self._rotation = rotation
        self._post = post
        self._syncs = syncs
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        self._lock = Lock()  # over the two counts, which both threads change
        self.waiting = 0
        self._waiting_bytes = 0
        self.lost = 0
        self._untold = 0  # lost, and no gap stands for them yet
        self.last = Head(0, 0)
        self.message: int | None = None  # messages up to this number have their events here, and perhaps later ones
        self._covered: int | None = None  # the same, once everything that waits is written
        self._is_begun = False
        self.last_error = ""
        self._drafts: list[Draft] = []  # taken from the queue and not written yet
        self._taken_bytes = 0  # their weight, as it was counted when they came
        self._erasures: list[_Erase] = []
        self._packer = Packer(shelf)
        self._stopping = False
        self._unsynced_since: float | None = None
        self._on_appended: OnAppended = _nobody
        self._thread = Thread(target=self._run, name="relay-events-writer", daemon=True)

    # --- for the loop ---------------------------------------------------------------------------------------------------

    def start(self, on_appended: OnAppended) -> None:
        self._on_appended = on_appended
        self._open()
        self._thread.start()

    def append(self, drafts: list[Draft]) -> None:
        size = weigh(drafts)
        with self._lock:
            if self.waiting and (self.waiting + len(drafts) > MAX_WAITING or self._waiting_bytes + size > MAX_WAITING_BYTES):
                self.lost += len(drafts)
                self._untold += len(drafts)
                return
            if self._untold:
                drafts.insert(0, Lost(drafts[0].at_ms, self._untold))
                self._untold = 0
            self.waiting += len(drafts)
            self._waiting_bytes += size
        self._queue.put((drafts, size))

    def prune(self, before_ms: int) -> None:
        self._queue.put(_Prune(before_ms))

    def cover(self, message: int) -> None:
        self._queue.put(_Covered(message))

    def erase(self, agent: str, done: CountDone) -> None:
        self._queue.put(_Erase(agent, done))

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join()

    # --- the thread -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping:
            self._take()
            self._write_all()
            self._note_covered()
            self._erase_on()
            self._pack_on()
            self._sync_if_due()
        while self._erasures:
            self._erase_on()
        self._finish()

    def _take(self) -> None:
        """Waits for something to do, or until something is due again."""
        waits = [self._packer.due_in_s()]
        waits += [_RETRY_S] if self._drafts else [_SYNC_S] if self._unsynced_since is not None else []
        wait = 0 if self._erasures else min((each for each in waits if each is not None), default=None)
        try:
            item = self._queue.get(timeout=wait)
            while True:
                self._sort(item)
                item = self._queue.get_nowait()
        except Empty:
            pass

    def _sort(self, item: _Item) -> None:
        if item is None:
            self._stopping = True
        elif isinstance(item, _Prune):
            self._prune(item.before_ms)
        elif isinstance(item, _Covered):
            self._covered = item.message
        elif isinstance(item, _Erase):
            self._erasures.append(item)
        else:
            self._drafts += item[0]
            self._taken_bytes += item[1]

    def _open(self) -> bool:
        """False: it cannot be known yet where the numbers go on."""
        try:
            found = self._shelf.open()
            self.last = max(self.last, found.last)  # a file that was taken away while we wrote to it knows less than we do
            ending = None if self._is_begun else self._life.read()
            if ending is not None:
                self.message = self._find_message()
                self._begin_life()
        except OSError as error:
            self._shelf.close()
            self._complain(error)
            return False
        if ending is not None:
            self._is_begun = True
            self._go_on_after(ending, found)
        return True

    def _begin_life(self) -> None:
        """Numbers of our own from here on, whatever was copied before. Raises OSError."""
        self._life.numbering, self._life.position = "", 0
        self._life.begin()

    def _go_on_after(self, ending: Ending, found: Found) -> None:
        """Leaves a gap where something may be missing, and passes over numbers that somebody may have seen."""
        if found.was_torn:
            _log.info("The last event in %s was half written and was cut off.", self._shelf.path)
        if found.was_damaged:
            _log.warning("%s held no events; it was moved to %s.damaged.", self._shelf.path, self._shelf.path)
        is_short = found.last.seq < self._life.last_seq
        if is_short:
            _log.warning("%s ends before the last event that was written to it.", self._shelf.path)
        if ending is Ending.FAREWELL and not found.was_damaged and not is_short:
            return
        torn_lines = 0 if ending is Ending.FAREWELL else found.torn_lines
        last_seq = max(self.last.seq + torn_lines, self._life.last_seq)
        if ending is Ending.CUT or found.was_damaged:
            last_seq += _PASSED_OVER
        self.last = Head(last_seq, self.last.ts)
        is_damaged = found.was_damaged or is_short or torn_lines > 0
        self._drafts.insert(0, Lost(found.last.ts or self._life.noted_ms, reason="damaged" if is_damaged else "killed"))
        with self._lock:
            self.waiting += 1

    def _find_message(self) -> int | None:
        known = [number for number in (self._life.message, self._shelf.last_message()) if number is not None]
        return max(known) if known else self._shelf.last_message_aside()

    def _write_all(self) -> None:
        at_once = _AT_ONCE
        while self._drafts:
            if not self._shelf.is_open and not self._open():  # which may put a gap before everything that waits
                return
            chunk = self._drafts[:at_once]
            try:
                self._write(chunk)
            except OSError as error:
                self._complain(error)
                return
            except Exception:  # noqa: BLE001
                if len(chunk) > 1:  # one by one: only what cannot be encoded is lost
                    at_once = 1
                    continue
                _log.exception("An event could not be encoded.")  # an error of ours
                with self._lock:
                    self.lost += 1
                    self._untold += 1
            del self._drafts[: len(chunk)]
            with self._lock:
                self.waiting -= len(chunk)
        with self._lock:
            self._waiting_bytes -= self._taken_bytes
        self._taken_bytes = 0

    def _write(self, drafts: list[Draft]) -> None:
        first_seq = self.last.seq + 1
        data, ts = encode_drafts(drafts, first_seq, self.last.ts)
        self._put(first_seq, len(drafts), data, ts)

    def _put(self, first_seq: int, count: int, data: bytes, ts: int) -> None:
        """`ts` is the moment of the last one."""
        self._make_room(len(data), ts)
        self._shelf.write(data, read_head(data) or Head(first_seq, ts))
        self.last = Head(first_seq + count - 1, ts)
        self.last_error = ""
        if self._unsynced_since is None:
            self._unsynced_since = time.monotonic()
        post_answer(self._post, partial(self._on_appended, first_seq, count, data))

    def _make_room(self, coming_bytes: int, ts: int) -> None:
        began = self._shelf.newest_began_ms
        is_full = self._shelf.newest_size + coming_bytes > self._rotation.max_bytes
        if began is not None and (is_full or ts - began > self._rotation.max_age_ms):
            self._note_progress()
            self._shelf.put_aside()
        keep_bytes = self._rotation.keep_bytes
        if keep_bytes is not None and self._shelf.size_bytes() + coming_bytes > keep_bytes:
            removed = self._shelf.prune(0, keep_bytes - coming_bytes)
            _log.info("%d files of the oldest events were removed: the event log was too large.", removed)

    def _prune(self, before_ms: int) -> None:
        try:
            if self.last.ts < before_ms and self._shelf.newest_size:  # nothing came for so long: what it holds is too old, too
                self._note_progress()
                self._shelf.rewrite(None, _keep_number)
            removed = self._shelf.prune(before_ms, self._rotation.keep_bytes)
            _remove_if_older(self._shelf.damaged_path, before_ms)
        except OSError as error:
            self._complain(error)
            return
        if removed:
            _log.info("%d files of old events were removed.", removed)

    def _pack_on(self) -> None:
        """One block, for the same reason."""
        if self._erasures or self._packer.due_in_s() != 0:
            return
        try:
            self._packer.step()
        except OSError as error:
            _log.warning("Old events in %s could not be packed: %s. They stay as they are for now.", self._shelf.folder, error)

    def _erase_on(self) -> None:
        """One file of the first erasure, so that what is to be written never waits for more."""
        if not self._erasures:
            return
        erasure = self._erasures[0]
        if erasure.left is None:
            self._packer.abandon()  # what it has so far may be about the agent
            erasure.left = [None, *reversed(self._shelf.aside())]
        file = erasure.left.pop(0)
        outcome: int | StoreError | None = None
        try:
            if self._shelf.is_open or self._open():
                if file is None:
                    self._note_progress()
                    _remove_if_older(self._shelf.damaged_path)
                erasure.changed += self._shelf.rewrite(file, partial(erase_in, agent=erasure.agent, keeps_last=file is None))
        except FileNotFoundError:
            pass  # it was pruned meanwhile
        except OSError as error:
            self._complain(error)
            outcome = StoreError(self.last_error)
        if outcome is None and not erasure.left:
            outcome = erasure.changed
        if outcome is not None:
            del self._erasures[0]
            post_answer(self._post, partial(erasure.done, outcome))

    def _note_progress(self, *, closed: bool = False) -> None:
        """Before the newest file is put aside or rewritten, and at the end: what its last lines say is known from then on without
        them. Raises OSError."""
        self._shelf.sync()
        newest = self._shelf.last_message()
        if newest is not None:
            self.message = max(self.message or 0, newest)
        self._life.note(self.last.seq, self.message, closed=closed)

    def _note_covered(self) -> None:
        if self._covered is None or self._drafts or not self._is_begun:
            return
        self.message, self._covered = max(self.message or 0, self._covered), None
        try:
            self._note_progress()
        except OSError as error:
            self._complain(error)

    def _sync_if_due(self) -> None:
        if self._unsynced_since is None or time.monotonic() - self._unsynced_since < _SYNC_S:
            return
        self._sync()

    def _sync(self) -> None:
        self._unsynced_since = None
        try:
            if self._syncs:
                self._shelf.sync()
            if not self._shelf.is_in_place:
                _log.warning("%s was removed; a new file replaces it.", self._shelf.path)
                self._open()
        except OSError as error:
            self._complain(error)

    def _finish(self) -> None:
        with self._lock:
            if self._untold:
                self._drafts.append(Lost(self.last.ts, self._untold))
                self.waiting += 1
        self._write_all()
        self._packer.abandon()
        if self._shelf.is_open:
            self._sync()
            if not self.last_error:
                with contextlib.suppress(OSError):
                    self._note_progress(closed=True)
        self._shelf.close()

    def _complain(self, error: OSError) -> None:
        text = f"{error.strerror or error} ({self._shelf.path})"
        if text != self.last_error:  # a full disk fails every write, and would fill the log too
            self.last_error = text
            _log.warning("Events cannot be written now: %s. They wait in memory and are lost if this lasts.", text)


def _keep_number(data: bytes, last_seq: int) -> tuple[bytes, int]:
    """Of a file whose events are all too old, only how far the numbers have come."""
    del last_seq  # of the newest file its lines say it
    lines = data.split(b"\n")[:-1]
    last = next((head for line in reversed(lines) if (head := read_head(line)) is not None), None)
    if last is None or len(lines) == 1:
        return data, 0
    return stand_in(*last) + b"\n", len(lines)


def _remove_if_older(path: str, before_ms: int | None = None) -> None:
    """Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        if before_ms is None or os.stat(path).st_mtime_ns // 1_000_000 < before_ms:
            os.unlink(path)


def _nobody(first_seq: int, count: int, data: bytes) -> None:
    del first_seq, count, data
