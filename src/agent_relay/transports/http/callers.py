"""Callers over HTTP: the process that a request comes from, on this machine: the other end of its connection, found in /proc.

Only where /proc shows it (Linux). Elsewhere, and for requests from other machines, the token is all there is.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable

from agent_relay.ports.callers import VIA_HTTP, Caller
from agent_relay.transports.callers import Callers
from agent_relay.transports.process_table import look_at

Address = tuple[str, int]
Check = Callable[[Caller, str], None]
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_CAN_TRACE = os.path.exists(_TABLES[0])
_LOCAL, _REMOTE, _INODE = 1, 2, 9
_MOST_AT_ONCE = 8


class HttpTracer:
    """Looks for processes of this machine."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers
        self._turns = asyncio.Semaphore(_MOST_AT_ONCE)

    async def find(self, client: Address, server: Address) -> Caller:
        if not _CAN_TRACE:
            return Caller(via=VIA_HTTP)
        async with self._turns:
            return await asyncio.to_thread(self._trace, client, server)

    def _trace(self, client: Address, server: Address) -> Caller:
        pids = find_holders(client, server)
        if not pids:
            return Caller(via=VIA_HTTP, is_lost=_is_of_this_machine(client[0]))
        found = [self._callers.trace(look_at(pid), VIA_HTTP) for pid in pids]
        return next((caller for caller in found if caller.agent is not None), found[0])


class TracedHttp(HttpTracer):
    """`ports.callers.HttpCallers`. `ask_edge`: what a request from another host is told by; None for one from here."""

    def __init__(
        self, callers: Callers, check: Check, ask_edge: Callable[[Address], Awaitable[Caller] | None] = lambda _: None
    ) -> None:
        super().__init__(callers)
        self.check = check
        self._ask_edge = ask_edge

    async def find(self, client: Address, server: Address) -> Caller:
        asked = self._ask_edge(client)
        if asked is not None:
            return await asked
        if "/" in client[0]:
            return Caller(via=VIA_HTTP, is_lost=True)  # of another host, and gone
        return await super().find(client, server)


def find_holders(client: Address, server: Address) -> list[int]:
    """The processes that hold the client's end."""
    wanted = (_pack(client), _pack(server))
    for table in _TABLES:
        with contextlib.suppress(OSError), open(table, encoding="ascii") as file:
            for line in file:
                fields = line.split()
                if len(fields) > _INODE and fields[_LOCAL].endswith(f":{client[1]:04X}"):
                    ends = (_unpack(fields[_LOCAL]), _unpack(fields[_REMOTE]))
                    if ends == wanted and fields[_INODE] != "0":
                        return list(_holders(f"socket:[{fields[_INODE]}]"))
    return []


def _holders(link: str) -> Iterable[int]:
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with contextlib.suppress(OSError):
                folder = f"/proc/{entry}/fd"
                if any(_points_to(f"{folder}/{number}", link) for number in os.listdir(folder)):
                    yield int(entry)


def _points_to(path: str, link: str) -> bool:
    try:
        return os.readlink(path) == link
    except OSError:
        return False


def _pack(address: Address) -> tuple[bytes, int]:
    return _plain(ipaddress.ip_address(address[0].partition("%")[0])), address[1]


def _unpack(text: str) -> tuple[bytes, int]:
    """As the kernel writes it: words of four bytes, each in the order of this machine."""
    host, _, port = text.partition(":")
    raw = bytes.fromhex(host)
    words = b"".join(raw[at : at + 4][::-1] if sys.byteorder == "little" else raw[at : at + 4] for at in range(0, len(raw), 4))
    return _plain(ipaddress.ip_address(words)), int(port, 16)


def _plain(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bytes:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).packed


def _is_of_this_machine(host: str) -> bool:
    """Then its process should have been found: it has ended, or lets go of the connection to hide."""
    host = host.partition("%")[0]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((host, 0))
        return True
    return False
