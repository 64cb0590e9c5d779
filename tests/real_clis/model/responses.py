"""OpenAI's responses, as codex asks for them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.real_clis.model.dialects import INPUT_TOKENS, MODEL, OUTPUT_TOKENS, Event, Json, gather, new_id, text_of, tool_call
from tests.real_clis.model.script import Asked, Reply

_SPACE = "::"
_OWN = ("function_call", "custom_tool_call", "local_shell_call", "reasoning")


def read(body: Json) -> Asked:
    given = body.get("input") or []
    given = [{"role": "user", "content": given}] if isinstance(given, str) else given
    items = [(_is_own(item), str(item.get("type", "")).endswith("_output"), text_of(item.get("content"))) for item in given]
    tools = tuple(name for tool in body.get("tools") or [] for name in _names(tool))
    return Asked(*gather(items), tools, is_aside=not tools)


def _names(tool: Json) -> list[str]:
    """Those of an MCP server stand in a space of names, which is put before each."""
    own = str(tool.get("name") or tool.get("type"))
    return [own, *(f"{own}{_SPACE}_{inner.get('name')}" for inner in tool.get("tools") or [])]


def _is_own(item: Json) -> bool:
    return item.get("role") == "assistant" or item.get("type") in _OWN


def _items(reply: Reply, asked: Asked) -> list[Json]:
    text = {"type": "output_text", "text": reply.text, "annotations": []}
    items: list[Json] = [{"type": "message", "id": new_id("msg_"), "role": "assistant", "status": "completed", "content": [text]}]
    if reply.command is not None:
        name, arguments = tool_call(reply.command, asked)
        space, _, inner = name.rpartition(f"{_SPACE}_")
        call = {
            **({"namespace": space} if space else {}),
            "name": inner,
            "arguments": json.dumps(arguments),
            "status": "completed",
        }
        items.append({"type": "function_call", "id": new_id("fc_"), "call_id": new_id("call_"), **call})
    return items


def _response(output: list[Json], status: str) -> Json:
    response = {"id": new_id("resp_"), "object": "response", "created_at": 0, "model": MODEL, "status": status, "output": output}
    if status != "completed":
        return response
    usage = {
        "input_tokens": INPUT_TOKENS, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }  # fmt: skip
    return {**response, "usage": usage}


def whole(reply: Reply, asked: Asked) -> Json:
    return _response(_items(reply, asked), "completed")


def stream(reply: Reply, pieces: Iterator[str], asked: Asked) -> Iterator[Event]:
    for number, data in enumerate(_stream(reply, pieces, asked)):
        yield data["type"], {**data, "sequence_number": number}


def _stream(reply: Reply, pieces: Iterator[str], asked: Asked) -> Iterator[Json]:
    items = _items(reply, asked)
    started = _response([], "in_progress")
    yield {"type": "response.created", "response": started}
    message, calls = items[0], items[1:]
    at = {"item_id": message["id"], "output_index": 0, "content_index": 0}
    empty = {"type": "output_text", "text": "", "annotations": []}
    yield {"type": "response.output_item.added", "output_index": 0, "item": {**message, "status": "in_progress", "content": []}}
    yield {"type": "response.content_part.added", **at, "part": empty}
    said = ""
    for piece in pieces:
        said += piece
        yield {"type": "response.output_text.delta", **at, "delta": piece}
    message["content"][0]["text"] = said
    yield {"type": "response.output_text.done", **at, "text": said}
    yield {"type": "response.content_part.done", **at, "part": message["content"][0]}
    yield {"type": "response.output_item.done", "output_index": 0, "item": message}
    for index, call in enumerate(calls, 1):
        where = {"item_id": call["id"], "output_index": index}
        yield {"type": "response.output_item.added", "output_index": index, "item": {**call, "arguments": ""}}
        yield {"type": "response.function_call_arguments.done", **where, "arguments": call["arguments"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": call}
    yield {"type": "response.completed", "response": {**_response(items, "completed"), "id": started["id"]}}
