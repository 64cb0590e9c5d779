"""Where Claude Code answers: for each sender a socket, which is the address the agent sees.

Through it come the agent's own answers to that sender, and word of messages that were not given to the agent. The latter
is sent only to sockets in Claude Code's own folder of sockets, so ours are there.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import re
import socket
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from agent_relay.terminal.output.transcripts.records import as_dict, as_text, decode_record

MAX_LINE_BYTES = 4_194_304
MAX_MAILBOXES = 64  # the one that was not written to for longest is closed first
READ_S = 5.0
_WRAPPER = re.compile(r"\s*<cross-session-message\b[^>]*>\n?(.*?)\n?</cross-session-message>\s*", re.DOTALL)
_log = logging.getLogger("agent_relay.terminal")


class Receipt(Struct, frozen=True):
    """`status`: held, or expired with what happened in `reason`."""

    uuid: str
    status: str
    reason: str


class Saying(Struct, frozen=True):
    to: str
    body: str
    id: str


class Mailboxes:
    def __init__(self, folder: str, owner: str, take: Callable[[Receipt | Saying], None]) -> None:
        """`owner` tells the agents of all projects apart."""
        self._folder = folder
        self._owner = owner
        self._take = take
        self._servers: dict[str, asyncio.Server] = {}

    async def address(self, sender: str) -> str:
        """Raises OSError when it cannot be made."""
        path = self._path(sender)
        server = self._servers.pop(sender, None)
        if server is None:
            server = await self._listen(path, sender)
            while len(self._servers) >= MAX_MAILBOXES:
                self._close_one(next(iter(self._servers)))
        self._servers[sender] = server
        return f"uds:{path}"

    def _path(self, sender: str) -> str:
        digest = hashlib.sha256(f"{self._owner}\n{sender}".encode()).hexdigest()[:16]
        return os.path.join(self._folder, f"relay-{digest}.sock")

    async def _listen(self, path: str, sender: str) -> asyncio.Server:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                async with asyncio.timeout(READ_S):
                    line = await reader.readline()
                self._read(line, sender)
            except (OSError, ValueError, TimeoutError) as error:
                _log.info("an answer of Claude Code was not understood: %s", type(error).__name__)
            finally:
                writer.close()  # at once: the agent's tool waits for it

        return await asyncio.start_unix_server(serve, sock=_bind(path), limit=MAX_LINE_BYTES)

    def _read(self, line: bytes, sender: str) -> None:
        frame = decode_record(line) or {}
        match frame.get("type"):
            case "control" if frame.get("action") == "peer_message_status":
                self._take(_receipt(frame))
            case "user":
                body = as_text(as_dict(frame.get("message")).get("content"))
                wrapped = _WRAPPER.fullmatch(body)
                id_ = as_text(frame.get("msg_id")) or hashlib.sha256(line).hexdigest()
                self._take(Saying(sender, wrapped[1] if wrapped else body, id_))
            case _:
                pass

    def _close_one(self, sender: str) -> None:
        self._servers.pop(sender).close()
        with contextlib.suppress(OSError):
            os.unlink(self._path(sender))

    def close(self) -> None:
        for sender in list(self._servers):
            self._close_one(sender)


def _bind(path: str) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # of a wrapper that died
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listener.bind(path)
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


def _receipt(frame: dict[str, Any]) -> Receipt:
    status = as_text(frame.get("status_detail")) or as_text(frame.get("status"))
    reason = as_text(frame.get("reason"))[:500] or f"Claude Code says: {status[:100]}"
    return Receipt(as_text(frame.get("orig_msg_id")), as_text(frame.get("status")), reason)
