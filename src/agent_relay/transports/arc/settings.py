"""Every number ARC lives by, with the values of the wire contract as defaults. 0 of a limit means that there is none."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import Struct

from agent_relay.ports.names import NameTraits
from agent_relay.ports.relay import PeerTraits

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
HARD_BYTES = 1_048_576  # a message beyond this is not even read past


class ArcLimits(Struct):
    """The limits as clients are told them."""

    max_message_size: int
    rate_limit: str
    hourly_limit: int
    registrations_per_hour: int
    failed_auths_per_minute: int
    connections_per_address: int
    slow_bytes: int
    slow_ms: int
    ping_ms: int
    silence_ms: int
    token_ttl_ms: int | None
    stores_offline: bool


@dataclass(frozen=True, slots=True)
class ArcSettings:
    open: bool = False  # anybody may register, without a token or an invitation
    name: str = "agent-relay"  # what the welcome calls this relay
    rate_limit: int = 100  # messages a minute
    hourly_limit: int = 1_000
    registrations_per_hour: int = 30  # an address
    failed_auths_per_minute: int = 10  # an address
    connections_per_address: int = 10_000
    max_bytes: int = 65_536
    hard_bytes: int = HARD_BYTES
    max_frame_bytes: int = 1_048_576  # what other clients of the relay are known to take
    slow_bytes: int = 1_048_576
    slow_ms: int = 10_000
    ping_ms: int = 25_000
    token_ttl_ms: int | None = None
    token_grace_ms: int = 60_000  # how long the old token is good after a refresh
    refusals: int = 10  # over the rate limit so many times in a row ends the connection
    ephemeral: bool = False
    trusted: frozenset[str] = field(default_factory=frozenset)  # ids without a rate limit

    @property
    def silence_ms(self) -> int:
        """A peer that is not heard for that long is gone: 45 s at the usual 25 s between pings."""
        return self.ping_ms * 9 // 5

    @property
    def peer_traits(self) -> PeerTraits:
        return PeerTraits(dedups=False, skips_unknown=True, keeps_offline=not self.ephemeral, has_heartbeat=True)

    @property
    def name_traits(self) -> NameTraits:
        sentence = "{name} is registered over ARC, where a name belongs to its owner. To end that: agent-relay arc revoke {name}"
        return NameTraits(kind="arc", keeps_offline=not self.ephemeral, removal=sentence)

    def describe_rate(self) -> str:
        return f"{self.rate_limit}/min" if self.rate_limit else "unlimited"

    def describe(self) -> ArcLimits:
        return ArcLimits(
            max_message_size=self.max_bytes,
            rate_limit=self.describe_rate(),
            hourly_limit=self.hourly_limit,
            registrations_per_hour=self.registrations_per_hour,
            failed_auths_per_minute=self.failed_auths_per_minute,
            connections_per_address=self.connections_per_address,
            slow_bytes=self.slow_bytes,
            slow_ms=self.slow_ms,
            ping_ms=self.ping_ms,
            silence_ms=self.silence_ms,
            token_ttl_ms=self.token_ttl_ms,
            stores_offline=not self.ephemeral,
        )
