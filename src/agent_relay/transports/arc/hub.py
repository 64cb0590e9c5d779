"""All connections over ARC of one relay: who is here, what they share, and what is looked after once a second for all of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import Any

from agent_relay.ports.clock import Clock
from agent_relay.ports.entropy import Entropy
from agent_relay.ports.names import AgentNames
from agent_relay.ports.service import RelayService
from agent_relay.protocol.arc.answers import encode_answer, encode_error, encode_welcome
from agent_relay.protocol.arc.client_frames import Said
from agent_relay.protocol.arc.codes import ArcCode, ArcProblem, CloseCode
from agent_relay.protocol.states import CloseReason
from agent_relay.protocol.ulid import encode_bits, encode_time
from agent_relay.transports.arc.commands import Commands
from agent_relay.transports.arc.connection import ArcConnection, RemoteArcConnection
from agent_relay.transports.arc.deliveries import Deliveries
from agent_relay.transports.arc.frames import encode_text
from agent_relay.transports.arc.hooks import HookRunner
from agent_relay.transports.arc.registrar import Record, Registrar
from agent_relay.transports.arc.settings import ArcSettings
from agent_relay.transports.pump import Pump
from agent_relay.transports.source import source_of

_LONGEST_ROUND_S = 1.0
_PAUSE_MS = 10_000  # between two rounds
_STOP_S = 0.5  # what connections have for their last words when the daemon stops


class Hub:
    def __init__(
        self, pump: Pump, registrar: Registrar, names: AgentNames, service: RelayService, settings: ArcSettings, clock: Clock,
        entropy: Entropy, hooks: list[HookRunner],
    ) -> None:  # fmt: skip
        self.pump = pump
        self.registrar = registrar
        self.names = names
        self.settings = settings
        self.clock = clock
        self.hooks = hooks
        self.commands = Commands(self, service)
        self.deliveries = Deliveries(registrar.records)
        self.connections: dict[str, ArcConnection] = {}  # the one that speaks for each agent
        self._all: set[ArcConnection] = set()  # also those that are being closed
        self._forgotten = asyncio.Event()  # one of them was
        self._sources: Counter[str] = Counter()
        self._watchers: set[ArcConnection] = set()  # told who comes and goes
        self._random = encode_bits(entropy.bits(60), 12)
        self._count = 0
        self._serial = 0
        self._round: asyncio.TimerHandle | None = None
        self._rounded_ms = 0
        self.is_stopping = False
        names.watch(self._presence_changed)

    # --- coming and going -----------------------------------------------------------------------------------------------

    def count_from(self, address: str) -> int:
        return self._sources[source_of(address)]

    def attach(self, record: Record, transport: asyncio.Transport, address: str) -> ArcConnection:
        """The agent's new connection takes the place of the one it had."""
        self.pump.begin_turn()
        kind = RemoteArcConnection if "/" in address else ArcConnection
        connection = kind(self, record, transport, address)
        before = self.connections.get(record.agent_id)
        self.connections[record.agent_id] = connection
        self._all.add(connection)
        self._sources[source_of(address)] += 1
        if before is not None:
            before.end(CloseCode.SUPERSEDED, "This agent has connected again.", CloseReason.SUPERSEDED)
        if self._round is None:
            self._rounded_ms = self.clock.steady_ms()
            self._go_round()
        return connection

    def joined(self, connection: ArcConnection) -> None:
        for hook in self.hooks:
            hook.joined(connection.agent_id)

    def parted(self, connection: ArcConnection) -> None:
        """It speaks for its agent no longer."""
        if self.connections.get(connection.agent_id) is connection:
            del self.connections[connection.agent_id]
        self._watchers.discard(connection)
        if connection.is_open:
            for hook in self.hooks:
                hook.left(connection.agent_id)

    def forget(self, connection: ArcConnection) -> None:
        """Its socket is closed."""
        if connection in self._all:
            self._all.discard(connection)
            self._forgotten.set()
            source = source_of(connection.address)
            self._sources[source] -= 1
            if not self._sources[source]:
                del self._sources[source]

    def disconnect(self, agent_id: str, message: str) -> None:
        """Its token is good no longer."""
        connection = self.connections.get(agent_id)
        if connection is not None:
            self._turn_out(connection, message)

    def _turn_out(self, connection: ArcConnection, message: str) -> None:
        connection.refuse(ArcProblem(ArcCode.TOKEN_EXPIRED, message))
        connection.end(CloseCode.TOKEN, message, CloseReason.REVOKED)

    async def stop(self) -> None:
        self.is_stopping = True
        if self._round is not None:
            self._round.cancel()
        self.pump.begin_turn()
        for connection in list(self.connections.values()):
            connection.end(CloseCode.SHUTDOWN, "The relay is stopping.", CloseReason.SHUTDOWN)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                while self._all:
                    self._forgotten.clear()
                    await self._forgotten.wait()
        for connection in list(self._all):
            connection.abort()
        for hook in self.hooks:
            hook.stop()

    # --- every second ---------------------------------------------------------------------------------------------------

    def _go_round(self) -> None:
        delay_s = min(_LONGEST_ROUND_S, self.settings.ping_ms / 4000, self.settings.slow_ms / 4000)
        self._round = asyncio.get_running_loop().call_later(delay_s, self._go_round)
        now_ms = self.clock.steady_ms()
        pause_ms, self._rounded_ms = now_ms - self._rounded_ms, now_ms
        if pause_ms >= _PAUSE_MS:  # the daemon was stopped: they are heard first, and nobody was silent for that long
            for connection in self.connections.values():
                connection.heard_ms += pause_ms
                connection.pinged_ms += pause_ms
            return
        for connection in list(self.connections.values()):
            self._look_after(connection, now_ms)

    def _look_after(self, connection: ArcConnection, now_ms: int) -> None:
        settings = self.settings
        if self.registrar.has_expired(connection.record):
            self.pump.begin_turn()
            self._turn_out(connection, "The token has expired.")
        elif self._is_gone(connection, now_ms):
            self.pump.begin_turn()
            connection.end_silent()
        elif connection.stalled_ms(now_ms) >= settings.slow_ms:
            self.pump.begin_turn()
            connection.end_slow()
        elif now_ms - connection.pinged_ms >= settings.ping_ms:
            connection.pinged_ms = now_ms
            connection.ping()

    def _is_gone(self, connection: ArcConnection, now_ms: int) -> bool:
        """Silent for too long, and it was asked in time: where we stood still ourselves, it is asked first."""
        settings, asked_ms = self.settings, connection.pinged_ms
        if now_ms - connection.heard_ms < settings.silence_ms or asked_ms <= connection.heard_ms:
            return False
        return now_ms - asked_ms >= settings.silence_ms - settings.ping_ms

    # --- what is said ---------------------------------------------------------------------------------------------------

    def next_prefix(self) -> str:
        self._serial += 1
        return f"arc_{self._random}{self._serial:x}_"

    def next_id(self, wall_ms: int) -> str:
        """For what the relay itself says; the random part is not that of the messages' ids."""
        self._count += 1
        return f"msg_{encode_time(wall_ms)}{self._random}{encode_bits(self._count, 4)}"

    def encode_welcome(self, connection: ArcConnection) -> bytes:
        settings, now = self.settings, self.clock.wall_ms()
        capabilities = ["broadcast", "direct", "receipt", "subscribe"] + ([] if settings.ephemeral else ["offline"])
        extensions = ["persistence", "presence", *(hook.name for hook in self.hooks)]
        limits = {"max_message_size": settings.max_bytes, "rate_limit": settings.describe_rate()}
        text = encode_welcome(
            self.next_id(now), now, connection.agent_id, settings.name, capabilities, extensions, limits
        )  # fmt: skip
        return encode_text(text)

    def encode_error(self, connection: ArcConnection, problem: ArcProblem) -> bytes:
        now = self.clock.wall_ms()
        text = encode_error(self.next_id(now), now, connection.agent_id, problem.code, problem.message, problem.ref)
        return encode_text(text)

    def answer(self, connection: ArcConnection, kind: str, payload: dict[str, Any], ref: Any = None) -> None:
        """To a client that may have gone meanwhile."""
        if connection.is_open:
            now = self.clock.wall_ms()
            text = encode_answer(self.next_id(now), now, connection.agent_id, kind, payload, ref)
            connection.write(encode_text(text))

    def tell_hooks(self, connection: ArcConnection, said: Said) -> None:
        for hook in self.hooks:
            hook.routed(connection.agent_id, said)

    def tell_presence(self, connection: ArcConnection, *, is_on: bool) -> None:
        change = self._watchers.add if is_on else self._watchers.discard
        change(connection)

    def _presence_changed(self, name: str, is_here: bool) -> None:
        payload = {"event": "join" if is_here else "leave", "agent": name}
        for connection in self._watchers:
            if connection.agent_id != name:
                self.answer(connection, "presence", payload)
