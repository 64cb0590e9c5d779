"""The Unix socket: who may connect, where it lies, and who listens on it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import stat
import struct

from agent_relay.ports.callers import OWNER, Caller
from agent_relay.ports.clock import Clock
from agent_relay.transports.callers import Callers
from agent_relay.transports.process_table import Process, look_at
from agent_relay.transports.pump import Pump
from agent_relay.transports.stream import StreamConnection

_BACKLOG = 512
_PEERCRED = struct.Struct("3i")  # pid, uid, gid
_LOCAL_PEERPID = 0x002  # macOS


class SocketUnusable(Exception):  # noqa: N818 - named by the condition
    """The socket cannot be opened there; the text says why and what to do."""


class AnotherDaemon(SocketUnusable):
    """Somebody answers on that socket already."""


class UnixConnection(StreamConnection):
    __slots__ = ("_inside", "_is_wrapper", "_process", "_server")

    def __init__(self, server: UnixServer) -> None:
        super().__init__(server.pump, server.max_frame_bytes)
        self._server = server
        self._process: Process | bool | None = None  # that connected; False: the system does not say
        self._is_wrapper = False  # of an agent: it exists to be told to stop
        self._inside: Caller | None = None  # once it was seen inside an agent, it stays there

    def identify(self, transport: asyncio.Transport) -> int | None:
        uid = peer_uid(transport.get_extra_info("socket"))
        if uid != os.geteuid() and uid not in self._server.allowed_uids:
            return None
        self._server.connections[self] = None
        pid = peer_pid(transport.get_extra_info("socket"))
        self._process = look_at(pid) if pid else False
        return self._server.owner_uid if uid == os.geteuid() else uid

    def caller(self) -> Caller:
        callers, process = self._server.callers, self._process
        if callers is None or isinstance(process, bool):
            return OWNER
        found = self._inside or callers.trace(process)
        if found.agent is not None:
            self._inside = found
        return found

    def runs(self, agent: str, pid: int | None) -> None:
        self._is_wrapper = True
        if self._server.callers is not None and isinstance(self._process, Process):
            self._server.callers.seat(agent, self._process, pid)

    def ask_to_end(self) -> None:
        """SIGTERM to the wrapper that connected, if it still is that process. Other programs that take commands are not ours."""
        process = self._process
        if not self._is_wrapper or not isinstance(process, Process) or process.pid == os.getpid():
            return
        now = look_at(process.pid)
        if now is not None and now.started == process.started:
            with contextlib.suppress(OSError):
                os.kill(process.pid, signal.SIGTERM)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.forget(self)
        super().connection_lost(exc)


def peer_uid(connection: socket.socket) -> int:
    """The user id of the process at the other end, as the kernel knows it."""
    if hasattr(socket, "SO_PEERCRED"):
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEERCRED.size)
        return int(_PEERCRED.unpack(raw)[1])
    # LOCAL_PEERCRED of BSD and macOS: struct xucred { u_int version; uid_t uid; … }
    raw = connection.getsockopt(0, 0x001, 76)
    return int(struct.unpack_from("2I", raw)[1])


def peer_pid(connection: socket.socket) -> int:
    """The process that connected, as the kernel knows it; 0 where it does not say, or the process lives in another namespace."""
    try:
        if hasattr(socket, "SO_PEERCRED"):
            raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEERCRED.size)
            return int(_PEERCRED.unpack(raw)[0])
        return connection.getsockopt(0, _LOCAL_PEERPID)
    except OSError:
        return 0


class UnixServer:
    """Without `callers` nobody asks in whose terminal a client runs."""

    def __init__(
        self, pump: Pump, path: str, clock: Clock, *, max_frame_bytes: int, allowed_uids: frozenset[int],
        slow_consumer_ms: int, callers: Callers | None = None, owner_uid: int | None = None,
    ) -> None:  # fmt: skip
        self.callers = callers
        self.owner_uid = os.geteuid() if owner_uid is None else owner_uid  # as the core is told of the daemon's own user
        self.pump = pump
        self.path = path
        self.max_frame_bytes = max_frame_bytes
        self.allowed_uids = allowed_uids
        self.connections: dict[StreamConnection, None] = {}
        self._clock = clock
        self._slow_consumer_ms = slow_consumer_ms
        self._server: asyncio.AbstractServer | None = None
        self._has_none = asyncio.Event()  # the last connection has gone

    async def start(self) -> None:
        listener = open_socket(self.path, shared=bool(self.allowed_uids))
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(lambda: UnixConnection(self), sock=listener, backlog=_BACKLOG)

    def check_slow_readers(self) -> None:
        now_ms = self._clock.steady_ms()
        for connection in list(self.connections):
            if connection.is_stuck(now_ms, self._slow_consumer_ms):
                connection.give_up()

    def stop_listening(self) -> None:
        """New connections are refused; the file goes, so that nobody knocks in vain."""
        if self._server is None:  # what lies at the path is not ours
            return
        self._server.close()
        self._server = None
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def forget(self, connection: StreamConnection) -> None:
        self.connections.pop(connection, None)
        if not self.connections:
            self._has_none.set()

    async def drain(self, deadline_s: float) -> None:
        """Waits until the last words of every connection have left, at most that long."""
        self._has_none.clear()
        if self.connections:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(deadline_s):
                    await self._has_none.wait()
        for connection in list(self.connections):
            connection.give_up()


def open_socket(path: str, *, shared: bool) -> socket.socket:
    """A listening socket of mode 0600 (0666 if other users are allowed: the kernel tells us who they are)."""
    _clear_stale_socket(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.setblocking(False)
    before = os.umask(0o177)
    try:
        listener.bind(path)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise AnotherDaemon(f"Another daemon has just opened {path}.") from None
        raise SocketUnusable(f"The socket {path} cannot be opened: {error.strerror or error}.") from None
    finally:
        os.umask(before)
    os.chmod(path, 0o666 if shared else 0o600)
    return listener


def _clear_stale_socket(path: str) -> None:
    """Removes what a killed daemon left behind; raises if somebody answers there, or if it is no socket at all."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise SocketUnusable(f"The socket {path} cannot be opened: {error.strerror}.") from None
    if not stat.S_ISSOCK(mode):
        raise SocketUnusable(f"{path} exists and is not a socket; move it away or choose another --socket.")
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    probe.settimeout(1.0)
    try:
        probe.connect(path)
    except ConnectionRefusedError:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise SocketUnusable(f"The socket {path} is in the way: {error.strerror or error}.") from None
    else:
        raise AnotherDaemon(f"A daemon is already listening on {path}.")
    finally:
        probe.close()
