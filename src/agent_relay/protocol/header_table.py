"""Every header of the header format: its name, the field it fills, how its value is read and how it is written.

A reader raises ValueError with the rest of a sentence that begins with the header's name; `NotATarget` where the
value should name an agent, a channel or a topic. `headers` turns both into the errors of the wire.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent_relay.protocol.durations import format_duration, parse_duration_ms
from agent_relay.protocol.names import BROADCAST, is_channel, is_name, is_topic, show
from agent_relay.protocol.payloads import LARGEST_NUMBER

MAX_IDENTIFIER_LENGTH = 128  # as for ids on the wire

_MESSAGE_ID = re.compile(r"msg_[A-Za-z0-9]{26}", re.ASCII)
_KIND = re.compile(r"[a-z][a-z0-9_.-]{0,63}", re.ASCII)
_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,63}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,16}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # what ends a line, steers a terminal or is no text


class NotATarget(ValueError):  # noqa: N818 - named by the condition
    """The value names an agent, a channel or a topic, and cannot be one's name."""


def _read_text(text: str) -> str:
    return text


def _read_targets(text: str) -> tuple[str, ...]:
    targets = tuple(part.strip(" \t") for part in text.split(","))
    if len(targets) == 1 and (text == BROADCAST or is_channel(text)):
        return targets
    for target in targets:
        if not is_name(target):
            raise NotATarget(f"{show(target)} is neither a name, nor a channel, nor '*' (a list takes names only)")
    return targets


def _read_name(text: str) -> str:
    if not is_name(text):
        raise NotATarget(f"{show(text)} cannot be an agent's name")
    return text


def _read_topic(text: str) -> str:
    if not is_topic(text):
        raise NotATarget(f"{show(text)} cannot be a topic: tokens between dots, no wildcards")
    return text


def _matching(pattern: re.Pattern[str], wanted: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if pattern.fullmatch(text) is None:
            raise ValueError(f"{show(text)} is not {wanted}")
        return text

    return read


def is_one_line(text: str) -> bool:
    """Fit to stand after a colon: something, without spaces around it and without control characters."""
    return text != "" and text == text.strip(" ") and _CONTROL.search(text) is None


def is_identifier(text: str) -> bool:
    return len(text) <= MAX_IDENTIFIER_LENGTH and is_one_line(text)


def _read_identifier(text: str) -> str:
    if not is_identifier(text):
        raise ValueError(f"an id has at most {MAX_IDENTIFIER_LENGTH} characters")
    return text


def _number(least: int, most: int = LARGEST_NUMBER) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text) if _NUMBER.fullmatch(text) else -1
        if not least <= number <= most:
            raise ValueError(f"{show(text)} is not a whole number from {least} to {most}")
        return number

    return read


def _duration(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            milliseconds = parse_duration_ms(text)
        except ValueError:
            milliseconds = -1
        if not least <= milliseconds <= LARGEST_NUMBER:
            raise ValueError(f"{show(text)} is not a duration: write 30s, 5m, 1h, or a number of milliseconds")
        return milliseconds

    return read


def _read_flag(text: str) -> bool:
    flag = {"true": True, "false": False}.get(text.lower())
    if flag is None:
        raise ValueError(f"{show(text)} is neither true nor false")
    return flag


def _write_flag(flag: bool) -> str:
    return str(flag).lower()


def _read_words(text: str) -> tuple[str, ...]:
    words = tuple(word.strip(" \t") for word in text.split(","))
    if not all(words):
        raise ValueError("there is nothing between two commas")
    return words


_write_words = ", ".join


# --- the table ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Header:
    name: str
    field: str
    read: Callable[[str], Any]
    write: Callable[[Any], str] = str


HEADERS = (
    Header("KIND", "kind", _matching(_KIND, "a kind: a word in lower case")),
    Header("TO", "to", _read_targets, _write_words),
    Header("TOPIC", "topic", _read_topic),
    Header("THREAD", "thread", _read_text),
    Header("ID", "id", _matching(_MESSAGE_ID, "an id: `msg_` and 26 letters or digits")),
    Header("SEQ", "seq", _number(0)),
    Header("SESSION", "session", _read_identifier),
    Header("REPLY-TO", "reply_to", _read_identifier),
    Header("PRIORITY", "priority", _number(0, 9)),
    Header("TTL", "ttl_ms", _duration(1), format_duration),
    Header("AWAIT", "await_ms", _duration(1), format_duration),
    Header("CORRELATION", "correlation", _read_identifier),
    Header("REQUIRE-ACK", "require_ack", _read_flag, _write_flag),
    Header("NAME", "name", _read_name),
    Header("CLI", "cli", _read_text),
    Header("CWD", "cwd", _read_text),
    Header("TYPE", "type", _read_text),
    Header("CODE", "code", _matching(_CODE, "an error code")),
    Header("CATEGORY", "category", _matching(_KIND, "an error category")),
    Header("RETRYABLE", "retryable", _read_flag, _write_flag),
    Header("RETRY-AFTER", "retry_after_ms", _duration(0)),
    Header("QUEUE-DEPTH", "queue_depth", _number(0)),
    Header("QUEUE-CAPACITY", "queue_capacity", _number(0)),
    Header("DELAY-MS", "delay_ms", _number(0)),
    Header("ACCEPTING", "accepting", _read_flag, _write_flag),
    Header("WAITED", "waited_ms", _duration(0)),
    Header("CAPABILITIES", "capabilities", _read_words, _write_words),
    Header("NEGOTIATED-VERSION", "negotiated_version", _number(1)),
    Header("VERSION", "version", _number(1)),
    Header("CHECKSUM", "checksum", _read_text),
)
