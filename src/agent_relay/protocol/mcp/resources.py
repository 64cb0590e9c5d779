"""The resources: the inbox, and each thread. Their addresses, and which of them a new message changes."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import BROADCAST, CHANNEL_MARK, fold_name, show

INBOX_URI = "relay://inbox"
THREAD_PREFIX = "relay://thread/"
MEDIA = "text/plain"
INBOX = {"uri": INBOX_URI, "name": "inbox", "description": "Messages to you; reading takes none.", "mimeType": MEDIA}
THREAD_TEMPLATE = {
    "uriTemplate": THREAD_PREFIX + "{thread}", "name": "thread", "description": "A thread, oldest first.", "mimeType": MEDIA
}  # fmt: skip
_NOT_PLAIN = re.compile(rb"[^A-Za-z0-9_.~-]")
_QUOTED = re.compile(rb"%([0-9A-Fa-f]{2})")


class Resource(Struct, frozen=True):
    """The inbox, or the thread of that name."""

    thread: str | None


def read_uri(uri: str) -> Resource:
    """Raises RelayError for an address that is none of ours."""
    if uri == INBOX_URI:
        return Resource(None)
    thread = _unquote(uri.removeprefix(THREAD_PREFIX)) if uri.startswith(THREAD_PREFIX) else ""
    if not thread:
        raise RelayError(
            ErrorCode.ROUTE_NOT_FOUND, f"There is no resource {show(uri, 80)}: there are {INBOX_URI} and {THREAD_PREFIX}NAME.",
            field="uri",
        )  # fmt: skip
    return Resource(thread)


def thread_uri(thread: str) -> str:
    return THREAD_PREFIX + _NOT_PLAIN.sub(lambda found: b"%%%02X" % found[0][0], thread.encode("utf-8", "replace")).decode()


def _unquote(text: str) -> str:
    raw = _QUOTED.sub(lambda found: bytes([int(found[1], 16)]), text.encode("utf-8", "replace"))
    return raw.decode("utf-8", "replace")


def list_threads(threads: list[str]) -> list[dict[str, Any]]:
    return [{"uri": thread_uri(each), "name": f"thread {each}", "mimeType": MEDIA} for each in threads]


def find_changed(to: str, thread: str | None, own_name: str) -> list[str]:
    """The addresses that a message changes. One to a channel or to a topic may be for us: only the relay knows who listens, and a
    reader who looks once too often does no harm."""
    names = {fold_name(each.strip()) for each in to.split(",")}
    is_for_many = to in {"", BROADCAST} or to.startswith(CHANNEL_MARK)
    changed = [INBOX_URI] if is_for_many or fold_name(own_name) in names else []
    return [*changed, thread_uri(thread)] if thread else changed
