"""The events of a daemon of a cluster, put together: their stream, and this host's copy of it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable

from agent_relay.cluster.events import DOCUMENT, ClusterEvents
from agent_relay.cluster.jetstream import Names, Retention
from agent_relay.cluster.log import JetStreamLog
from agent_relay.daemon.config import Config
from agent_relay.ports.cluster import Wire
from agent_relay.ports.log import Log
from agent_relay.ports.store import Snapshot
from agent_relay.protocol import places
from agent_relay.storage.jsonl.copy import JsonlEventCopy
from agent_relay.storage.jsonl.store import rotation_for
from agent_relay.storage.posting import Post

_CLAIM_S = 2.0  # usually milliseconds; a seat does not wait longer for its events
_GOODBYE_S = 2.0


def make_cluster_events(
    config: Config,
    wire: Wire,
    names: Names,
    host: str,
    mark: str,
    post: Post,
    most_bytes: Callable[[], int],
    notes: Log,
    now: int,
) -> ClusterEvents:
    retention = Retention(config.event_retention_ms, config.event_bytes)
    log = JetStreamLog(wire, names.events, mark, config.cluster.replicas, notes, now, retention=retention, may_skip=True)
    rotation = rotation_for(config.event_retention_ms, config.event_bytes)
    copy = JsonlEventCopy(config.file(places.EVENTS_FILE), post, rotation, syncs=False)
    return ClusterEvents(log, copy, host, mark, secrets.token_hex(8), retention, most_bytes, notes, now)


async def claim_events(events: ClusterEvents, term: int, snapshot: Snapshot) -> None:
    """Returns when they are ours to number, or after a while: then that comes later, and what happens meanwhile waits."""
    claimed = asyncio.Event()
    events.claim(term, snapshot.documents.get(DOCUMENT, b""), claimed.set)
    await _wait(claimed, _CLAIM_S)


async def end_events(events: ClusterEvents) -> None:
    """Of a daemon that stops by itself: all was told."""
    said = asyncio.Event()
    events.say_goodbye(said.set)
    await _wait(said, _GOODBYE_S)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
