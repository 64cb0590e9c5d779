"""A person's own inbox. What is written to a person may have been acknowledged already, by the page; so it is read from the
history, from the last message on that was shown here."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from agent_relay.cli.message_view import now_ms

if TYPE_CHECKING:
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.locate import Place

SEEN_FILE = "inbox-seen"
_FIRST_MS = 24 * 3_600_000  # so far back the first look goes
_PAGE = 100


async def find_unseen(relay: RelayClient, place: Place, name: str) -> list[dict[str, Any]]:
    """The oldest first."""
    seen = _read_seen(place)
    since = None if seen else now_ms() - _FIRST_MS
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = await relay.history(to=name, since=since, limit=_PAGE, cursor=cursor)
        fresh = [message for message in page.messages if str(message.get("message_id")) > seen]
        found += fresh
        cursor = page.next_cursor
        if cursor is None or len(fresh) < len(page.messages):
            return found[::-1]


def note_seen(place: Place, message_id: str) -> None:
    """Ids sort by time. Where it cannot be written, the same is shown again."""
    from agent_relay.daemon.directories import write_private_file

    if message_id > _read_seen(place):
        with contextlib.suppress(OSError):
            write_private_file(os.path.join(place.state_dir, SEEN_FILE), message_id + "\n")


def _read_seen(place: Place) -> str:
    try:
        with open(os.path.join(place.state_dir, SEEN_FILE), encoding="ascii") as file:
            return file.read(100).strip()
    except (OSError, ValueError):
        return ""
