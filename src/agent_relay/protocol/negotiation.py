"""Protocol versions and capabilities: both sides use what both have."""

from __future__ import annotations

from typing import Any

from agent_relay.protocol.errors import ErrorCode, RelayError

SUPPORTED_VERSIONS = (1, 2)
# What this daemon can do.
CAPABILITIES = (
    "ack", "resume", "supports_topics", "sync", "backpressure", "checksums", "sequences", "priorities", "channels", "control",
    "events", "consensus", "shadows",
)  # fmt: skip


def negotiate_version(asked: int) -> int:
    if asked < SUPPORTED_VERSIONS[0]:
        raise RelayError(
            ErrorCode.VERSION_MISMATCH,
            f"Protocol version {asked} does not exist; this daemon supports {SUPPORTED_VERSIONS[0]} to {SUPPORTED_VERSIONS[-1]}.",
            supported=list(SUPPORTED_VERSIONS),
        )
    return min(asked, SUPPORTED_VERSIONS[-1])


def negotiate_capabilities(asked: dict[str, Any]) -> tuple[str, ...]:
    """The list both sides have. Flags we do not know are someone else's future, not an error."""
    return tuple(name for name in CAPABILITIES if asked.get(name) is True)


def negotiate_window(asked: dict[str, Any], most: int) -> int:
    """The number of messages that may be on their way to a client at once: as many as it asks for, up to ours."""
    wanted = asked.get("max_inflight")
    return min(wanted, most) if type(wanted) is int and wanted > 0 else most
