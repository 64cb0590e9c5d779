"""The line to the daemon: one client after another, and nothing that the daemon tells is lost between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agent_relay.protocol.payloads import BusyPayload, ControlPayload
from agent_relay.protocol.states import ClientState
from agent_relay.sdk.errors import ConnectionLost
from agent_relay.terminal.reports import relay_link
from agent_relay.terminal.reports.relay_link import RelayLink


class Client:
    """The SDK's end. `messages` is what `receive` gives, or raises."""

    on_state: Callable[[ClientState], None]
    on_control: Callable[[ControlPayload], None]
    on_busy: Callable[[BusyPayload], None]

    def __init__(self, *messages: Any) -> None:
        self.messages = list(messages)

    async def connect(self, *, wait: bool) -> None:
        assert wait
        self.on_state(ClientState.READY)

    async def receive(self) -> Any:
        message = self.messages.pop(0)
        if isinstance(message, Exception):
            raise message
        return message


def link_of(*clients: Client) -> RelayLink:
    first, *rest = clients
    return RelayLink(first, lambda: rest.pop(0))  # type: ignore[arg-type, return-value]


def test_what_the_daemon_tells_waits_until_somebody_deals_with_it() -> None:
    client = Client()
    link = link_of(client)
    client.on_control(ControlPayload("pause"))
    client.on_busy(BusyPayload("Carol"))
    assert [link.events.get_nowait() for _ in range(2)] == [ControlPayload("pause"), BusyPayload("Carol")]


def test_a_client_that_is_over_is_replaced_and_then_said_to_be_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_link, "RETRY_S", 0.0)
    first, second = Client("one", ConnectionLost("gone")), Client("two")
    link = link_of(first, second)
    ready: list[Any] = []
    link.call_when_ready(lambda: ready.append(link.client))

    async def run() -> list[Any]:
        return [await link.receive(), await link.receive()]

    assert asyncio.run(run()) == ["one", "two"]
    assert ready == [second]  # once, and not while the old one was still in use
    second.on_control(ControlPayload("stop"))
    assert link.events.get_nowait() == ControlPayload("stop")


def test_only_the_client_in_use_is_ready() -> None:
    client = Client()
    link = link_of(client)
    ready: list[str] = []
    link.call_when_ready(lambda: ready.append("ready"))
    client.on_state(ClientState.BACKOFF)
    client.on_state(ClientState.READY)
    assert ready == ["ready"]
