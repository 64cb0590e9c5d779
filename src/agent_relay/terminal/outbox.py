"""The outbox folder of an agent: a file in the header format is a message to be sent.

A file is picked up by renaming it, so that nobody can take it twice; a plain file once it has not changed for a moment, one
that the agent named (`->relay-file:NAME`) at once. A file nobody can take becomes `NAME.failed`, with the reason in
`NAME.error`. For one that says so (`NAME` begins with `send-`) a receipt is left in `NAME.sent`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import stat
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct
from watchfiles import awatch

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.headers import HeaderMessage, parse_headers, write_error_answer, write_headers
from agent_relay.protocol.names import show

RECEIPT_PREFIX = "send-"
SENT, ERROR, FAILED = ".sent", ".error", ".failed"
SETTLED_S = 0.3  # unchanged for so long: whoever writes it is done
LOOK_AGAIN_MS = 2_000
MAX_FILE_BYTES = 1_048_576
_PICKED = ".picked-"
_OURS = (SENT, ERROR, FAILED, ".tmp", ".part", ".swp", "~")
_REMEMBERED = 200


class SentFile(Struct, frozen=True):
    """What became of it, as `NAME.sent` tells it."""

    message_id: str
    recipients: int
    queued: int


Send = Callable[[HeaderMessage, str], Awaitable[SentFile]]


class Outbox:
    """`send` is given the message and an id that is the same for the same file; what it raises is the answer."""

    def __init__(self, folder: str, send: Send) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.folder = folder
        self._send = send
        self._turn = asyncio.Lock()
        self._gone: OrderedDict[str, None] = OrderedDict()
        for name in os.listdir(folder):
            if name.startswith(_PICKED):  # a wrapper died with it; the id keeps it from being sent twice
                os.replace(os.path.join(folder, name), os.path.join(folder, name.removeprefix(_PICKED)))

    async def watch(self, stop: asyncio.Event) -> None:
        await self.sweep()
        async for _ in awatch(
            self.folder, stop_event=stop, debounce=100, step=20, rust_timeout=LOOK_AGAIN_MS, yield_on_timeout=True,
            recursive=False, ignore_permission_denied=True, watch_filter=None,
        ):  # fmt: skip
            await self.sweep()

    async def sweep(self) -> None:
        """Sends every file that is complete, the oldest first."""
        while True:
            waiting = self._waiting()
            ready = [name for changed, name in waiting if time.time() - changed >= SETTLED_S or name.startswith(RECEIPT_PREFIX)]
            for name in ready:
                await self.take(name)
            if not ready:
                if not waiting:
                    return
                await asyncio.sleep(SETTLED_S)

    async def take(self, name: str) -> bool:
        """Sends this file now. False: there is none, and there was none a moment ago either."""
        async with self._turn:
            picked = os.path.join(self.folder, _PICKED + name)
            try:
                os.rename(os.path.join(self.folder, name), picked)
            except OSError:
                return name in self._gone
            self._gone[name] = None
            if len(self._gone) > _REMEMBERED:
                self._gone.popitem(last=False)
            try:
                text, identity = _read(picked)
                sent = await self._send(parse_headers(text), f"ob_{identity}")
            except RelayError as error:
                os.replace(picked, os.path.join(self.folder, name + FAILED))
                self._answer(name + ERROR, write_error_answer(error))
            else:
                os.unlink(picked)
                if name.startswith(RECEIPT_PREFIX):
                    self._answer(name + SENT, msgspec.json.encode(sent).decode())
            return True

    def _waiting(self) -> list[tuple[float, str]]:
        found: list[tuple[float, str]] = []
        with contextlib.suppress(OSError):
            for entry in os.scandir(self.folder):
                if entry.name.startswith(".") or entry.name.endswith(_OURS) or not entry.is_file(follow_symlinks=False):
                    continue
                with contextlib.suppress(OSError):
                    found.append((entry.stat(follow_symlinks=False).st_mtime, entry.name))
        return sorted(found)

    def _answer(self, name: str, text: str) -> None:
        with contextlib.suppress(OSError):
            drop(self.folder, name, text)


def drop(folder: str, name: str, text: str) -> None:
    """Writes a file that appears at once and whole."""
    hidden = os.path.join(folder, f".{name}.{os.getpid()}.tmp")
    descriptor = os.open(hidden, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    os.replace(hidden, os.path.join(folder, name))


def drop_message(folder: str, name: str, message: HeaderMessage) -> None:
    drop(folder, name, write_headers(message))


def _read(path: str) -> tuple[str, str]:
    """The text, and an identity of this very file. Raises RelayError for what is no text file of ours."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise RelayError(ErrorCode.INVALID_FORMAT, f"The file cannot be read: {error.strerror}.") from None
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise RelayError(ErrorCode.INVALID_FORMAT, "This is not a plain file.")
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise RelayError(ErrorCode.MESSAGE_TOO_LARGE, f"The file has more than {MAX_FILE_BYTES:,} bytes.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RelayError(ErrorCode.INVALID_FORMAT, f"The file is not UTF-8 text (byte {error.start}).") from None
    identity = hashlib.sha256(f"{facts.st_ino}:{facts.st_mtime_ns}:{os.path.basename(path)}\0".encode() + data).hexdigest()[:32]
    return text, identity


def no_such_file(name: str) -> RelayError:
    return RelayError(ErrorCode.ROUTE_NOT_FOUND, f"There is no file {show(name)} in the outbox.")
