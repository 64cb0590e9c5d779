"""The registrar: registered agents and the tokens that show them.

Tokens are known by their hash alone; an id is given out once, unless the owner frees it.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from enum import Enum, auto

from msgspec.structs import replace

from agent_relay.ports.arc import ArcRow
from agent_relay.ports.clock import Clock
from agent_relay.ports.entropy import Entropy
from agent_relay.ports.names import AgentNames
from agent_relay.ports.store import StoreError
from agent_relay.protocol.arc.ids import LONGEST_TOKEN, TOKEN_PREFIX, is_agent_id
from agent_relay.protocol.names import is_reserved
from agent_relay.protocol.ulid import encode_bits
from agent_relay.transports.arc.limits import MessageRate
from agent_relay.transports.arc.records import Records, hash_secret, until_done
from agent_relay.transports.arc.settings import ArcSettings

_PICKED_BITS, _PICKED_LENGTH = 40, 8
_PICKS = 20  # ids are tried until one is free; each is free with near certainty


class Verdict(Enum):
    GOOD = auto()
    REPLACED = auto()  # by a refresh, a moment ago: good for connecting, and for nothing else
    EXPIRED = auto()
    UNKNOWN = auto()


class IdTaken(Exception):  # noqa: N818 - named by the condition
    pass


class BadId(Exception):  # noqa: N818
    pass


class Record:
    """A registration, and what a running relay needs beside it."""

    __slots__ = ("rate", "row")

    def __init__(self, row: ArcRow, rate: MessageRate) -> None:
        self.row = row
        self.rate = rate  # over all its connections

    @property
    def agent_id(self) -> str:
        return self.row.agent_id


class Registrar:
    def __init__(
        self, saved: Records, names: AgentNames, settings: ArcSettings, clock: Clock, entropy: Entropy,
        run: Callable[[Callable[[], None]], None],
    ) -> None:  # fmt: skip
        self._saved = saved
        self._names = names
        self._settings = settings
        self._clock = clock
        self._entropy = entropy
        self._run = run  # a turn of the relay's
        self.records: dict[str, Record] = {}
        self._by_hash: dict[str, Record] = {}
        self._changing = asyncio.Lock()  # one change of a registration sees what the one before it left

    def start(self, rows: list[ArcRow]) -> None:
        for row in rows:
            self._remember(Record(row, self._make_rate(row.agent_id)))
        current = [row.agent_id for row in rows if row.revoked_at is None]
        revoked = [row.agent_id for row in rows if row.revoked_at is not None]
        self._run(lambda: self._names.adopt(current, revoked))

    def _make_rate(self, agent_id: str) -> MessageRate:
        settings = self._settings
        limits = (0, 0) if agent_id in settings.trusted else (settings.rate_limit, settings.hourly_limit)
        return MessageRate(*limits, self._clock.steady_ms())

    def _remember(self, record: Record) -> None:
        self.records[record.agent_id] = record
        for token_hash in (record.row.token_hash, record.row.old_token_hash):
            if token_hash is not None and record.row.revoked_at is None:
                self._by_hash[token_hash] = record

    # --- who is it ------------------------------------------------------------------------------------------------------

    def judge(self, token: str) -> tuple[Verdict, Record | None]:
        if not 0 < len(token) <= LONGEST_TOKEN:
            return Verdict.UNKNOWN, None
        token_hash = hash_secret(token)
        record = self._by_hash.get(token_hash)
        if record is None or record.row.revoked_at is not None:
            return Verdict.UNKNOWN, None
        row = record.row
        if hmac.compare_digest(token_hash, row.token_hash):
            expires_at, verdict = row.expires_at, Verdict.GOOD
        elif hmac.compare_digest(token_hash, row.old_token_hash or ""):
            expires_at, verdict = row.old_expires_at, Verdict.REPLACED
        else:
            return Verdict.UNKNOWN, None
        if expires_at is not None and expires_at <= self._clock.wall_ms():
            return Verdict.EXPIRED, record
        return verdict, record

    def is_arc(self, name: str) -> bool:
        return name in self.records

    def registered_at(self, name: str) -> int:
        return self.records[name].row.registered_at

    def has_expired(self, record: Record) -> bool:
        expires_at = record.row.expires_at
        return expires_at is not None and expires_at <= self._clock.wall_ms()

    # --- changes --------------------------------------------------------------------------------------------------------

    async def register(self, wanted: str | None) -> tuple[Record, str]:
        """The registration and its token, which is shown this once. Raises BadId, IdTaken, StoreError."""
        agent_id = self._claim(wanted) if wanted is not None else self._pick()
        token = TOKEN_PREFIX + self._entropy.token()
        now = self._clock.wall_ms()
        row = ArcRow(agent_id, hash_secret(token), now, self._expiry(now))
        try:
            await self._saved.write(row)
            await self._enlist(agent_id)
        except StoreError:
            self._run(lambda: self._names.abandon(agent_id))
            raise
        record = Record(row, self._make_rate(agent_id))
        self._remember(record)
        return record, token

    def _claim(self, wanted: str) -> str:
        if not is_agent_id(wanted):
            raise BadId
        if is_reserved(wanted) or wanted in self.records or not self._claimed(wanted):
            raise IdTaken
        return wanted

    def _claimed(self, wanted: str) -> bool:
        answers: list[bool] = []
        self._run(lambda: answers.append(self._names.claim(wanted)))
        return answers[0]

    def _pick(self) -> str:
        for _ in range(_PICKS):
            picked = f"agent-{encode_bits(self._entropy.bits(_PICKED_BITS), _PICKED_LENGTH).lower()}"
            if picked not in self.records and self._claimed(picked):
                return picked
        raise IdTaken

    def _expiry(self, now: int) -> int | None:
        ttl_ms = self._settings.token_ttl_ms
        return None if ttl_ms is None else now + ttl_ms

    async def refresh(self, record: Record) -> str | None:
        """A new token; the one before is good for a little longer. None: it was revoked meanwhile."""
        token = TOKEN_PREFIX + self._entropy.token()
        now = self._clock.wall_ms()
        grace_ends = now + self._settings.token_grace_ms
        async with self._changing:
            before = record.row
            if before.revoked_at is not None:
                return None
            row = replace(
                before, token_hash=hash_secret(token), expires_at=self._expiry(now), old_token_hash=before.token_hash,
                old_expires_at=grace_ends if before.expires_at is None else min(grace_ends, before.expires_at),
            )  # fmt: skip
            await self._saved.write(row)
            self._change(record, row)
        return token

    async def revoke(self, record: Record) -> None:
        async with self._changing:
            row = replace(record.row, revoked_at=self._clock.wall_ms())
            await self._saved.write(row)
            self._change(record, row)
        self._run(lambda: self._names.retire(record.agent_id))

    def _change(self, record: Record, row: ArcRow) -> None:
        for token_hash in (record.row.token_hash, record.row.old_token_hash):
            self._by_hash.pop(token_hash or "", None)
        record.row = row
        self._remember(record)

    async def free(self, record: Record) -> None:
        """Of a revoked registration: anybody may register the id again, or say HELLO with it. Raises StoreError, and can be
        done again."""
        async with self._changing:
            await until_done(lambda done: self._run(lambda: self._names.free(record.agent_id, done)))
            await self._saved.erase(record.row)  # last: as long as the row is there this can be done once more
            if self.records.get(record.agent_id) is record:
                del self.records[record.agent_id]

    async def _enlist(self, agent_id: str) -> None:
        await until_done(lambda done: self._run(lambda: self._names.register(agent_id, done)))
