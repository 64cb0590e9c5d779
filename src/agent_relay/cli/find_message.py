"""A message by its id, or by the eight digits that stand for it where an agent is shown it: `[abc12345]`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from agent_relay.cli.failures import Failure
from agent_relay.cli.formats import format_time
from agent_relay.cli.message_view import now_ms, target_of
from agent_relay.cli.safe_text import clean_line

if TYPE_CHECKING:
    from agent_relay.sdk.locate import Place
    from agent_relay.sdk.views import HistoryPage, MessageView

MessageId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The message's id, as send, history and inbox show it, or the eight digits an agent is shown."
    ),
]
SEARCHED_MESSAGES = 10_000  # the newest: a few seconds' search, and days of most projects
_PAGE = 500
_SHORT_ID = re.compile(r"\[?([0-9a-fA-F]{8})\]?")


class Archive(Protocol):
    """What a client that looks can ask."""

    async def history(self, *, limit: int, cursor: str | None) -> HistoryPage: ...

    async def message(self, message_id: str) -> MessageView: ...


def ask_for_message(place: Place, wanted: str) -> MessageView:
    from agent_relay.cli.link import observe, run

    async def ask() -> MessageView:
        async with observe(place) as relay:
            return await find_message(relay, wanted)

    return run(ask())


async def find_message(relay: Archive, wanted: str) -> MessageView:
    """Raises Failure when the digits stand for no message, or for several; RelayError for an id that there is not."""
    short = _SHORT_ID.fullmatch(wanted.strip())
    if short is None:
        return await relay.message(wanted)
    found = await _find_all(relay, short[1].lower())
    if len(found) == 1:
        return await relay.message(str(found[0]["message_id"]))
    if found:
        candidates = "; ".join(_describe(message) for message in found)
        raise Failure(f"[{short[1]}] stands for {len(found)} messages, say which by its id: {candidates}.")
    raise Failure(
        f"None of the newest {SEARCHED_MESSAGES:,} messages is [{short[1]}]; `agent-relay history` shows the ids of older ones."
    )


async def _find_all(relay: Archive, short: str) -> list[dict[str, Any]]:
    from agent_relay.terminal.message_text import short_id

    found: list[dict[str, Any]] = []
    cursor: str | None = None
    searched = 0
    while searched < SEARCHED_MESSAGES:
        page = await relay.history(limit=min(_PAGE, SEARCHED_MESSAGES - searched), cursor=cursor)
        found += [message for message in page.messages if short_id(str(message.get("message_id"))) == short]
        searched += len(page.messages)
        cursor = page.next_cursor
        if cursor is None or not page.messages:
            break
    return found


def _describe(message: dict[str, Any]) -> str:
    at = format_time(int(message.get("ts") or 0), now_ms())
    return f"{clean_line(str(message.get('message_id')))} ({at}, {clean_line(str(message.get('from')))} → {target_of(message)})"
