"""The desk where agents register, refresh their token and sign off, over HTTP; and the rights of an administrator."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import asdict

from agent_relay.ports.clock import Clock
from agent_relay.ports.names import AgentNames
from agent_relay.ports.store import StoreError
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import show
from agent_relay.transports.arc.answers import ArcAgent, Freed, Invitation, NewInvitation, Registered, Revoked, Withdrawn
from agent_relay.transports.arc.invitations import Invitations, NotInvited, TooManyInvitations, describe
from agent_relay.transports.arc.limits import Tries
from agent_relay.transports.arc.registrar import BadId, IdTaken, Record, Registrar, Verdict
from agent_relay.transports.arc.settings import HOUR_MS, MINUTE_MS, ArcSettings
from agent_relay.transports.source import source_of

if TYPE_CHECKING:
    from agent_relay.ports.arc import InvitationRow
    from agent_relay.transports.arc.hub import Hub

_NOT_ALLOWED = (
    "Registering needs the API token, as `Authorization: Bearer …`, or an invitation, as `invite`; "
    "the relay's owner makes one with `agent-relay arc invite`."
)


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
    def __init__(
        self, registrar: Registrar, invitations: Invitations, hub: Hub, names: AgentNames, settings: ArcSettings,
        clock: Clock,
    ) -> None:  # fmt: skip
        self._registrar = registrar
        self._invitations = invitations
        self._hub = hub
        self._names = names
        self.settings = settings
        self._clock = clock
        self._registrations = Tries(settings.registrations_per_hour, HOUR_MS)
        self._failures = Tries(settings.failed_auths_per_minute, MINUTE_MS)

    # --- agents ---------------------------------------------------------------------------------------------------------

    def authenticate(self, token: str, address: str, *, connects: bool = False) -> Record:
        """Raises Unwelcome. A good token is let in whatever others tried from the same address."""
        verdict, record = self._registrar.judge(token)
        if record is not None and (verdict is Verdict.GOOD or (verdict is Verdict.REPLACED and connects)):
            return record
        self._note_failure(address)
        if verdict is Verdict.EXPIRED:
            raise Unwelcome(401, "token_expired", "The token has expired; register again under another id.")
        if verdict is Verdict.REPLACED:
            raise Unwelcome(401, "unauthorized", "The token was replaced by a newer one, and only lets in connections.")
        raise Unwelcome(401, "unauthorized", "The token is missing or not known here.")

    def _note_failure(self, address: str) -> None:
        """Raises Unwelcome where there were too many."""
        source, now = source_of(address), self._clock.steady_ms()
        wait_ms = self._failures.wait_ms(source, now)
        if wait_ms:
            raise _too_many("Too many failed attempts from this address.", wait_ms)
        self._failures.add(source, now)

    async def register(self, wanted: str | None, invite: str | None, address: str, *, is_owner: bool) -> Registered:
        """Raises Unwelcome. Those whom the owner lets in are counted apart from everybody else: strangers cannot use up what the
        owner may do."""
        if is_owner:
            return await self._register(wanted, f"owner {source_of(address)}")
        if invite is not None:
            return await self._register_invited(wanted, invite, address)
        if not self.settings.open:
            self._note_failure(address)
            raise Unwelcome(401, "unauthorized", _NOT_ALLOWED)
        return await self._register(wanted, source_of(address))

    async def _register_invited(self, wanted: str | None, invite: str, address: str) -> Registered:
        try:
            used = await self._invitations.use(invite, wanted)
        except NotInvited as refused:
            self._note_failure(address)
            raise Unwelcome(401, "unauthorized", f"{refused} Ask the relay's owner for another one.") from None
        except StoreError as error:
            raise _unstored(error) from None
        try:
            return await self._register(used.agent_id or wanted, f"invited {source_of(address)}")
        except Unwelcome:
            await self._give_back(used)
            raise

    async def _give_back(self, used: InvitationRow) -> None:
        with contextlib.suppress(StoreError):  # the owner can make another one
            await self._invitations.give_back(used)

    async def _register(self, wanted: str | None, source: str) -> Registered:
        now = self._clock.steady_ms()
        wait_ms = self._registrations.wait_ms(source, now)
        if wait_ms:
            raise _too_many("Too many registrations from this address.", wait_ms)
        self._registrations.add(source, now)  # before it is written: many may be under way at once
        try:
            record, token = await self._registrar.register(wanted)
        except (BadId, IdTaken, StoreError) as error:
            self._registrations.take_back(source, now)
            raise _explain(error, wanted) from None
        return _describe_token(record, token)

    async def refresh(self, token: str, address: str) -> Registered:
        record = self.authenticate(token, address)
        try:
            fresh = await self._registrar.refresh(record)
        except StoreError as error:
            raise _unstored(error) from None
        if fresh is None:
            raise Unwelcome(401, "unauthorized", "The token was revoked.")
        return _describe_token(record, fresh)

    async def sign_off(self, token: str, address: str) -> Revoked:
        return await self._revoke(self.authenticate(token, address))

    async def _revoke(self, record: Record) -> Revoked:
        try:
            await self._registrar.revoke(record)
        except StoreError as error:
            raise _unstored(error) from None
        self._hub.disconnect(record.agent_id, "The token was revoked.")
        return Revoked(record.agent_id)

    # --- administration -------------------------------------------------------------------------------------------------

    def list_agents(self) -> list[ArcAgent]:
        return [self._describe(record) for _, record in sorted(self._registrar.records.items())]

    def _describe(self, record: Record) -> ArcAgent:
        row = record.row
        return ArcAgent(
            agent_id=row.agent_id,
            connected=row.agent_id in self._hub.connections,
            registered_at=row.registered_at,
            expires_at=row.expires_at,
            revoked_at=row.revoked_at,
            subscriptions=self._names.followed(row.agent_id),
            trusted=row.agent_id in self.settings.trusted,
        )

    async def revoke(self, agent_id: str) -> Revoked:
        """Raises RelayError."""
        record = self._find(agent_id)
        if record.row.revoked_at is not None:
            raise RelayError(ErrorCode.PERMISSION_DENIED, f"{agent_id} is revoked already.", reason="revoked")
        try:
            return await self._revoke(record)
        except Unwelcome as refusal:
            raise RelayError(ErrorCode.SERVICE_UNAVAILABLE, refusal.message, retry_after_ms=1_000) from None

    async def free(self, agent_id: str) -> Freed:
        """Revokes it where it is not, and lets anybody have the name. Raises RelayError."""
        record = self._find(agent_id)
        if record.row.revoked_at is None:
            await self.revoke(agent_id)
        try:
            await self._registrar.free(record)
        except StoreError as error:
            raise _unavailable(error) from None
        return Freed(agent_id)

    def _find(self, agent_id: str) -> Record:
        record = self._registrar.records.get(agent_id)
        if record is None:
            raise RelayError(ErrorCode.AGENT_NOT_FOUND, f"{show(agent_id, 80)} is not registered.", name=show(agent_id, 80))
        return record

    async def invite(self, agent_id: str | None, uses: int, lasts_ms: int) -> NewInvitation:
        """Raises RelayError."""
        try:
            row, code = await self._invitations.make(agent_id, uses, lasts_ms)
        except TooManyInvitations:
            raise RelayError(
                ErrorCode.RATE_LIMITED, "There are too many open invitations; withdraw some first.", retry_after_ms=60_000
            ) from None
        except StoreError as error:
            raise _unavailable(error) from None
        return NewInvitation(invite=code, **asdict(describe(row)))

    def list_invitations(self) -> list[Invitation]:
        return self._invitations.describe()

    async def withdraw(self, id_: str) -> Withdrawn:
        """Raises RelayError."""
        try:
            found = await self._invitations.withdraw(id_)
        except StoreError as error:
            raise _unavailable(error) from None
        if not found:
            raise RelayError(ErrorCode.AGENT_NOT_FOUND, f"There is no invitation {show(id_, 40)}.", id=show(id_, 40))
        return Withdrawn(id_)


def _unavailable(error: StoreError) -> RelayError:
    return RelayError(ErrorCode.SERVICE_UNAVAILABLE, _unstored(error).message, retry_after_ms=1_000)


def _describe_token(record: Record, token: str) -> Registered:
    return Registered(record.agent_id, token, UNSET if record.row.expires_at is None else record.row.expires_at)


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
