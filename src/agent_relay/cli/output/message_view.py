"""A message as commands show it: a line that says who, to whom, which and what became of it, then its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_relay.cli.output.formats import count, format_time, now_ms
from agent_relay.cli.output.safe_text import clean_block, clean_line
from agent_relay.cli.output.screen import Part, Screen
from agent_relay.cli.person import show_name
from agent_relay.protocol.message_states import MessageState
from agent_relay.protocol.short_ids import short_id

MESSAGE_TO_PROGRAMS = ("message_id", "from", "to", "topic", "ts", "kind", "thread", "payload")
_SHOWN_LINES = 10  # of one message in a list on a terminal; `read` shows all of it
_STATUS_STYLES = {
    MessageState.DELIVERED: "green", MessageState.READ: "green", MessageState.SENT: "yellow", MessageState.QUEUED: "yellow",
    MessageState.REJECTED: "red", MessageState.DEAD: "red",
}  # fmt: skip


def text_of(message: Mapping[str, Any]) -> str:
    payload = message.get("payload")
    body = payload.get("body") if isinstance(payload, Mapping) else None
    return body if isinstance(body, str) else ""


def target_of(message: Mapping[str, Any]) -> str:
    """`Bob`, `*`, `#dev`, `Bob, Carol`, or the topic where nobody is named."""
    to = message.get("to")
    if isinstance(to, str) and to:
        return clean_line(show_name(to))
    if isinstance(to, Sequence) and to:
        return clean_line(", ".join(str(name) for name in to))
    return f"topic {clean_line(str(message.get('topic') or ''))}".strip()


def show_heading(screen: Screen, message: Mapping[str, Any], *more: Part) -> None:
    at = format_time(int(message.get("ts") or 0), now_ms())
    sender = clean_line(show_name(str(message.get("from", ""))))
    screen.line(
        (at, "dim"), "  ", (sender, "bold cyan"), " → ", (target_of(message), "bold"),
        "  ", (short_id(str(message.get("message_id", ""))), "dim"), *more, *_labels(message),
    )  # fmt: skip


def show_text(screen: Screen, message: Mapping[str, Any], *, whole: bool) -> None:
    text = clean_block(text_of(message)).rstrip("\n")
    lines = text.split("\n")
    if not whole and screen.is_terminal and len(lines) > _SHOWN_LINES:
        screen.block("\n".join(lines[:_SHOWN_LINES]))
        hidden = count(len(lines) - _SHOWN_LINES, "more line")
        screen.block(f"… {hidden}: agent-relay read {short_id(str(message.get('message_id', '')))}", style="dim")
    else:
        screen.block(text)


def status_part(message: Mapping[str, Any]) -> list[Part]:
    """The state of a message, in a word; with more than one recipient, how many are where."""
    statuses = [str(one.get("status")) for one in message.get("recipients") or () if not one.get("copy")]
    if not statuses:
        return ["  ", ("no recipients", "dim")]
    if len(set(statuses)) == 1:
        style = next((style for state, style in _STATUS_STYLES.items() if state == statuses[0]), "")
        return ["  ", (clean_line(statuses[0]), style)]
    delivered = statuses.count(MessageState.DELIVERED)
    return ["  ", (f"{MessageState.DELIVERED} to {delivered} of {len(statuses)}", "yellow")]


def _labels(message: Mapping[str, Any]) -> list[Part]:
    labels: list[Part] = []
    if message.get("copy"):
        labels += ["  ", ("copy", "magenta")]
    kind = message.get("kind")
    if kind and kind != "message":
        labels += ["  ", (clean_line(str(kind)), "magenta")]
    if message.get("topic") and message.get("to"):
        labels += ["  ", (f"topic {clean_line(str(message['topic']))}", "dim")]
    if message.get("thread"):
        labels += ["  ", (f"thread {clean_line(str(message['thread']))}", "dim")]
    return labels
