"""Where agents register, refresh their token and sign off, over HTTP; and what an administrator can see and do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from agent_relay.ports.arc import ArcNames
from agent_relay.ports.clock import Clock
from agent_relay.ports.store import StoreError
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import show
from agent_relay.transports.arc.limits import Tries
from agent_relay.transports.arc.registrar import BadId, IdTaken, Record, Registrar, Verdict
from agent_relay.transports.arc.settings import HOUR_MS, MINUTE_MS, ArcSettings

if TYPE_CHECKING:
    from agent_relay.transports.arc.hub import Hub


class Unwelcome(Exception):  # noqa: N818 - named by the condition
    """An answer in HTTP that is not a good one, in ARC's flat form."""

    def __init__(self, status: int, error: str, message: str, *, retry_after_s: int | None = None, allow: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.error = error
        self.message = message
        self.retry_after_s = retry_after_s
        self.allow = allow

    def headers(self) -> list[tuple[str, str]]:
        found = [("retry-after", str(self.retry_after_s))] if self.retry_after_s is not None else []
        if self.status == 401:
            found.append(("www-authenticate", "Bearer"))
        if self.status == 426:
            found += [("upgrade", "websocket"), ("sec-websocket-version", "13")]
        if self.allow:
            found.append(("allow", self.allow))
        return found


class Desk:
    def __init__(self, registrar: Registrar, hub: Hub[Any], names: ArcNames, settings: ArcSettings, clock: Clock) -> None:
        self._registrar = registrar
        self._hub = hub
        self._names = names
        self.settings = settings
        self._clock = clock
        self._registrations = Tries(settings.registrations_per_hour, HOUR_MS)
        self._failures = Tries(settings.failed_auths_per_minute, MINUTE_MS)

    # --- agents ---------------------------------------------------------------------------------------------------------

    def authenticate(self, token: str, address: str) -> Record:
        """Raises Unwelcome. A good token is let in whatever others tried from the same address."""
        verdict, record = self._registrar.judge(token)
        if verdict is Verdict.GOOD and record is not None:
            return record
        now = self._clock.steady_ms()
        wait_ms = self._failures.wait_ms(address, now)
        if wait_ms:
            raise _too_many("Too many failed attempts from this address.", wait_ms)
        self._failures.add(address, now)
        if verdict is Verdict.EXPIRED:
            raise Unwelcome(401, "token_expired", "The token has expired; register again under another id.")
        raise Unwelcome(401, "unauthorized", "The token is missing or not known here.")

    async def register(self, wanted: str | None, address: str) -> dict[str, Any]:
        now = self._clock.steady_ms()
        wait_ms = self._registrations.wait_ms(address, now)
        if wait_ms:
            raise _too_many("Too many registrations from this address.", wait_ms)
        self._registrations.add(address, now)  # before it is written: many may be under way at once
        try:
            record, token = await self._registrar.register(wanted)
        except (BadId, IdTaken, StoreError) as error:
            self._registrations.take_back(address, now)
            raise _explain(error, wanted) from None
        return _describe_token(record, token)

    async def refresh(self, token: str, address: str) -> dict[str, Any]:
        record = self.authenticate(token, address)
        try:
            fresh = await self._registrar.refresh(record)
        except StoreError as error:
            raise _unstored(error) from None
        if fresh is None:
            raise Unwelcome(401, "unauthorized", "The token was revoked.")
        return _describe_token(record, fresh)

    async def sign_off(self, token: str, address: str) -> dict[str, Any]:
        return await self._revoke(self.authenticate(token, address))

    async def _revoke(self, record: Record) -> dict[str, Any]:
        try:
            await self._registrar.revoke(record)
        except StoreError as error:
            raise _unstored(error) from None
        self._hub.disconnect(record.agent_id, "The token was revoked.")
        return {"agent_id": record.agent_id, "revoked": True}

    # --- administration -------------------------------------------------------------------------------------------------

    def list_agents(self) -> list[dict[str, Any]]:
        return [self._describe(record) for _, record in sorted(self._registrar.records.items())]

    def _describe(self, record: Record) -> dict[str, Any]:
        row = record.row
        return {
            "agent_id": row.agent_id,
            "connected": row.agent_id in self._hub.connections,
            "registered_at": row.registered_at,
            "expires_at": row.expires_at,
            "revoked_at": row.revoked_at,
            "subscriptions": self._names.followed(row.agent_id),
            "trusted": row.agent_id in self.settings.trusted,
        }

    async def revoke(self, agent_id: str) -> dict[str, Any]:
        """Raises RelayError."""
        record = self._registrar.records.get(agent_id)
        if record is None:
            raise RelayError(ErrorCode.AGENT_NOT_FOUND, f"{show(agent_id, 80)} was never registered.", name=show(agent_id, 80))
        if record.row.revoked_at is not None:
            raise RelayError(ErrorCode.PERMISSION_DENIED, f"{agent_id} is revoked already.", reason="revoked")
        try:
            return await self._revoke(record)
        except Unwelcome as refusal:
            raise RelayError(ErrorCode.SERVICE_UNAVAILABLE, refusal.message, retry_after_ms=1_000) from None


def _describe_token(record: Record, token: str) -> dict[str, Any]:
    found: dict[str, Any] = {"agent_id": record.agent_id, "token": token}
    if record.row.expires_at is not None:
        found["expires_at"] = record.row.expires_at
    return found


def _explain(error: BadId | IdTaken | StoreError, wanted: str | None) -> Unwelcome:
    if isinstance(error, BadId):
        sentence = f"{show(wanted or '', 80)} cannot be an agent's id: 3 to 64 of a-z, 0-9 and '-', no '-' at either end."
        return Unwelcome(400, "invalid_agent_id", sentence)
    if isinstance(error, IdTaken):
        return Unwelcome(409, "agent_id_taken", f"Agent ID '{wanted}' is already registered")
    return _unstored(error)


def _too_many(message: str, wait_ms: int) -> Unwelcome:
    return Unwelcome(429, "rate_limit", message, retry_after_s=max(1, math.ceil(wait_ms / 1000)))


def _unstored(error: StoreError) -> Unwelcome:
    return Unwelcome(503, "unavailable", f"It could not be stored ({error}). Try again.", retry_after_s=1)
