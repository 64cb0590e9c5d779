"""Invitations: how somebody registers who has no API token. Each is good until a moment, for one id or for a number of any."""

from __future__ import annotations

import asyncio
import hmac

from msgspec.structs import replace

from agent_relay.ports.arc import InvitationRow
from agent_relay.ports.clock import Clock
from agent_relay.ports.entropy import Entropy
from agent_relay.protocol.arc.ids import INVITATION_PREFIX, LONGEST_TOKEN
from agent_relay.protocol.ulid import encode_bits
from agent_relay.transports.arc.answers import Invitation
from agent_relay.transports.arc.records import Records, hash_secret

MOST_USES = 10_000
MOST_INVITATIONS = 1_000  # at a time; the owner makes them by hand
_ID_BITS, _ID_LENGTH = 40, 8


class NotInvited(Exception):  # noqa: N818 - named by the condition
    """The text says why."""


class TooManyInvitations(Exception):  # noqa: N818
    pass


class Invitations:
    def __init__(self, records: Records, clock: Clock, entropy: Entropy, rows: list[InvitationRow]) -> None:
        self._records = records
        self._clock = clock
        self._entropy = entropy
        self._rows = {row.id: row for row in rows}
        self._changing = asyncio.Lock()  # a use is written before the next one is looked at

    async def make(self, agent_id: str | None, uses: int, lasts_ms: int) -> tuple[InvitationRow, str]:
        """The invitation and its code, which is shown this once. Raises TooManyInvitations, StoreError."""
        await self._forget_spent()
        if len(self._rows) >= MOST_INVITATIONS:
            raise TooManyInvitations
        code = INVITATION_PREFIX + self._entropy.token()
        now = self._clock.wall_ms()
        id_ = encode_bits(self._entropy.bits(_ID_BITS), _ID_LENGTH).lower()
        row = InvitationRow(id_, hash_secret(code), agent_id, uses, now, now + lasts_ms)
        await self._records.write(row)
        self._rows[id_] = row
        return row, code

    async def use(self, code: str, wanted: str | None) -> InvitationRow:
        """Takes one use of it, durably. Raises NotInvited, StoreError."""
        async with self._changing:
            row = self._find(code)
            if row is None or row.uses_left < 1:
                raise NotInvited("The invitation is unknown or used up.")
            if row.expires_at <= self._clock.wall_ms():
                raise NotInvited("The invitation has expired.")
            if row.agent_id is not None and wanted not in {None, row.agent_id}:
                raise NotInvited("The invitation is for another id.")
            left = replace(row, uses_left=row.uses_left - 1)
            await self._records.write(left)
            self._rows[row.id] = left
            return left

    async def give_back(self, used: InvitationRow) -> None:
        """The registration came to nothing."""
        async with self._changing:
            row = self._rows.get(used.id)
            if row is not None:
                row = replace(row, uses_left=row.uses_left + 1)
                await self._records.write(row)
                self._rows[row.id] = row

    async def withdraw(self, id_: str) -> bool:
        """False: there is none. Raises StoreError."""
        async with self._changing:
            row = self._rows.get(id_)
            if row is None:
                return False
            await self._records.erase(row)
            del self._rows[id_]
            return True

    def describe(self) -> list[Invitation]:
        """Those that can be used, oldest first; no code is shown."""
        return [describe(row) for row in sorted(self._rows.values(), key=lambda row: row.made_at) if self._is_good(row)]

    def _find(self, code: str) -> InvitationRow | None:
        if not 0 < len(code) <= LONGEST_TOKEN:
            return None
        wanted = hash_secret(code)
        return next((row for row in self._rows.values() if hmac.compare_digest(row.code_hash, wanted)), None)

    def _is_good(self, row: InvitationRow) -> bool:
        return row.uses_left > 0 and row.expires_at > self._clock.wall_ms()

    async def _forget_spent(self) -> None:
        for row in [row for row in self._rows.values() if not self._is_good(row)]:
            await self.withdraw(row.id)


def describe(row: InvitationRow) -> Invitation:
    return Invitation(row.id, row.agent_id, uses_left=row.uses_left, made_at=row.made_at, expires_at=row.expires_at)
