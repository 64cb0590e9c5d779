"""The outbox folder of an agent: a file in the header format is a message to be sent.

A file is picked up by renaming it, so that nobody can take it twice; a plain file once it has not changed for a moment, one
that the agent named (`->relay-file:NAME`) at once. A file nobody can take becomes `NAME.failed`, with the reason in
`NAME.error`. For one that says so (`NAME` begins with `send-`) a receipt is left in `NAME.sent`; and what it asked to wait for,
in `NAME.reply`, for as long as somebody holds the lock of `NAME.waiting`.

What a wrapper had picked up when it died is sent by the next one, with the same id: the daemon knows whether it has it. Two
wrappers that work at the same time for a moment may therefore both send a file, and either may find it gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import logging
import os
import re
import secrets
import stat
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from watchfiles import awatch

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.headers import HeaderMessage, parse_headers, write_error_answer, write_headers

RECEIPT_PREFIX = "send-"
SENT, ERROR, FAILED, WAITING, REPLY = ".sent", ".error", ".failed", ".waiting", ".reply"
SETTLED_S = 0.3  # unchanged for so long: whoever writes it is done
LOOK_AGAIN_MS = 2_000
MAX_FILE_BYTES = 1_048_576
_PICKED = re.compile(r"\.picked-[0-9a-f]{8}-(?P<name>.+)", re.DOTALL)
_DROPPED = re.compile(r"send-\d{10,}-[0-9a-f]{8}")  # appeared whole, as `drop` makes them
_OURS = (SENT, ERROR, FAILED, WAITING, REPLY, ".tmp", ".part", ".swp", "~")
_REMEMBERED = 200
_MAX_NAME_BYTES = 200  # a file system takes 255, and we put marks before and behind
_log = logging.getLogger("agent_relay.terminal")


class SentFile(Struct, frozen=True, omit_defaults=True):
    """The outcome for a file, as `NAME.sent` tells it."""

    message_id: str
    recipients: int
    queued: int
    await_ms: int | None = None  # it was a question, and its answer is waited for so long
    session_id: str | None = None  # it was a `spawn`: the new agent's session
    proposal: dict[str, Any] | None = None  # it was a `propose`, a `vote` or a `withdraw`: the proposal now


Leave = Callable[[dict[str, Any]], bool]  # what came of it later, for whoever waits; False: nobody does any more
Send = Callable[[HeaderMessage, str, Leave], Awaitable[SentFile]]


class Outbox:
    """`send` is given the message, an id that is the same for the same file, and where to leave what becomes known later; what it
    raises is the answer."""

    def __init__(self, folder: str, send: Send) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.folder = folder
        self._send = send
        self._turn = asyncio.Lock()
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._seen: dict[str, tuple[object, float]] = {}  # how a file looked, and since when
        self._left = sorted(name for name in os.listdir(folder) if _PICKED.fullmatch(name))  # by a wrapper that died

    async def watch(self, stop: asyncio.Event) -> None:
        await self.sweep()
        async for _ in awatch(
            self.folder, stop_event=stop, debounce=100, step=20, rust_timeout=LOOK_AGAIN_MS, yield_on_timeout=True,
            recursive=False, ignore_permission_denied=True, watch_filter=None,
        ):  # fmt: skip
            await self.sweep()

    async def sweep(self) -> None:
        """Sends every file that is complete, the oldest first; returns when none is left that could be."""
        await self._send_left()
        while waiting := self._waiting():
            ready = [name for name, is_ready in waiting if is_ready]
            taken = [name for name in ready if await self._take(name)]
            if len(ready) == len(waiting) and not taken:
                return  # they cannot be moved; the next change of the folder is the next chance
            if not taken:
                await asyncio.sleep(SETTLED_S / 3)

    async def take(self, name: str) -> bool:
        """Sends this file now. False: there is none, and there was none a moment ago either."""
        return _may_be_taken(name) and (await self._take(name) or name in self._gone)

    # --- one file ------------------------------------------------------------------------------------------------------

    async def _take(self, name: str) -> bool:
        async with self._turn:
            picked = f".picked-{secrets.token_hex(4)}-{_shorten(name)}"
            try:
                os.rename(self._path(name), self._path(picked))
            except OSError as error:
                if not isinstance(error, FileNotFoundError):
                    _log.warning("a file of the outbox cannot be picked up: %s", error.strerror)
                return False
            self._gone[name] = None
            if len(self._gone) > _REMEMBERED:
                self._gone.popitem(last=False)
            await self._send_picked(picked, _shorten(name))
            return True

    async def _send_left(self) -> None:
        async with self._turn:
            while self._left:
                picked = self._left[0]
                match = _PICKED.fullmatch(picked)
                if match is not None:
                    await self._send_picked(picked, match["name"])
                del self._left[0]

    async def _send_picked(self, picked: str, name: str) -> None:
        try:
            text, identity = _read(self._path(picked), name)
            sent = await self._send(parse_headers(text), f"ob_{identity}", partial(self._leave, name))
        except asyncio.CancelledError:
            if picked not in self._left:
                self._left.append(picked)
            raise
        except RelayError as error:
            self._refuse(picked, name, error)
        except Exception as error:  # noqa: BLE001 - logged with its traceback; whoever wrote the file is told
            _log.exception("a file of the outbox could not be sent")
            self._refuse(picked, name, RelayError(ErrorCode.INTERNAL_ERROR, f"Unexpected error: {type(error).__name__}."))
        else:
            with contextlib.suppress(OSError):
                os.unlink(self._path(picked))  # before the receipt: a full disk has room for it then
            if name.startswith(RECEIPT_PREFIX):
                self._answer(name + SENT, msgspec.json.encode(sent).decode())

    def _leave(self, name: str, found: dict[str, Any]) -> bool:
        """False: nobody holds the lock that says that somebody waits."""
        if not name.startswith(RECEIPT_PREFIX) or not _is_locked(self._path(name + WAITING)):
            return False
        self._answer(name + REPLY, msgspec.json.encode(found).decode())
        return True

    def _refuse(self, picked: str, name: str, error: RelayError) -> None:
        try:
            os.replace(self._path(picked), self._path(name + FAILED))
        except FileNotFoundError:
            return  # another wrapper was faster, and knows better
        except OSError:  # something else of that name is in the way
            with contextlib.suppress(OSError):
                os.replace(self._path(picked), self._path(f"{name}-{secrets.token_hex(4)}{FAILED}"))
        self._answer(name + ERROR, write_error_answer(error))

    def _answer(self, name: str, text: str) -> None:
        try:
            drop(self.folder, name, text)
        except OSError as error:
            _log.warning("an answer could not be left in the outbox: %s", error.strerror)

    # --- the folder ----------------------------------------------------------------------------------------------------

    def _waiting(self) -> list[tuple[str, bool]]:
        """Files to be sent, the oldest first, and whether each is complete."""
        now, found, seen = time.monotonic(), [], self._seen
        self._seen = {}
        with contextlib.suppress(OSError):
            for entry in os.scandir(self.folder):
                with contextlib.suppress(OSError):
                    if _may_be_taken(entry.name) and entry.is_file(follow_symlinks=False):
                        facts = entry.stat(follow_symlinks=False)
                        look = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
                        # By our own clock: that of the file may be another machine's, or whatever somebody set.
                        before, since = seen.get(entry.name, (None, now))
                        self._seen[entry.name] = look, since if look == before else now
                        found.append((facts.st_mtime_ns, entry.name))
        return [
            (name, _DROPPED.fullmatch(name) is not None or now - self._seen[name][1] >= SETTLED_S) for _, name in sorted(found)
        ]

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)


def _is_locked(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _may_be_taken(name: str) -> bool:
    """A file of this very folder, and none that we made."""
    return name != "" and not name.startswith(".") and not name.endswith(_OURS) and "/" not in name and "\0" not in name


def _shorten(name: str) -> str:
    """Another name for one that has no room for a mark; the same each time."""
    if len(os.fsencode(name)) <= _MAX_NAME_BYTES:
        return name
    start = os.fsencode(name)[: _MAX_NAME_BYTES - 9].decode("utf-8", "ignore")
    return f"{start}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:8]}"


def drop(folder: str, name: str, text: str) -> None:
    """Writes a file that appears at once and whole, or not at all."""
    hidden = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    descriptor = os.open(hidden, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.replace(hidden, os.path.join(folder, name))
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(hidden)
        raise


def drop_message(folder: str, name: str, message: HeaderMessage) -> None:
    drop(folder, name, write_headers(message))


def _read(path: str, name: str) -> tuple[str, str]:
    """The text, and an identity of this very file. Raises RelayError for what is no text file of ours."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise RelayError(ErrorCode.INVALID_FORMAT, "This is not a plain file.")
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise RelayError(ErrorCode.INVALID_FORMAT, f"The file cannot be read: {error.strerror}.") from None
    if len(data) > MAX_FILE_BYTES:
        raise RelayError(ErrorCode.MESSAGE_TOO_LARGE, f"The file has more than {MAX_FILE_BYTES:,} bytes.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RelayError(ErrorCode.INVALID_FORMAT, f"The file is not UTF-8 text (byte {error.start}).") from None
    about = f"{facts.st_ino}:{facts.st_mtime_ns}:".encode() + os.fsencode(name) + b"\0"
    return text, hashlib.sha256(about + data).hexdigest()[:32]
