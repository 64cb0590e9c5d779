"""One connection to the daemon's socket: frames in, frames out, and a pulse.

Everything sent in one turn of the loop leaves in one write. PING is answered here. A daemon that is silent for two
heartbeats is pinged, and one that is still silent two heartbeats later counts as gone: a stopped process keeps its
sockets open, and a client that trusted them would wait for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable

from agent_relay.protocol.decode import BadFrame, decode_daemon_frame
from agent_relay.protocol.encode import encode_envelope
from agent_relay.protocol.envelope import DaemonFrame, Ping
from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.framing import DEFAULT_MAX_FRAME_BYTES, DELIVER_HEADROOM_BYTES, HEADER_BYTES, FrameDecoder
from agent_relay.sdk.ids import IdSource, wall_ms
from agent_relay.sdk.peers import check_folder, check_peer

_log = logging.getLogger("agent_relay.sdk")
_HEARTBEATS_OF_SILENCE = 2
_FULL_S = 0.01

OnFrame = Callable[[DaemonFrame], None]
OnLost = Callable[[str], None]


class Connection(asyncio.Protocol):
    def __init__(self, ids: IdSource, on_frame: OnFrame, on_lost: OnLost) -> None:
        self._loop = asyncio.get_running_loop()
        self._ids = ids
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._transport: asyncio.WriteTransport | None = None
        self._decoder = FrameDecoder(DEFAULT_MAX_FRAME_BYTES + DELIVER_HEADROOM_BYTES)
        self._greeted = False
        self._early = bytearray()  # what came before the daemon said how large its frames get
        self._unsent: list[bytes] = []
        self._reason = "The daemon closed the connection."
        self._pulse: asyncio.TimerHandle | None = None
        self._silence_s = 0.0
        self._heard_at = 0.0
        self._pinged = False
        self.gone: asyncio.Future[str] = self._loop.create_future()  # why it is over, once it is; never an exception

    # --- out ------------------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, frame: bytes) -> None:
        """Queues a frame for this turn's write; on a connection that is over it is dropped."""
        if not self.open:
            return
        if not self._unsent:
            self._loop.call_soon(self.flush)
        self._unsent.append(frame)

    def flush(self) -> None:
        if self._unsent and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(self._unsent))
        self._unsent = []

    def close(self) -> None:
        """Ends the connection after everything queued is written."""
        self.flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self, reason: str) -> None:
        """Ends it at once."""
        self._reason = reason
        if self._transport is not None:
            self._transport.abort()

    # --- in -------------------------------------------------------------------------------------------------------

    def welcome(self, max_frame_bytes: int, heartbeat_ms: int) -> None:
        """The daemon said how large its frames get and how often it is heard."""
        self._greeted = True
        self._decoder.max_frame_bytes = max_frame_bytes + DELIVER_HEADROOM_BYTES
        self._silence_s = max(heartbeat_ms, 1) / 1000 * _HEARTBEATS_OF_SILENCE
        self._pulse = self._loop.call_later(self._silence_s, self._check_pulse)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        self._pinged = False
        if not self._greeted:
            data = self._read_greeting(data)
        if data:
            self._take(self._decoder.feed(data))

    def _read_greeting(self, data: bytes) -> bytes:
        """Frame by frame until WELCOME, and the rest: that may hold frames larger than the limit before it."""
        self._early += data
        while not self._greeted and len(self._early) >= HEADER_BYTES and self._decoder.oversize_bytes is None:
            length = int.from_bytes(self._early[:HEADER_BYTES], "big")
            if length <= self._decoder.max_frame_bytes and len(self._early) < HEADER_BYTES + length:
                return b""
            first = bytes(self._early[: HEADER_BYTES + length])
            del self._early[: HEADER_BYTES + length]
            self._take(self._decoder.feed(first))
        if not self._greeted:
            return b""
        rest, self._early = bytes(self._early), bytearray()
        return rest

    def _take(self, frames: list[bytes]) -> None:
        for data in frames:
            try:
                frame = decode_daemon_frame(data)
            except BadFrame as bad:
                # A type of a later version is none of our business; anything else is worth a line. Never the content.
                level = logging.DEBUG if bad.code is ErrorCode.FEATURE_UNSUPPORTED else logging.WARNING
                _log.log(level, "ignored a frame of the daemon that cannot be read: %s", bad.details or bad.code)
                continue
            if isinstance(frame, Ping):
                self._say("PONG", frame.payload.nonce)
            else:
                self._on_frame(frame)
        if self._decoder.oversize_bytes is not None:
            self.abort(f"The daemon sent a frame of {self._decoder.oversize_bytes} bytes, which is over its own limit.")

    def _say(self, kind: str, nonce: object) -> None:
        self.send(encode_envelope(kind, self._ids.next("p_"), wall_ms(), {"nonce": nonce}))

    def _check_pulse(self) -> None:
        silent_s = self._loop.time() - self._heard_at
        wait_s = self._silence_s
        if silent_s < self._silence_s:
            wait_s -= silent_s
        elif not self._pinged:
            self._pinged = True  # the loop itself may have been busy: what lies in the socket is read before the next look
            self._say("PING", 0)
        else:
            self.abort(f"The daemon has not answered for {silent_s:.1f} seconds.")
            return
        self._pulse = self._loop.call_later(wait_s, self._check_pulse)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._pulse is not None:
            self._pulse.cancel()
        self._unsent = []
        if exc is not None:
            self._reason = f"The connection to the daemon broke: {exc}."
        if not self.gone.done():
            self.gone.set_result(self._reason)
        self._on_lost(self._reason)


async def open_connection(path: str, ids: IdSource, on_frame: OnFrame, on_lost: OnLost) -> Connection:
    """Raises OSError when nobody listens, and StrangerAtSocket when it may not be ours who does."""
    check_folder(path)
    with contextlib.ExitStack() as undo:
        dialled = undo.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        dialled.setblocking(False)
        await _dial(dialled, path)
        check_peer(dialled, path)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_unix_connection(lambda: Connection(ids, on_frame, on_lost), sock=dialled)
        undo.pop_all()  # the connection's from here on
    return connection


async def _dial(dialled: socket.socket, path: str) -> None:
    """A Unix socket is connected at once or not at all."""
    while True:
        try:
            dialled.connect(path)
        except BlockingIOError:  # more are waiting to be let in than there is room for
            await asyncio.sleep(_FULL_S)
        else:
            return
