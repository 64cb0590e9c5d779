"""Keyboards: who types into which terminal. One at a time, and for a short time: whoever goes on typing asks again.

The agent's wrapper keeps messages from it for as long, so also a daemon that goes away does not keep an agent waiting.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from msgspec import Struct

from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.names import fold_name
from agent_relay.transports.http.errors import CONFLICT, HttpError

LEASE_MS = 30_000


class Lease(Struct, frozen=True):
    holder: str
    expires_at: int  # by the wall clock, as people are told it
    until: int  # the same by the steady clock, which counts: the other may be set back


class Keyboards:
    def __init__(self, steady_ms: Callable[[], int], wall_ms: Callable[[], int]) -> None:
        self._steady_ms = steady_ms
        self._wall_ms = wall_ms
        self._held: dict[str, Lease] = {}

    def take(self, agent: str, holder: str | None, *, force: bool) -> Lease:
        """Or keep, for the holder. Raises HttpError where somebody else has it and it is not taken by force."""
        now = self._steady_ms()
        self._held = {key: lease for key, lease in self._held.items() if lease.until > now}
        held = self._held.get(fold_name(agent))
        if held is not None and held.holder != holder and not force:
            raise HttpError(
                CONFLICT, ErrorCode.PERMISSION_DENIED, f"Somebody else is typing into the terminal of {agent}.",
                reason="keyboard_held", expires_at=held.expires_at,
            )  # fmt: skip
        name = held.holder if held is not None and held.holder == holder else _new_holder()
        lease = Lease(name, self._wall_ms() + LEASE_MS, now + LEASE_MS)
        self._held[fold_name(agent)] = lease
        return lease

    def release(self, agent: str, holder: str) -> bool:
        """Whether it was theirs."""
        held = self._held.get(fold_name(agent))
        if held is None or held.holder != holder:
            return False
        del self._held[fold_name(agent)]
        return True


def _new_holder() -> str:
    return secrets.token_urlsafe(12)
