"""Messages that wait for an agent, and those to a person that were not shown here yet, as the daemon's history has them."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from agent_relay.cli.output.formats import now_ms
from agent_relay.protocol.message_states import MessageState
from agent_relay.protocol.names import fold_name
from agent_relay.sdk.locate import Place

if TYPE_CHECKING:
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.views import AgentInfo

_PAGE = 500
_UNSEEN_PAGE = 100
_SEEN_FILE = "inbox-seen"
_FIRST_MS = 24 * 3_600_000  # so far back the first look of a person goes


async def find_pending(relay: RelayClient, agent: AgentInfo) -> list[dict[str, Any]]:
    """Oldest first; one that is only a copy for it has `copy`. The daemon says how many there are, so the search ends with the
    last of them."""
    found: list[dict[str, Any]] = []
    wanted = agent.queue_depth + agent.inflight
    cursor: str | None = None
    while len(found) < wanted:
        page = await relay.history(to=agent.name, pending=True, limit=_PAGE, cursor=cursor)
        for message in page.messages:
            own = _find_own(message, agent.name)
            if own is not None and own.get("status") in {MessageState.QUEUED, MessageState.SENT}:
                found.append({**message, "copy": own.get("copy") is True})
        cursor = page.next_cursor
        if cursor is None:
            break
    return found[::-1]


def _find_own(message: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Its entry among the recipients."""
    entries = message.get("recipients") or ()
    return next((one for one in entries if fold_name(str(one.get("name"))) == fold_name(name)), None)


# --- a person's own inbox ---------------------------------------------------------------------------------------------
# What is written to a person may have been acknowledged already, by the page; so it is read from the history, from the last
# message on that was shown here.


async def find_unseen(relay: RelayClient, place: Place, name: str) -> list[dict[str, Any]]:
    """The oldest first."""
    seen = _read_seen(place)
    since = None if seen else now_ms() - _FIRST_MS
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = await relay.history(to=name, since=since, limit=_UNSEEN_PAGE, cursor=cursor)
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
            write_private_file(os.path.join(place.state_dir, _SEEN_FILE), message_id + "\n")


def _read_seen(place: Place) -> str:
    try:
        with open(os.path.join(place.state_dir, _SEEN_FILE), encoding="ascii") as file:
            return file.read(100).strip()
    except (OSError, ValueError):
        return ""
