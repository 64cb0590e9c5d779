"""A look back: how far it goes, and what it says where it ends too soon."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from agent_relay.ports.service import MessagePage, RecipientFacts, StoredMessage
from agent_relay.protocol.payloads import HistoryPayload
from agent_relay.protocol.ulid import EPOCH_MS, encode_bits, encode_time
from agent_relay.transports.arc.persistence import Persistence


def make(number: int, to: str, topic: str = "") -> StoredMessage:
    return StoredMessage(
        message_id=f"msg_{encode_time(EPOCH_MS + number)}{encode_bits(0, 16)}", client_id="", from_="bob-1", to=to, topic=topic,
        ts=0, expires_at=0, kind="message", thread=None, priority=5, payload={"body": str(number)}, payload_meta=None,
        recipients=[RecipientFacts(to, number, "delivered")], skipped=[],
    )  # fmt: skip


class Service:
    """The messages there are, newest first, and what was asked for."""

    def __init__(self, messages: list[StoredMessage]) -> None:
        self._messages = messages
        self.limits: list[int] = []
        self.since: int | None = None

    async def messages(self, asked: HistoryPayload) -> MessagePage:
        self.limits.append(asked.limit)
        self.since = asked.since
        found = [one for one in self._messages if one.to == (asked.to or asked.with_)]
        start = int(asked.cursor or 0)
        end = start + asked.limit
        return MessagePage(found[start:end], str(end) if end < len(found) else None)


def look_back(service: Service, limit: int) -> dict[str, Any]:
    return asyncio.run(Persistence(cast("Any", service), lambda _: False, lambda _: 0).history("ann-1", {"limit": limit}))


def test_no_more_is_read_than_is_asked_for() -> None:
    service = Service([make(number, "ann-1") for number in range(50, 0, -1)])
    found = look_back(service, 3)
    assert (len(found["messages"]), found["more"]) == (3, True)
    assert service.limits == [4, 4]  # its own, and what was said to all: one more says whether there are more


def test_what_it_may_not_see_is_read_past() -> None:
    others = [make(number, "*", "a.topic") for number in range(900, 100, -1)]
    found = look_back(Service([*others, make(7, "*")]), 3)
    assert (len(found["messages"]), found["more"]) == (1, False)


def test_a_look_back_that_ends_too_soon_says_that_there_is_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_relay.transports.arc.persistence._PAGES", 2)
    others = [make(number, "*", "a.topic") for number in range(900, 100, -1)]
    found = look_back(Service([*others, make(7, "*")]), 3)
    assert (found["messages"], found["more"]) == ([], True)


@pytest.mark.parametrize(("asked", "since"), [({}, 5_000), ({"since": 1}, 5_000), ({"since": 9_000}, 9_000)])
def test_nobody_sees_what_was_said_before_it_registered(asked: dict[str, Any], since: int) -> None:
    service = Service([make(7, "*")])
    persistence = Persistence(cast("Any", service), lambda _: False, lambda _: 5_000)
    asyncio.run(persistence.history("ann-1", asked))
    assert service.since == since
