"""Gemini's generateContent and streamGenerateContent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tests.real_clis.model.dialects import INPUT_TOKENS, OUTPUT_TOKENS, Event, Json, gather, text_of, tool_call
from tests.real_clis.model.script import Asked, Reply

_ADDED = re.compile(r"<hook_context>(.*?)</hook_context>", re.DOTALL)
_TOTAL = INPUT_TOKENS + OUTPUT_TOKENS
_USAGE = {"promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS, "totalTokenCount": _TOTAL}

# Gemini asks for judgements in a shape of its own, besides the conversation. What a field of the shape is answered with:
_JUDGEMENTS: Json = {"next_speaker": "user", "complexity_score": 10, "model_choice": "flash"}


def read(body: Json) -> Asked:
    items = [(turn.get("role") == "model", _has_result(turn), _words(turn)) for turn in body.get("contents") or []]
    declared = (tool.get("functionDeclarations") or [] for tool in body.get("tools") or [])
    tools = tuple(str(one.get("name")) for some in declared for one in some)
    return Asked(*gather(items), tools, is_aside=not tools or bool(_schema(body)))


def _words(turn: Json) -> str:
    """With what hooks have added to the results of tools."""
    parts = turn.get("parts") or []
    results = (part["functionResponse"].get("response") or {} for part in parts if "functionResponse" in part)
    added = [text for result in results for text in _ADDED.findall(str(result.get("output")))]
    return "\n".join(text for text in [text_of(parts), *added] if text)


def _has_result(turn: Json) -> bool:
    return any("functionResponse" in part for part in turn.get("parts") or [])


def _schema(body: Json) -> Json:
    config = body.get("generationConfig") or {}
    schema: Json = config.get("responseJsonSchema") or config.get("responseSchema") or {}
    return schema


def judge(body: Json) -> str:
    """The answer to a question aside."""
    fields = (_schema(body).get("properties") or {}).keys()
    return json.dumps({field: _JUDGEMENTS.get(field, "none") for field in fields}) if fields else "A title"


def _chunk(parts: list[Json], finish: str | None = None) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": _USAGE, "modelVersion": "gemini-scripted", "responseId": "scripted"}


def _call(reply: Reply, asked: Asked) -> list[Json]:
    if reply.command is None:
        return []
    name, arguments = tool_call(reply.command, asked)
    return [{"functionCall": {"name": name, "args": arguments}}]


def whole(reply: Reply, asked: Asked) -> Json:
    return _chunk([{"text": reply.text}, *_call(reply, asked)], "STOP")


def stream(reply: Reply, pieces: Iterator[str], asked: Asked) -> Iterator[Event]:
    for piece in pieces:
        yield None, _chunk([{"text": piece}])
    yield None, _chunk(_call(reply, asked) or [{"text": ""}], "STOP")
