"""A message of the project as a payload over there, and the other way round."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_KIND = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_FIELDS = {"body", "kind", "thread", "data"}


@dataclass(frozen=True, slots=True)
class MessageContent:
    body: str
    kind: str = "message"
    thread: str | None = None
    data: dict[str, Any] | None = None


def to_arc(payload: Mapping[str, Any]) -> Any:
    """The text alone where there is nothing else, otherwise all of it."""
    plain = {name: value for name, value in payload.items() if value is not None and (name, value) != ("kind", "message")}
    return plain["body"] if plain.keys() == {"body"} else plain


def from_arc(payload: Any) -> MessageContent:
    """A text is the body, what another bridge made of a message becomes it again, anything else is data and its JSON the body."""
    if isinstance(payload, str):
        return MessageContent(payload)
    if isinstance(payload, dict) and isinstance(payload.get("body"), str) and payload.keys() <= _FIELDS:
        kind, thread, data = payload.get("kind"), payload.get("thread"), payload.get("data")
        return MessageContent(
            payload["body"], kind if isinstance(kind, str) and _KIND.fullmatch(kind) else "message",
            thread if isinstance(thread, str) else None, data if isinstance(data, dict) else None,
        )  # fmt: skip
    body = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return MessageContent(body, data=payload if isinstance(payload, dict) else None)
