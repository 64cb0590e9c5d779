"""Every number the relay lives by, with the values of the wire contract as defaults."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_relay.protocol.framing import DEFAULT_MAX_FRAME_BYTES
from agent_relay.protocol.shadows import Shadowing

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True, slots=True)
class Limits:
    max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES
    heartbeat_ms: int = 5_000
    handshake_timeout_ms: int = 10_000
    ack_timeout_ms: int = 5_000
    max_attempts: int = 5
    queue_capacity: int = 1_000
    queue_bytes: int = 256 * 1024 * 1024  # what one recipient's waiting messages may hold
    max_inflight: int = 256
    slow_consumer_ms: int = 30_000
    resume_ttl_ms: int = DAY_MS
    message_ttl_ms: int = DAY_MS
    dedup_window_ms: int = DAY_MS
    dedup_ids: int = 100_000
    rate_limit: int = 0  # messages a second and connection; 0: no limit
    loop_slow_after: int = 30  # hops without new input; long enough for agents that get somewhere
    loop_hold_after: int = 60  # both: 0 means never
    max_agents: int = 20  # that the daemon started, at once
    spawns_per_minute: int = 30
    run_grace_ms: int = 15_000  # how long agents of a run outlive the lost connection of whoever runs it
    spawn_allow: frozenset[str] = field(default_factory=frozenset)  # programs that may be started beside the known CLIs
    spawn_environment: tuple[str, ...] = ("*_API_KEY", "*_MODEL", "LANG", "LC_*", "TZ", "NO_COLOR")  # patterns
    agent_rights: frozenset[tuple[str, str]] = frozenset({("*", "spawn")})  # (agent's key or `*`, right); see core.rights
    cluster_control: frozenset[str] = frozenset()  # hosts whose people may control what runs here; `*`: all
    spawn_unattended: tuple[str, ...] = ()  # permission modes that ask nobody, and may be asked for all the same
    message_retention_ms: int = 30 * DAY_MS
    allowed_uids: frozenset[int] = field(default_factory=frozenset)
    default_channels: tuple[str, ...] = ("#general",)  # what a new agent joins that asks for them
    shadows: tuple[Shadowing, ...] = ()  # who gets copies of whose messages
    bad_frames: int = 20  # the so-manieth malformed frame in a row ends the connection
    cursor_flush_ms: int = 100  # a recipient's ACK is durable within 200 ms; half of that leaves room for the write
    notice_capacity: int = 1_000  # receipts kept for a sender that is away
    owner: str = ""  # the name of the daemon's user: what that person sends is from it, and nobody else may have it
