"""Claude Code's inbox: a socket of the session's own that takes messages whatever the agent does at that moment.

A message is one line of JSON on a connection of its own. The session closes the connection once it has read it; that is
waited for, so that the next one cannot overtake it. Nothing else is said there: the reading is learnt from the session
file, trouble from the socket that stands as the sender's address.

There is such a socket for each sender. Through it come the agent's own answers to that sender, and word of messages that were
not given to the agent. The latter is sent only to sockets in Claude Code's own folder of sockets, so ours are there.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import re
import socket
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import msgspec
from msgspec import Struct

from agent_relay.sdk.peers import peer_uid
from agent_relay.terminal.doors.claude.record import KNOWN, SessionRecord
from agent_relay.terminal.doors.claude.session import ClaudeSession, RecordWait
from agent_relay.terminal.doors.door import DoorListener, DoorMessage, DoorShut, NotTaken, Probe
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.doors.ledger import Handed
from agent_relay.terminal.output.json_fields import as_dict, as_text, decode_object
from agent_relay.terminal.output.observations import Observation

MAX_LINE_BYTES = 4_194_304
MAX_MAILBOXES = 64  # the one that was not written to for longest is closed first
READ_S = 5.0
_WRAPPER = re.compile(r"\s*<cross-session-message\b[^>]*>\n?(.*?)\n?</cross-session-message>\s*", re.DOTALL)
_log = logging.getLogger("agent_relay.terminal")
PEER_PROTOCOL = 1
_UPDATE = "A later release of Agent Relay may support it; until then messages go another way."
HAND_OVER_S = 5.0
TAKEN_S = 5.0
_QUOTE = {'"': "&quot;"}
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")
_TAG = re.compile(r"<(?=\s*(?:/\s*)?cross-session-message)", re.IGNORECASE)


class InboxReceipt(Struct, frozen=True):
    """`status`: held, or expired with what happened in `reason`."""

    uuid: str
    status: str
    reason: str


class InboxReply(Struct, frozen=True):
    to: str
    body: str
    id: str


class Mailboxes:
    def __init__(self, folder: str, owner: str, take: Callable[[InboxReceipt | InboxReply], None]) -> None:
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
        frame = decode_object(line) or {}
        match frame.get("type"):
            case "control" if frame.get("action") == "peer_message_status":
                self._take(_receipt(frame))
            case "user":
                body = as_text(as_dict(frame.get("message")).get("content"))
                wrapped = _WRAPPER.fullmatch(body)
                id_ = as_text(frame.get("msg_id")) or hashlib.sha256(line).hexdigest()
                self._take(InboxReply(sender, wrapped[1] if wrapped else body, id_))
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


def _receipt(frame: dict[str, Any]) -> InboxReceipt:
    status = as_text(frame.get("status_detail")) or as_text(frame.get("status"))
    reason = as_text(frame.get("reason"))[:500] or f"Claude Code says: {status[:100]}"
    return InboxReceipt(as_text(frame.get("orig_msg_id")), as_text(frame.get("status")), reason)


class ClaudeInbox(ClaudeSession):
    name = "claude inbox"
    can_start_turns = True

    def __init__(
        self, home: Path, place: AgentPlace, facts: Mapping[str, str], listener: DoorListener[Observation],
        wait: RecordWait | None = None,
    ) -> None:  # fmt: skip
        super().__init__(home, place, facts, listener, wait)
        self._mailboxes: Mailboxes | None = None
        self._order = asyncio.Lock()

    # --- opening and closing ---------------------------------------------------------------------------------------------

    async def open(self) -> Probe:
        if self._facts.get("holds"):
            raise DoorShut(
                "Without permission checks Claude Code holds every message from outside until a person accepts it.",
                'Its setting "crossSessionInbound": "accept" lets them in.',
            )
        record = await self._begin()
        _check(record)
        try:
            if not await _hand_over(record.socket_path, b""):
                raise DoorShut("The inbox of Claude Code does not answer.")
        except OSError as error:  # a TimeoutError is one
            raise DoorShut(f"The inbox of Claude Code cannot be reached ({error.strerror or 'no answer'}).") from None
        owner = f"{self._place.project_id}\n{self._place.agent}"
        self._mailboxes = Mailboxes(os.path.dirname(record.socket_path), owner, self._take)
        for sender in list(self._known.senders):
            await self._address(self._mailboxes, sender)
        await self.look()
        return Probe(record.version)

    async def close(self) -> None:
        await super().close()
        if self._mailboxes is not None:
            self._mailboxes.close()

    # --- delivering ------------------------------------------------------------------------------------------------------

    async def deliver(self, message: DoorMessage) -> str:
        async with self._order:
            if self.is_over or self._mailboxes is None or self._record is None:
                raise DoorShut("The inbox of Claude Code is not open.")
            line = _line(message, await self._address(self._mailboxes, message.sender))
            if self._known.add_sender(message.sender):
                KNOWN.save(self._place.folder, self._known)
            handed = self._hand(message)  # before it is written: the reading may be seen before we are told
            try:
                handed.is_taken = await _hand_over(self._record.socket_path, line)
            except (BlockingIOError, TimeoutError):
                self._handed.drop(message.uuid)
                raise NotTaken("The inbox of Claude Code is busy.") from None
            except OSError as error:
                self._handed.drop(message.uuid)
                reason = f"The inbox of Claude Code is gone ({error.strerror or error})."
                self._fail(reason)
                raise DoorShut(reason) from None
            return "taken from the inbox" if handed.is_taken else "written to the inbox"

    async def _address(self, mailboxes: Mailboxes, sender: str) -> str:
        try:
            return await mailboxes.address(sender)
        except OSError as error:
            reason = f"A reply address could not be created beside the inbox of Claude Code ({error.strerror or error})."
            self._fail(reason)
            raise DoorShut(reason) from None

    def _take(self, told: InboxReceipt | InboxReply) -> None:
        if self.is_over:
            return
        match told:
            case InboxReceipt(uuid, status, reason):
                handed = self._handed.get(uuid)
                if handed is not None and status != "held":  # held: a person is asked, and decides
                    self._reject(handed, reason)
            case InboxReply(to, body, id_):
                self._listener.door_said(to, body, id_)

    def _miss(self, handed: Handed) -> None:
        self._fail(
            f"Claude Code took message {handed.message.id} from its inbox but did not give it to the agent; this version may "
            "expect another format."
        )


def _check(record: SessionRecord) -> None:
    """Raises DoorShut for a session without an inbox we know."""
    if record.kind != "interactive":
        raise DoorShut(f"The session of Claude Code is of the kind {record.kind[:40]!r}; only interactive ones have an inbox.")
    if record.peer_protocol != PEER_PROTOCOL:
        raise DoorShut(
            f"The inbox of Claude Code {record.version[:40]} speaks protocol {record.peer_protocol}, not {PEER_PROTOCOL}.",
            _UPDATE,
        )
    try:
        status = os.stat(record.socket_path)
    except (OSError, ValueError):
        raise DoorShut("The session of Claude Code has no inbox.") from None
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.getuid():
        raise DoorShut("The inbox of Claude Code is not a socket that you own.")


def _line(message: DoorMessage, address: str) -> bytes:
    """The text may not end the element it stands in."""
    text = _TAG.sub("&lt;", message.text)
    names = f'from="{escape(address, _QUOTE)}" from-name="{_NOT_IN_NAMES.sub("_", message.sender)}"'
    content = f"<cross-session-message {names}>\n{text}\n</cross-session-message>"
    frame = {
        "type": "user", "msgV": 1, "msg_id": message.uuid, "from": address, "priority": "next",
        "message": {"role": "user", "content": content},
    }  # fmt: skip
    return msgspec.json.encode(frame) + b"\n"


async def _hand_over(path: str, line: bytes) -> bool:
    """Whether the session was seen to take it. Raises OSError or TimeoutError when the line was not written whole."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.setblocking(False)
        async with asyncio.timeout(HAND_OVER_S):
            await loop.sock_connect(connection, path)
            if peer_uid(connection) != os.geteuid():
                raise PermissionError("The inbox of Claude Code belongs to another user.")
            await loop.sock_sendall(connection, line)
        try:
            connection.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(TAKEN_S):
                while await loop.sock_recv(connection, 4_096):
                    pass
        except OSError:  # a TimeoutError is one
            return False  # it may have it, or get it yet
    return True
