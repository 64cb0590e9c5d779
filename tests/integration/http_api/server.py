"""A daemon, seen over HTTP, and agents of it that do as a wrapper does."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

from agent_relay.daemon.system import owner_name
from agent_relay.protocol.payloads import ControlPayload
from agent_relay.sdk.sync import SyncRelayClient
from agent_relay.testing.daemon import DaemonProcess

DEADLINE_S = 60.0
ME = owner_name()  # whom messages over HTTP are from
SMALL_MESSAGE = f'{{"to":"{ME}","body":"x"}}'.encode()
_numbers = itertools.count(1)
UNKNOWN = "Nobody-Here"


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.01)


class Server:
    def __init__(self, daemon: DaemonProcess) -> None:
        self.daemon = daemon
        self.url = daemon.wait_for_url()
        self.http = httpx.Client(base_url=self.url, timeout=DEADLINE_S, headers=daemon.api_headers)
        self.bare = httpx.Client(base_url=self.url, timeout=DEADLINE_S)  # somebody without the token
        self.agents: list[SyncRelayClient] = []

    def join(self, name: str = "", *, control: bool = False) -> SyncRelayClient:
        """A connected agent; without a name, one that no other test uses."""
        agent = self.daemon.connect_sync(name or f"Agent{next(_numbers)}", control=control)
        agent.connect()
        self.agents.append(agent)
        return agent

    def wrap(self, name: str = "") -> Wrapped:
        return Wrapped(self.join(name, control=True))

    def agent(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"/api/v1/agents/{name}").json()
        return found

    def close(self) -> None:
        self.http.close()
        self.bare.close()
        for agent in self.agents:
            agent.close(1)


class Wrapped:
    """An agent that the relay may control. It notes what it is told, and carries answers out unless it is `stubborn`."""

    def __init__(self, client: SyncRelayClient) -> None:
        self.client = client
        self.name = client.name
        self.told: list[ControlPayload] = []
        self.is_stubborn = False
        self.heard = threading.Event()
        client.client.on_control = self._control

    def ask_permission(self, id_: str, **fields: Any) -> None:
        said = {"description": "Run it?", "tool": "Bash", "command": "make install", "options": ["Yes", "No"]} | fields
        self.client.report("permission.requested", requestId=id_, **said)
        self.client.agents()  # it was heard before this

    def ask_question(self, id_: str) -> None:
        self.client.report("question.requested", questionId=id_, question="Which colour?", options=["red", "blue"])
        self.client.agents()

    def _control(self, control: ControlPayload) -> None:
        self.told.append(control)
        self.heard.set()
        if self.is_stubborn or control.id is None:
            return
        if control.command == "answer":
            self.client.client.report("question.resolved", questionId=control.id, answer=control.text, resolvedBy="door")
        else:
            resolution = "approved" if control.command == "approve" else "denied"
            self.client.client.report("permission.resolved", requestId=control.id, resolution=resolution, resolvedBy="door")


def problem(answer: httpx.Response) -> tuple[int, str]:
    """The status and the code of an error, whose shape is always the same."""
    body = answer.json()
    assert list(body) == ["error"]
    assert set(body["error"]) == {"code", "category", "message", "retryable", "details"}
    assert body["error"]["message"].endswith((".", "?")), body
    return answer.status_code, body["error"]["code"]
