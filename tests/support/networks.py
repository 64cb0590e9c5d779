"""Networks between hosts and NATS servers that can be cut: network namespaces where root may make them, else gates of ours.

A place is whatever has a network of its own: a host, or a server. A namespace that is cut reaches nothing and is reached by
nothing. Gates stand between the hosts and the servers only; there a server that is cut is one that hangs.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import itertools
import os
import shutil
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Sequence
from typing import Any, Protocol

_CLONE_NEWNET = 0x40000000
_LOOK_S = 2.0
_numbers = itertools.count(1)


class Network(Protocol):
    cuts_servers: bool  # else a server that is cut has to be stopped by a signal

    def prefix(self, place: str) -> list[str]:
        """What stands before a command that is run there."""
        ...

    def address(self, place: str) -> str: ...

    def port_to(self, host: str, server: str, port: int) -> tuple[str, int]:
        """Where this host reaches that server's port."""
        ...

    def fetch(self, place: str, url: str) -> bytes: ...

    def cut(self, place: str) -> None: ...

    def heal(self, place: str) -> None: ...

    def close(self) -> None: ...


def make_network(hosts: Sequence[str], servers: Sequence[str]) -> Network:
    return Namespaces([*hosts, *servers]) if may_make_namespaces() else Gates()


def may_make_namespaces() -> bool:
    """Whether this process may; a container's root often may not."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    try:
        Namespaces(["probe"]).close()
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Namespaces:
    """One for each place, and one that has the bridge between them: nothing appears in the machine's own network."""

    cuts_servers = True

    def __init__(self, places: Sequence[str]) -> None:
        self._mark = f"rl{os.getpid()}-{next(_numbers)}"
        self._switch = f"{self._mark}-switch"
        self._numbers = {place: number for number, place in enumerate(places, 1)}
        self._made: list[str] = []
        try:
            self._make(self._switch)
            _ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
            _ip("-n", self._switch, "link", "set", "bridge", "up")
            for place in places:
                self._plug_in(place)
        except (OSError, subprocess.CalledProcessError):
            self.close()
            raise

    def _make(self, name: str) -> None:
        _ip("netns", "add", name)
        self._made.append(name)
        _ip("-n", name, "link", "set", "lo", "up")

    def _plug_in(self, place: str) -> None:
        name, port = self._name(place), self._port(place)
        self._make(name)
        _ip("link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", port, "netns", self._switch)
        _ip("-n", self._switch, "link", "set", port, "master", "bridge", "up")
        _ip("-n", name, "address", "add", f"{self.address(place)}/24", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")

    def _name(self, place: str) -> str:
        return f"{self._mark}-{place}"

    def _port(self, place: str) -> str:
        return f"port{self._numbers[place]}"

    def prefix(self, place: str) -> list[str]:
        return ["ip", "netns", "exec", self._name(place)]

    def address(self, place: str) -> str:
        return f"10.77.0.{self._numbers[place]}"

    def port_to(self, host: str, server: str, port: int) -> tuple[str, int]:
        del host
        return self.address(server), port

    def fetch(self, place: str, url: str) -> bytes:
        """In a thread that goes over there: only threads change their network."""
        found: list[bytes | Exception] = []

        def go() -> None:
            try:
                with open(f"/run/netns/{self._name(place)}", "rb") as there:
                    if ctypes.CDLL(None, use_errno=True).setns(there.fileno(), _CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "setns")
                with urllib.request.urlopen(url, timeout=_LOOK_S) as answer:
                    found.append(answer.read())
            except Exception as error:  # noqa: BLE001 - it is raised again where it belongs
                found.append(error)

        thread = threading.Thread(target=go)
        thread.start()
        thread.join()
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    def cut(self, place: str) -> None:
        _ip("-n", self._switch, "link", "set", self._port(place), "down")

    def heal(self, place: str) -> None:
        _ip("-n", self._switch, "link", "set", self._port(place), "up")

    def close(self) -> None:
        for name in reversed(self._made):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        self._made.clear()


class Gates:
    """A proxy for each pair of a host and a server's port, in a thread. What comes while a gate is shut passes when it opens, as
    over a network that was cut."""

    cuts_servers = False

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._gates: dict[tuple[str, str, int], _Gate] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def prefix(self, place: str) -> list[str]:
        del place
        return []

    def address(self, place: str) -> str:
        del place
        return "127.0.0.1"

    def port_to(self, host: str, server: str, port: int) -> tuple[str, int]:
        key = (host, server, port)
        if key not in self._gates:
            self._gates[key] = self._run(_Gate.open_to(port))
        return "127.0.0.1", self._gates[key].port

    def fetch(self, place: str, url: str) -> bytes:
        del place
        with urllib.request.urlopen(url, timeout=_LOOK_S) as answer:
            return bytes(answer.read())

    def cut(self, place: str) -> None:
        self._each(place, asyncio.Event.clear)

    def heal(self, place: str) -> None:
        self._each(place, asyncio.Event.set)

    def _each(self, place: str, change: Any) -> None:
        async def run() -> None:
            for (host, _, _), gate in self._gates.items():
                if host == place:
                    change(gate.is_open)

        self._run(run())

    def close(self) -> None:
        for gate in self._gates.values():
            self._run(gate.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)


class _Gate:
    def __init__(self, target: int) -> None:
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.port = 0
        self._target = target
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def open_to(cls, target: int) -> _Gate:
        gate = cls(target)
        gate._server = await asyncio.start_server(gate._accept, "127.0.0.1", 0, family=socket.AF_INET)
        gate.port = int(gate._server.sockets[0].getsockname()[1])
        return gate

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self.is_open.wait()
            with contextlib.suppress(OSError):
                there, here = await asyncio.open_connection("127.0.0.1", self._target)
                await asyncio.gather(self._pass(reader, here), self._pass(there, writer))
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(65_536):
                await self.is_open.wait()
                writer.write(chunk)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.transport.abort()

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
