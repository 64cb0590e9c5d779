"""Rules for what a relay may offer: each rule holds where the relay says, or shows, that it has the thing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agent_relay.arc.conformance.case import Broken, Facts, Level, NotOffered, Section, require
from agent_relay.arc.conformance.stage import Frame, Peer, Stage
from agent_relay.protocol.arc.ids import RELAY


def _has(name: str) -> Any:
    return lambda facts: facts.has(name)


def _welcomes(facts: Facts) -> bool:
    return facts.welcome is not None


def _payload(frame: Frame) -> dict[str, Any]:
    payload = frame.get("payload")
    return payload if isinstance(payload, dict) else {}


# --- welcome ------------------------------------------------------------------------------------------------------------

welcome = Section("welcome", level=Level.OFFERED, offered=_welcomes)


@welcome.rule
async def comes_first(stage: Stage) -> None:
    """The welcome is the first frame and has `relay`, `version`, `capabilities`, `extensions` and `limits`."""
    peer = await stage.join()
    frame = peer.heard[0]
    require(frame.get("type") == "welcome", f"the first frame is of type {frame.get('type')!r}")
    for name, kind in (("relay", str), ("version", str), ("capabilities", list), ("extensions", list), ("limits", dict)):
        require(isinstance(frame.get(name), kind), f"`{name}` is {frame.get(name)!r}")


@welcome.advice
async def is_an_envelope_too(stage: Stage) -> None:
    """It is an envelope from `relay` whose payload has the same, and our `agent_id`."""
    peer = await stage.join()
    frame = peer.heard[0]
    require(
        frame.get("from") == RELAY and frame.get("to") == [peer.id], f"it is from {frame.get('from')!r} to {frame.get('to')!r}"
    )
    require(_payload(frame).get("agent_id") == peer.id, f"`payload.agent_id` is {_payload(frame).get('agent_id')!r}")
    require(_payload(frame).get("capabilities") == frame.get("capabilities"), "payload and envelope differ")


# --- limits -------------------------------------------------------------------------------------------------------------

limits = Section("limits", level=Level.OFFERED, offered=lambda facts: facts.max_message_size is not None)


@limits.rule
async def keeps_its_size_limit(stage: Stage) -> None:
    """A message over the announced `max_message_size` is not forwarded."""
    limit = stage.facts.max_message_size
    assert limit is not None
    sender, recipient, other = await stage.join_three()
    await sender.say([recipient.id], stage.text("x" * limit))
    try:
        forwarded = await stage.frames_until_marker(sender, recipient)
    except Broken:
        await sender.hear_close()  # a relay may end the connection instead
        forwarded = await stage.frames_until_marker(other, recipient)
    require(not forwarded, "it was forwarded")


@limits.rule
async def takes_what_is_within(stage: Stage) -> None:
    """A message just below `max_message_size` is forwarded."""
    limit = stage.facts.max_message_size
    assert limit is not None
    sender, recipient = await stage.join_two()
    text = stage.text("x" * (limit - 200))
    await sender.say([recipient.id], text)
    await recipient.hear_payload(text)


@limits.advice
async def lives_on_after_a_large_one(stage: Stage) -> None:
    """A slightly too large message gets an error, and the connection stays open."""
    limit = stage.facts.max_message_size
    assert limit is not None
    sender, recipient = await stage.join_two()
    await sender.say([recipient.id], stage.text("x" * limit))
    require(not await stage.frames_until_marker(sender, recipient), "it was forwarded")
    await sender.hear(lambda frame: _code(frame) == "message_too_large", "an error `message_too_large`")


async def _keeps_rate(stage: Stage) -> None:
    rate = stage.facts.messages_a_minute
    if rate is None or rate > 300:
        raise NotOffered("no limit per minute was announced that can be reached quickly")
    sender = await stage.join(await stage.relay.register())
    try:
        for number in range(2 * rate):
            await sender.say([sender.id], stage.text(number))
    except Broken:
        pass  # it was closed half-way, which is an answer
    passed = 0
    while passed <= 2 * rate:
        try:
            frame = await sender.hear(lambda _: True, "a message or an error")
        except Broken:
            break
        if _code(frame) == "rate_limit":
            return
        passed += stage.text(passed) == frame.get("payload")
    require(
        sender.connection.close_code == 4029, f"{passed} messages were accepted at once, without an error or a close with 4029"
    )


limits.add(
    "keeps-its-rate-limit",
    "Sending twice the announced messages per minute at once gets `rate_limit` or a close with 4029.",
    _keeps_rate,
)

# --- errors -------------------------------------------------------------------------------------------------------------

errors = Section("errors", level=Level.OFFERED)


def _code(frame: Frame) -> str | None:
    if frame.get("type") != "error" and "error" not in frame:
        return None
    code = frame.get("error") or _payload(frame).get("code") or _payload(frame).get("error")
    return code if isinstance(code, str) else ""


async def _error_for(stage: Stage, raw: str) -> tuple[Peer, Frame]:
    peer = await stage.join()
    await peer.say_raw(raw)
    try:
        return peer, await peer.hear(lambda frame: _code(frame) is not None, "an error")
    except Broken:
        raise NotOffered("the relay does not respond to invalid frames") from None


@errors.rule
async def says_invalid_message(stage: Stage) -> None:
    """An invalid message gets `error: invalid_message` and a `message` for people."""
    _, frame = await _error_for(stage, '{"to": 7, "payload": 1}')
    require(_code(frame) == "invalid_message", f"the error is {_code(frame)!r}")
    text = frame.get("message") or _payload(frame).get("message")
    require(isinstance(text, str) and text, "the error has no `message`")


@errors.advice
async def errors_are_envelopes_too(stage: Stage) -> None:
    """An error is an envelope from `relay` of type `error` with `payload.code`, and names the field."""
    peer, frame = await _error_for(stage, '{"to": 7, "payload": 1}')
    require(frame.get("type") == "error" and frame.get("from") == RELAY and frame.get("to") == [peer.id], f"it is {frame!r}")
    require(_payload(frame).get("code") == frame.get("error"), f"`payload.code` is {_payload(frame).get('code')!r}")
    require("to" in str(frame.get("message")), f"the message does not name the field: {frame.get('message')!r}")


@errors.advice
async def unknown_commands_are_said(stage: Stage) -> None:
    """An unknown command gets `unknown_type` and the frame's `ref`."""
    _, frame = await _error_for(stage, json.dumps({"to": [RELAY], "type": "dance", "ref": stage.text("ref"), "payload": {}}))
    require(_code(frame) == "unknown_type", f"the error is {_code(frame)!r}")
    require(frame.get("ref") == stage.text("ref"), f"`ref` is {frame.get('ref')!r}")


# --- heartbeat ----------------------------------------------------------------------------------------------------------

heartbeat = Section("heartbeat", level=Level.OFFERED)


@heartbeat.rule
async def answers_the_sockets_ping(stage: Stage) -> None:
    """A WebSocket ping frame gets a pong frame."""
    peer = await stage.join()
    pong = await peer.connection.ping()
    done, _ = await asyncio.wait({asyncio.ensure_future(pong)}, timeout=stage.relay.timeout_s)
    require(done, "no pong frame arrived")


@heartbeat.rule
async def answers_ping(stage: Stage) -> None:
    """`{"to": ["relay"], "type": "ping"}` gets a `pong` from `relay` to the sender, with `id` and `ts`."""
    peer = await stage.join()
    await peer.command("ping")
    try:
        frame = await peer.hear_type("pong")
    except Broken:
        raise NotOffered("the relay does not answer `ping`") from None
    require(
        frame.get("from") == RELAY and frame.get("to") == [peer.id], f"it is from {frame.get('from')!r} to {frame.get('to')!r}"
    )
    require(isinstance(frame.get("id"), str) and isinstance(frame.get("ts"), int), "the pong has no `id` or no `ts`")


OFFERED = [welcome, limits, errors, heartbeat]
