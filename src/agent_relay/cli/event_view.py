"""An event on one line, for people: when, whose, what, and the fields that matter."""

from __future__ import annotations

from typing import Any

import msgspec

from agent_relay.cli.formats import format_time
from agent_relay.cli.safe_text import clean_line
from agent_relay.cli.screen import Screen
from agent_relay.events.types import Event, MessageExchanged, type_of

_LONGEST = 200  # characters of a text; --json has all of it
_PLAIN = {"type", "_seq", "_ts", "_sessionId", "_agentName", "sessionId", "agentName"}  # shown in front, or not worth it
_STYLES = {"permission": "yellow", "question": "yellow", "stream": "red", "loop": "red", "budget": "red", "message": "cyan"}


def show_event(screen: Screen, event: Event, now_ms: int) -> None:
    kind = type_of(event)
    style = _STYLES.get(kind.partition(".")[0], "")
    screen.line(
        (format_time(event.ts, now_ms), "dim"), "  ", (f"{event.seq:>6}", "dim"), "  ",
        (f"{clean_line(event.by_agent or '-'):<12}", "bold"), "  ", (f"{kind:<20}", style), "  ",
        describe_event(event),
    )  # fmt: skip


def describe_event(event: Event) -> str:
    if isinstance(event, MessageExchanged):
        return f"{clean_line(event.from_)} → {clean_line(event.to or event.channel or '-')}: {_shorten(event.body)}"
    fields: dict[str, Any] = msgspec.to_builtins(event)
    return "  ".join(f"{name}={_show(value)}" for name, value in fields.items() if name not in _PLAIN)


def _show(value: Any) -> str:
    return _shorten(value if isinstance(value, str) else msgspec.json.encode(value).decode())


def _shorten(text: str) -> str:
    line = clean_line(text)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
