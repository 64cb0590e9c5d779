"""Answers that fit into a frame: a page of messages ends where the next one would make it too large."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from agent_relay.protocol.encode import encode_json
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import show
from agent_relay.protocol.ulid import number_of

_CURSOR_DIGITS = 19  # of the largest number that a store compares with
AROUND_BYTES = 2_048  # the envelope, the cursor, and what else stands beside the messages


def read_cursor(cursor: str | None) -> int | None:
    """The number in a cursor that a page before gave out."""
    if cursor is None:
        return None
    if not cursor.isdecimal() or len(cursor) > _CURSOR_DIGITS:
        raise RelayError(
            ErrorCode.INVALID_FORMAT, "The cursor is not valid; use one that the relay returned.", field="payload.cursor"
        )
    return int(cursor)


def read_place(cursor: str | None) -> int | None:
    """The same among messages, where the id of one will do: it goes on from there."""
    if cursor is not None and cursor.startswith("msg_"):
        try:
            return number_of(cursor.removeprefix("msg_"))
        except ValueError:
            raise RelayError(
                ErrorCode.INVALID_FORMAT, f"{show(cursor)} is not a message id of this relay.", field="payload.cursor"
            ) from None
    return read_cursor(cursor)


def take_what_fits(messages: Iterable[dict[str, Any]], max_frame_bytes: int) -> tuple[list[dict[str, Any]], bool]:
    """As many as fit, and whether that was all. The first is always taken, cut short if it must be."""
    taken: list[dict[str, Any]] = []
    room = max_frame_bytes - AROUND_BYTES
    for message in messages:
        size = len(encode_json(message))
        if size > room:
            if taken:
                return taken, False
            return [_cut(message, room)], False
        taken.append(message)
        room -= size
    return taken, True


def take_conversations(conversations: Iterable[dict[str, Any]], max_frame_bytes: int) -> list[dict[str, Any]]:
    taken: list[dict[str, Any]] = []
    room = max_frame_bytes - AROUND_BYTES
    for conversation in conversations:
        room -= len(encode_json(conversation))
        if room < 0:
            break
        taken.append(conversation)
    return taken


def take_agents(agents: Iterable[tuple[str, dict[str, Any]]], room: int) -> tuple[list[Raw], str | None]:
    """Each with its place in the list: as many as fit, and the place to go on after; None: that was all. The first is always
    taken, without what makes it too large."""
    taken: list[Raw] = []
    reached: str | None = None
    for place, agent in agents:
        line = encode_json(agent)
        if len(line) >= room:
            if taken:
                return taken, reached
            line = encode_json(_cut_agent(agent, room))
        taken.append(Raw(line))
        room -= len(line) + 1
        reached = place
    return taken, None


def take_newest(entries: list[dict[str, Any]], room: int) -> list[dict[str, Any]]:
    """Those at the end of the list, as many as fit."""
    taken: list[dict[str, Any]] = []
    for entry in reversed(entries):
        room -= len(encode_json(entry)) + 1
        if room < 0:
            break
        taken.append(entry)
    return taken[::-1]


def _cut_agent(agent: dict[str, Any], room: int) -> dict[str, Any]:
    """Without what it said of itself, and with as many of its requests as fit: the rest is shown when these are answered."""
    short = agent | {"meta": {}, "requests": []}
    left = room - len(encode_json(short))
    for request in agent["requests"]:
        left -= len(encode_json(request)) + 1
        if left < 0:
            break
        short["requests"].append(request)
    return short


def _cut(message: dict[str, Any], room: int) -> dict[str, Any]:
    """The summary of a message that is too large to be shown: everything but its data and the end of its body."""
    body = message["payload"].get("body", "")
    short = message | {"truncated": True, "payload": {"kind": message["kind"], "body": ""}, "payload_meta": None}
    if len(encode_json(short)) > room:
        short["recipients"] = short["recipients"][:100]
    while body and len(encode_json(short | {"payload": {"kind": message["kind"], "body": body}})) > room:
        body = body[: len(body) * 3 // 4]
    return short | {"payload": {"kind": message["kind"], "body": body}}
