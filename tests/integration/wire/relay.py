"""A running daemon and the clients of one test, with the few conversations every test has."""

from __future__ import annotations

import itertools
import time
from typing import Any

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import DEADLINE_SECONDS, Frame, RawClient, Unexpected

from .contract import FrameCheck

# Limits that keep time out of the tests that are not about time.
CALM = {"--heartbeat-ms": "60000", "--ack-timeout-ms": "60000", "--handshake-timeout-ms": "60000"}

_numbers = itertools.count(1)


def calm_flags(*flags: str) -> tuple[str, ...]:
    """These flags, and the calm ones they do not name."""
    return (*flags, *(part for name, value in CALM.items() if name not in flags for part in (name, value)))


class Relay:
    def __init__(self, daemon: DaemonProcess) -> None:
        self.daemon = daemon
        self._clients: list[RawClient] = []
        self._observer: RawClient | None = None

    def connect(self) -> RawClient:
        client = RawClient(self.daemon.socket, FrameCheck())
        self._clients.append(client)
        return client

    def name(self, base: str) -> str:
        """A name no other test uses."""
        return f"{base}-{next(_numbers)}"

    def join(self, base: str = "Agent", *, auto_ack: bool = False, **hello: Any) -> RawClient:
        """A new agent, connected."""
        return self.rejoin(self.name(base), auto_ack=auto_ack, **hello)

    def rejoin(self, name: str, *, auto_ack: bool = False, **hello: Any) -> RawClient:
        """An agent under this very name."""
        client = self.connect()
        client.auto_ack = auto_ack
        client.hello(name, **hello)
        return client

    def offline(self, base: str = "Away") -> str:
        """The name of an agent that was here and went."""
        client = self.join(base)
        self.leave(client)
        return client.name

    def leave(self, client: RawClient) -> None:
        """BYE, and the daemon has taken it."""
        client.say("BYE", {"reason": "done"})
        client.wait_closed()
        client.close()
        self.wait_offline(client.name)

    def cut(self, client: RawClient) -> None:
        """Gone without a word, and the daemon has noticed."""
        client.close()
        self.wait_offline(client.name)

    def agents(self) -> list[dict[str, Any]]:
        """What LIST_AGENTS says, asked by an observer."""
        found: list[dict[str, Any]] = self.observer().request("LIST_AGENTS", {})["agents"]
        return found

    def observer(self) -> RawClient:
        """A connection that only looks on; another one after a restart of the daemon."""
        if self._observer is not None:
            self._observer.listen(0)  # to notice that it has been closed
            if self._observer.ended:
                self._observer.close()
                self._observer = None
        if self._observer is None:
            self._observer = RawClient(self.daemon.socket, FrameCheck())
            self._observer.hello(self.name("observer"), mode="observer")
        return self._observer

    def agent(self, name: str) -> dict[str, Any] | None:
        return next((found for found in self.agents() if found["name"].lower() == name.lower()), None)

    def wait_offline(self, name: str) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (found := self.agent(name)) is not None and found["connected"]:
            if time.monotonic() > deadline:
                raise Unexpected(f"{name} still counts as connected")
            time.sleep(0.01)

    def wait_nobody_connected(self) -> None:
        for found in self.agents():
            if found["connected"]:
                self.wait_offline(found["name"])

    def history(self, **query: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.observer().request("HISTORY", query)["messages"]
        return found

    def close(self) -> None:
        for client in self._clients:
            client.close()
        if self.daemon.running:
            self.wait_nobody_connected()
        if self._observer is not None:
            self._observer.close()


def bodies(frames: list[Frame]) -> list[Any]:
    return [frame["payload"]["body"] for frame in frames]


def seqs(frames: list[Frame]) -> list[int]:
    return [frame["delivery"]["seq"] for frame in frames]


def attempts(frames: list[Frame]) -> list[int]:
    return [frame["delivery"]["attempt"] for frame in frames]


def pass_time(seconds: float) -> None:
    """For promises about elapsed time itself; never to wait for something that can be seen."""
    time.sleep(seconds)


def expect_fatal(client: RawClient, code: str) -> dict[str, Any]:
    """A fatal ERROR with this code, and then the end of the connection; returns `details`."""
    payload = client.expect("ERROR", "WELCOME", "SYNC", "NACK")["payload"]
    assert payload.get("code") == code, payload
    assert payload["fatal"] is True, payload
    client.wait_closed()
    assert client.unclaimed == []
    details: dict[str, Any] = payload.get("details", {})
    return details
