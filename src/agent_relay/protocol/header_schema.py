"""The JSON Schema of a file in the header format, as the object it stands for: each header by its name in capitals with the text
of its value, and the rest of the file as `body`.

A schema cannot say everything that `headers.parse_headers` checks: a value may still be refused for its range, and a checksum
for not being that of the body.
"""

from __future__ import annotations

from typing import Any

from agent_relay.protocol.header_table import HEADERS, MAX_IDENTIFIER_LENGTH
from agent_relay.protocol.headers import REQUIRED, REQUIRED_OF_MESSAGES

BODY = "body"
_NUMBER, _DURATION, _FLAG = "^[0-9]{1,16}$", "^[0-9]{1,16}\\s*(ms|[smhd])?$", "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$"
_WORD = "^[a-z][a-z0-9_.-]{0,63}$"
_LINE = {"type": "string", "minLength": 1, "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]+$"}
_IDENTIFIER = {**_LINE, "maxLength": MAX_IDENTIFIER_LENGTH}
_PATTERNS = {
    "KIND": _WORD,
    "ID": "^msg_[A-Za-z0-9]{26}$",
    "SEQ": _NUMBER,
    "PRIORITY": "^0{0,15}[0-9]$",
    "TTL": _DURATION,
    "AWAIT": _DURATION,
    "REQUIRE-ACK": _FLAG,
    "CODE": "^[A-Z][A-Z0-9_]{0,63}$",
    "CATEGORY": _WORD,
    "RETRYABLE": _FLAG,
    "RETRY-AFTER": _DURATION,
    "QUEUE-DEPTH": _NUMBER,
    "QUEUE-CAPACITY": _NUMBER,
    "DELAY-MS": _NUMBER,
    "ACCEPTING": _FLAG,
    "WAITED": _DURATION,
    "NEGOTIATED-VERSION": _NUMBER,
    "VERSION": _NUMBER,
}
_IDENTIFIERS = frozenset({"SESSION", "REPLY-TO", "CORRELATION"})


def make_header_schema() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A file in the header format of Agent Relay",
        "description": "Each header with the text of its value, and `body`: everything after the first blank line.",
        "type": "object",
        "properties": {header.name: _describe(header.name) for header in HEADERS} | {BODY: {"type": "string"}},
        "allOf": [_require(kind, names) for kind, names in REQUIRED.items() if names] + [_require_of_messages()],
    }


def _describe(name: str) -> dict[str, Any]:
    if name in _IDENTIFIERS:
        return dict(_IDENTIFIER)
    pattern = _PATTERNS.get(name)
    return dict(_LINE) if pattern is None else {"type": "string", "pattern": pattern}


def _require(kind: str, names: tuple[str, ...]) -> dict[str, Any]:
    return {"if": {"properties": {"KIND": {"const": kind}}, "required": ["KIND"]}, "then": {"required": list(names)}}


def _require_of_messages() -> dict[str, Any]:
    """A file without KIND is a message."""
    is_other = {"properties": {"KIND": {"enum": list(REQUIRED)}}, "required": ["KIND"]}
    return {"if": {"not": is_other}, "then": {"required": list(REQUIRED_OF_MESSAGES)}}
