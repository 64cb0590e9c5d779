"""OpenAI's chat completions, as opencode and aider ask for them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.real_clis.model.dialects import INPUT_TOKENS, MODEL, OUTPUT_TOKENS, Event, Json, gather, new_id, text_of, tool_call
from tests.real_clis.model.script import Asked, Reply

_USAGE = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS, "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS}


def read(body: Json) -> Asked:
    messages = body.get("messages") or []
    said = [message for message in messages if message.get("role") not in ("system", "developer")]
    items = [(one.get("role") == "assistant", one.get("role") == "tool", text_of(one.get("content"))) for one in said]
    tools = tuple(str(tool.get("function", {}).get("name")) for tool in body.get("tools") or [])
    system = text_of(messages[0].get("content")) if messages else ""
    return Asked(*gather(items), tools, is_aside="title generator" in system.lower())


def _message(reply: Reply, asked: Asked) -> Json:
    if reply.command is None:
        return {"role": "assistant", "content": reply.text}
    if not asked.tools:  # aider has none: it offers to run what stands in a block of shell commands
        return {"role": "assistant", "content": f"{reply.text}\n\n```bash\n{reply.command}\n```\n"}
    name, arguments = tool_call(reply.command, asked)
    call = {"index": 0, "id": new_id("call_"), "type": "function"}
    call["function"] = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": reply.text, "tool_calls": [call]}


def _finish(message: Json) -> str:
    return "tool_calls" if "tool_calls" in message else "stop"


def whole(reply: Reply, asked: Asked) -> Json:
    message = _message(reply, asked)
    choice = {"index": 0, "message": message, "finish_reason": _finish(message)}
    head = {"id": new_id("chatcmpl-"), "object": "chat.completion", "created": 0, "model": MODEL}
    return {**head, "choices": [choice], "usage": _USAGE}


def stream(reply: Reply, pieces: Iterator[str], asked: Asked) -> Iterator[Event]:
    message = _message(reply, asked)
    head = {"id": new_id("chatcmpl-"), "object": "chat.completion.chunk", "created": 0, "model": MODEL}

    def chunk(delta: Json, finish: str | None = None) -> Event:
        return None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces:
        yield chunk({"content": piece})
    if len(message["content"]) > len(reply.text):
        yield chunk({"content": message["content"][len(reply.text) :]})
    if "tool_calls" in message:
        yield chunk({"tool_calls": message["tool_calls"]})
    yield chunk({}, _finish(message))
    yield None, {**head, "choices": [], "usage": _USAGE}
    yield None, "[DONE]"
