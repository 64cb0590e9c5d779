"""The blocking twin has what the client has, by the same names and with the same keywords; and both say what they are."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

import agent_relay
from agent_relay.protocol.payloads import BusyPayload
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.events import EventFeed
from agent_relay.sdk.messages import Message
from agent_relay.sdk.receipts import Receipt
from agent_relay.sdk.requests import Question
from agent_relay.sdk.streams import MessageStream
from agent_relay.sdk.sync import SyncRelayClient
from agent_relay.sdk.sync_parts import SyncEventFeed, SyncMessage, SyncMessageStream, SyncQuestion, SyncReceipt
from tests.unit.sdk.scripted import connected

PAIRS = [
    (RelayClient, SyncRelayClient), (Receipt, SyncReceipt), (Question, SyncQuestion), (Message, SyncMessage),
    (MessageStream, SyncMessageStream), (EventFeed, SyncEventFeed),
]  # fmt: skip
# Of receipts, messages and feeds: what the parts of the client use among themselves.
INNER = {
    Receipt: {"accepted", "awaited", "settled", "asked_on", "frame", "number", "requires_ack", "sent_at_ms", "size_bytes",
              "written", "take_stored", "take_delivered", "take_refusal", "take_failure"},
    Message: {"handed", "is_back", "order"},
    MessageStream: {"acknowledge", "put_back"},
    EventFeed: {"arrived", "lost", "ended", "id"},
}  # fmt: skip
INNER[Question] = INNER[Receipt] | {"answer", "asked", "heard", "promised", "take_reply"}
OTHERWISE = {"aclose": "close"}  # what a blocking feed calls it


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def attributes(kind: type) -> set[str]:
    """Those of an instance that are no methods of its class."""
    return {"on_state", "on_busy", "on_control", "on_event", "observer"} if kind is RelayClient else set()


@pytest.mark.parametrize(("one", "twin"), PAIRS)
def test_the_twin_has_every_public_name(one: type, twin: type) -> None:
    wanted = {OTHERWISE.get(name, name) for name in (public(one) | attributes(one)) - INNER.get(one, set())}
    assert wanted <= public(twin), f"missing: {wanted - public(twin)}"


@pytest.mark.parametrize(("one", "twin"), PAIRS)
def test_the_twin_takes_the_same_keywords(one: type, twin: type) -> None:
    names = [name for name in sorted(public(one) - INNER.get(one, set())) if callable(getattr(one, name))]
    if one is RelayClient:
        names.append("__init__")
    for name in names:
        assert _parameters(twin, OTHERWISE.get(name, name)) == _parameters(one, name), name


def _parameters(kind: type, name: str) -> list[tuple[str, Any, Any]]:
    parameters = list(inspect.signature(getattr(kind, name)).parameters.values())[1:]
    untyped = [each for each in parameters if each.kind is each.VAR_KEYWORD and each.annotation == "Any"]
    assert not untyped or name == "report", name
    return [(each.name, each.kind, each.default) for each in parameters]


@pytest.mark.parametrize("kind", [RelayClient, SyncRelayClient])
def test_an_unknown_keyword_is_a_type_error(kind: Any) -> None:
    with pytest.raises(TypeError, match="bogus"):
        kind("Alice", bogus=1)


@pytest.mark.parametrize("method", ["send", "submit", "request", "publish", "ask"])
def test_an_unknown_keyword_of_a_method_is_a_type_error_too(method: str) -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            with pytest.raises(TypeError, match=rf"{method}\(\) got an unexpected keyword argument 'bogus'"):
                await getattr(client, method)("Bob", "x", bogus=1)
            assert line.silent

    asyncio.run(main())


def test_a_mistyped_keyword_is_recognised() -> None:
    async def main() -> None:
        async with connected() as (_, client, _line):
            with pytest.raises(TypeError, match="Did you mean 'thread'"):
                await client.send("Bob", "x", thraed="t")  # type: ignore[call-arg]
            with pytest.raises(TypeError, match="wait or reply"):
                await client.send("Bob", "x", wait=1, reply=1)  # type: ignore[call-overload]

    asyncio.run(main())


def test_everything_says_what_it_is() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            line.deliver("hello", 1)
            message = await client.receive()
            sending = asyncio.create_task(client.send("Bob", "x"))
            line.store(await line.hear("SEND"))
            shown = [client, message, await sending, client.messages(), aiter(client.messages()), client.events()]
            assert [repr(each).partition("(")[0] for each in shown] == [
                "RelayClient", "Message", "Receipt", "MessageStream", "MessageLoop", "EventFeed",
            ]  # fmt: skip
            assert "Alice" in repr(client)
            assert "msg_1" in repr(message)
            assert "msg_1" in repr(shown[2])

    asyncio.run(main())
    assert repr(SyncRelayClient("Alice", socket="/nowhere/relay.sock")).startswith("SyncRelayClient(Alice")
    assert repr(agent_relay.AgentInfo("Bob", state="idle")) == "AgentInfo(Bob, state=idle, queue_depth=0)"


def test_callbacks_of_the_twin_are_the_clients() -> None:
    twin = SyncRelayClient("Alice", socket="/nowhere/relay.sock")
    heard: list[BusyPayload] = []
    twin.on_busy = heard.append
    assert twin.client.on_busy is not None
    twin.client.on_busy(BusyPayload("Bob"))
    assert [each.to for each in heard] == ["Bob"]
    for name in ("on_state", "on_control", "on_event"):
        setattr(twin, name, print)
        assert getattr(twin.client, name) is getattr(twin, name) is print
