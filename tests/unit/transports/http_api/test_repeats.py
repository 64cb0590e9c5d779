from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import Struct

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.transports.http import repeats
from agent_relay.transports.http.repeats import Repeats, read_key

DAY_MS = 24 * 3_600_000


class Asked(Struct):
    body: str = "x"
    id: str | None = None


class Scene:
    def __init__(self) -> None:
        self.now_ms = 1_000
        self.repeats = Repeats(lambda: self.now_ms)
        self.done = 0
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.fails = False

    async def _do(self) -> dict[str, int]:
        self.done += 1
        number = self.done
        await self.go_on.wait()
        if self.fails:
            raise RelayError(ErrorCode.QUEUE_FULL)
        return {"number": number}

    async def ask(self, key: str = "k", body: Any = None, address: str = "/api/v1/messages") -> int:
        found: dict[str, int] = json.loads(await self.repeats.answer(key, address, body or Asked(), self._do))
        return found["number"]


def play(act: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        await act(Scene())

    asyncio.run(main())


def test_a_repeat_gets_the_first_answer_and_nothing_is_done_twice() -> None:
    async def act(scene: Scene) -> None:
        assert [await scene.ask() for _ in range(3)] == [1, 1, 1]
        assert await scene.ask("another") == 2

    play(act)


def test_repeats_that_come_before_the_answer_wait_for_it_and_whoever_leaves_stops_nothing() -> None:
    async def act(scene: Scene) -> None:
        scene.go_on.clear()
        waiting = [asyncio.create_task(scene.ask()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        scene.go_on.set()
        assert await asyncio.gather(*waiting[1:]) == [1, 1]
        assert await scene.ask() == 1

    play(act)


@pytest.mark.parametrize(("body", "address"), [(Asked("y"), "/api/v1/messages"), (Asked(), "/api/v1/sessions/s/messages")])
def test_a_key_stands_for_one_request(body: Asked, address: str) -> None:
    async def act(scene: Scene) -> None:
        await scene.ask()
        with pytest.raises(RelayError) as refused:
            await scene.ask("k", body, address)
        assert refused.value.details == {"field": "Idempotency-Key", "reason": "key_reused"}
        assert (scene.done, "new key" in refused.value.message) == (1, True)

    play(act)


def test_where_the_key_stands_makes_no_difference() -> None:
    async def act(scene: Scene) -> None:
        assert [await scene.ask("k", Asked(id="k")), await scene.ask("k", Asked())] == [1, 1]

    play(act)


def test_what_was_refused_may_be_tried_again() -> None:
    async def act(scene: Scene) -> None:
        scene.fails = True
        with pytest.raises(RelayError):
            await scene.ask()
        scene.fails = False
        assert await scene.ask("k", Asked("other words")) == 2

    play(act)


def test_answers_are_kept_for_a_day_and_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(scene: Scene) -> None:
        monkeypatch.setattr(repeats, "_MOST", 10)
        await scene.ask()
        scene.now_ms += DAY_MS
        assert await scene.ask() == 1
        scene.now_ms += 1
        assert await scene.ask() == 2
        for number in range(50):
            await scene.ask(f"k{number}")
        assert len(scene.repeats) == 10
        assert await scene.ask("k49") == 52

    play(act)


@pytest.mark.parametrize(
    ("said", "named", "key"),
    [
        (None, None, None),
        (None, "a", "a"),
        ("a", None, "a"),
        ('"a b"'.replace(" ", ""), None, "ab"),
        ("a", "a", "a"),
        ('"', None, '"'),
    ],
)
def test_the_key_is_in_the_header_or_in_the_body(said: str | None, named: str | None, key: str | None) -> None:
    headers = {} if said is None else {"idempotency-key": said}
    assert read_key(headers, Asked(id=named)) == key


@pytest.mark.parametrize(
    ("said", "named", "field"),
    [*((said, None, "Idempotency-Key") for said in ("", "a b", "x" * 121, '""', "ä")), ("a", "b", "id")],
)
def test_a_key_that_cannot_be_one_is_named(said: str, named: str | None, field: str) -> None:
    with pytest.raises(RelayError) as refused:
        read_key({"idempotency-key": said}, Asked(id=named))
    assert refused.value.details["field"] == field
