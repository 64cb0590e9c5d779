"""Anthropic's messages, as claude asks for them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.real_clis.model.dialects import INPUT_TOKENS, OUTPUT_TOKENS, Event, Json, gather, new_id, text_of, tool_call
from tests.real_clis.model.script import Asked, Reply


def read(body: Json) -> Asked:
    items = [(message.get("role") == "assistant", _has_result(message), text_of(message.get("content")))
             for message in body.get("messages", [])]  # fmt: skip
    tools = tuple(str(tool.get("name")) for tool in body.get("tools") or [])
    return Asked(*gather(items), tools, is_aside=not tools)


def _has_result(message: Json) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any(part.get("type") == "tool_result" for part in content)


def _blocks(reply: Reply, asked: Asked) -> list[Json]:
    blocks: list[Json] = [{"type": "text", "text": reply.text}]
    if reply.command is not None:
        name, arguments = tool_call(reply.command, asked)
        blocks.append({"type": "tool_use", "id": new_id("toolu_"), "name": name, "input": arguments})
    return blocks


def _message(content: list[Json], stop: str | None) -> Json:
    usage = {"input_tokens": INPUT_TOKENS, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}
    return {
        "id": new_id("msg_"), "type": "message", "role": "assistant", "model": "claude-scripted", "content": content,
        "stop_reason": stop, "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def _stop(reply: Reply) -> str:
    return "tool_use" if reply.command is not None else "end_turn"


def whole(reply: Reply, asked: Asked) -> Json:
    return _message(_blocks(reply, asked), _stop(reply))


def stream(reply: Reply, pieces: Iterator[str], asked: Asked) -> Iterator[Event]:
    for data in _stream(reply, pieces, asked):
        yield data["type"], data


def _stream(reply: Reply, pieces: Iterator[str], asked: Asked) -> Iterator[Json]:
    yield {"type": "message_start", "message": _message([], None)}
    for index, block in enumerate(_blocks(reply, asked)):
        if block["type"] == "text":
            yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
            for piece in pieces:
                yield _delta(index, {"type": "text_delta", "text": piece})
        else:
            yield {"type": "content_block_start", "index": index, "content_block": {**block, "input": {}}}
            yield _delta(index, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])})
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": _stop(reply), "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": OUTPUT_TOKENS}}
    yield {"type": "message_stop"}


def _delta(index: int, delta: Json) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": delta}
