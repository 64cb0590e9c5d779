"""Receipts, for those who ask."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.transports.arc.scene import Scene, Wire, frames, play, text


def receipts(wire: Wire) -> list[dict[str, Any]]:
    found = [json.loads(content) for kind, content in frames(wire.written) if kind == 1]
    return [one for one in found if one.get("type") == "receipt"]


def test_a_receipt_names_whom_it_is_stored_for_and_who_is_unknown() -> None:
    async def act(scene: Scene) -> None:
        ann, wire = await scene.connect()
        _, other = await scene.connect("bob-1")
        said = {"to": ["bob-1", "nobody-1", "nobody-1"], "payload": 1, "ref": "r1", "receipt": True}
        ann.data_received(text(said) + text({"to": ["bob-1"], "payload": 2}))
        await scene.settle()
        (receipt,) = receipts(wire)
        (first, second) = [json.loads(content) for kind, content in frames(other.written) if kind == 1]
        assert receipt["payload"] == {"id": first["id"], "stored": ["bob-1"], "unknown": ["nobody-1"]}
        assert (receipt["from"], receipt["to"], receipt["ref"]) == ("relay", ["ann-1"], "r1")
        assert "receipt" not in first  # it was for the relay
        assert (first["payload"], second["payload"]) == (1, 2)

    play(act)


@pytest.mark.parametrize(
    ("to", "stored", "unknown"), [(["*"], ["bob-1"], []), (["nobody-1"], [], ["nobody-1"]), (["ANN", "b d"], [], ["ANN", "b d"])]
)
def test_a_receipt_comes_for_every_message_that_asks(to: list[str], stored: list[str], unknown: list[str]) -> None:
    async def act(scene: Scene) -> None:
        ann, wire = await scene.connect()
        await scene.connect("bob-1")
        ann.data_received(text({"to": to, "payload": 1, "receipt": True}))
        await scene.settle()
        (receipt,) = receipts(wire)
        assert (receipt["payload"]["stored"], receipt["payload"]["unknown"]) == (stored, unknown)
        assert (receipt["payload"]["id"] is None, "ref" in receipt) == (not stored, False)

    play(act)


@pytest.mark.parametrize("wish", [False, None, "true", 1, {}])
def test_without_the_wish_there_is_silence_and_the_field_goes_along(wish: Any) -> None:
    async def act(scene: Scene) -> None:
        ann, wire = await scene.connect()
        _, other = await scene.connect("bob-1")
        ann.data_received(text({"to": ["bob-1"], "payload": 1, "receipt": wish}))
        await scene.settle()
        assert wire.written == b""
        assert json.loads(frames(other.written)[0][1])["receipt"] == wish

    play(act)


def test_a_message_that_was_not_stored_gets_an_error_and_no_receipt() -> None:
    async def act(scene: Scene) -> None:
        ann, wire = await scene.connect()
        scene.harness.store.fail_next()
        ann.data_received(text({"to": ["bob-1"], "payload": 1, "receipt": True, "ref": "r"}))
        await scene.settle()
        (error,) = [json.loads(content) for kind, content in frames(wire.written) if kind == 1]
        assert (error["type"], error["error"], error["ref"]) == ("error", "rate_limit", "r")

    play(act)


def test_a_receipt_names_those_whose_queue_is_full() -> None:
    async def act(scene: Scene) -> None:
        ann, wire = await scene.connect()
        for number in range(1_001):  # nobody reads them
            ann.data_received(text({"to": ["bob-1"], "payload": number}))
            await scene.settle()
        wire.written = b""
        ann.data_received(text({"to": ["bob-1", "ann-1"], "payload": "x", "receipt": True}))
        await scene.settle()
        (receipt,) = receipts(wire)
        assert receipt["payload"] | {"id": ""} == {"id": "", "stored": ["ann-1"], "unknown": [], "full": ["bob-1"]}

    play(act)
