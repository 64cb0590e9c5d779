"""Agents of all hosts, at the seat: `ports.AgentService` that does what is to be done here itself, and asks the other hosts for
the rest. The book about them is a document of the store, so that the next seat has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from agent_relay.cluster.asks import Asks
from agent_relay.core.relay import Relay
from agent_relay.daemon.cluster.host_agents import HostAgents
from agent_relay.daemon.logs import logger
from agent_relay.ports.agents import SessionRow
from agent_relay.protocol.errors import ErrorCode, RelayError

BOOK = "sessions"
START, STOP, ADOPT, RUNS = "start", "stop", "adopt", "runs"
_NOW_AND_THEN_MS = 10_000
_ONCE_MS = 0  # what is told is true when it is said; a repetition would end an agent that was started since

Post = Callable[[Callable[[], None]], None]
_Start = tuple[SessionRow, dict[str, str], str]  # the agent, its variables, and the host of whoever wants it
_Stop = tuple[str, bool]  # the session, and whether it is ended by force


class ClusterAgents:
    """`post` brings an answer into a turn of the core."""

    def __init__(self, host: str, local: HostAgents, asks: Asks, relay: Relay, post: Post) -> None:
        self._host = host
        self._local = local
        self._asks = asks
        self._relay = relay
        self._post = post
        self._saved = b""
        self._starts: list[tuple[str, str, bytes]] = []  # session, host, question: sent when the book is durable

    def load(self, documents: Mapping[str, bytes]) -> list[SessionRow]:
        self._saved = documents.get(BOOK, b"")
        try:
            return msgspec.json.decode(self._saved or b"[]", type=list[SessionRow])
        except msgspec.MsgspecError as error:
            logger.warning("sessions_unreadable", extra={"relay_fields": {"error": str(error)}})
            return []

    # --- ports.AgentService -----------------------------------------------------------------------------------------------

    def start(self, session: SessionRow, environment: Mapping[str, str]) -> None:
        if session.host == self._host:
            self._local.start(session, environment)
            return
        body = msgspec.msgpack.encode((msgspec.structs.replace(session, task=None), dict(environment), session.asked_on))
        self._starts.append((session.id, session.host, body))

    def adopt(self, session: SessionRow) -> None:
        """A host says by itself what runs there; it only may not know the process."""
        if session.host == self._host:
            self._local.adopt(session)
        else:
            self._asks.ask(session.host, ADOPT, msgspec.msgpack.encode(session), lambda _: None)

    def stop(self, session: SessionRow, *, force: bool) -> None:
        if session.host == self._host:
            self._local.stop(session.id, force=force)
            return
        body = msgspec.msgpack.encode((session.id, force))
        self._asks.ask(session.host, STOP, body, lambda said: self._refused(session.id, said))

    def save(self, sessions: Sequence[SessionRow]) -> None:
        content = msgspec.json.encode(sessions)
        if content != self._saved:
            self._saved = content
            self._relay.keep_document(BOOK, content, self._send_starts)

    def _send_starts(self) -> None:
        starts, self._starts = self._starts, []
        for session_id, host, body in starts:
            self._asks.ask(host, START, body, lambda said, id_=session_id: self._refused(id_, said))  # type: ignore[misc]

    def _refused(self, session_id: str, said: bytes | RelayError) -> None:
        if isinstance(said, RelayError):
            self._post(lambda: self._relay.spawning.refused(session_id, said))

    # --- what hosts say ---------------------------------------------------------------------------------------------------

    def hear_runs(self, host: str, rows: Sequence[SessionRow], told: Callable[[], None]) -> None:
        """All that a host has to tell of its agents. `told`: it was heard."""

        def hear() -> None:
            self._relay.spawning.hear_runs(host, rows)
            told()

        self._post(hear)


class RunsTelling:
    """Tells the seat what runs on this host: when something has changed, when the seat has moved or has not answered, and now
    and then."""

    def __init__(self, local: HostAgents, asks: Asks, host: str, now: int) -> None:
        self._local = local
        self._asks = asks
        self._host = host
        self._seat = ""
        self._is_under_way = False
        self._now_and_then_at = now

    def clock_says(self, now: int, seat: str, here: ClusterAgents | None) -> None:
        """`here`: the agents of all hosts, while this one has the seat."""
        if seat != self._seat or now >= self._now_and_then_at:
            self._seat = seat
            self._now_and_then_at = now + _NOW_AND_THEN_MS
            self._local.has_news = True
        if not self._local.has_news or self._is_under_way or not seat or (seat == self._host and here is None):
            return
        self._local.has_news, self._is_under_way = False, True
        rows = [msgspec.structs.replace(row) for row in self._local.rows]

        def told(said: bytes | RelayError) -> None:
            self._is_under_way = False
            if isinstance(said, RelayError):
                self._local.has_news = True
            else:
                self._local.forget(rows)

        if here is not None:
            here.hear_runs(self._host, rows, lambda: told(b""))
        else:
            self._asks.ask(seat, RUNS, msgspec.msgpack.encode(rows), told, _ONCE_MS)


class Allows(Protocol):
    def __call__(self, host: str) -> bool:
        """Whether people of that host may control what runs here."""
        ...


def answer_for(local: HostAgents, asks: Asks, host: str, is_seat: Callable[[str], bool], allows: Allows) -> None:
    """This host does what the seat asks of it, as far as its own owner allows it; nobody else is answered."""

    def start(asker: str, body: bytes, told: Callable[[bytes | RelayError], None]) -> None:
        if not is_seat(asker):
            return
        session, environment, asked_on = msgspec.msgpack.decode(body, type=_Start)
        if session.host != host:
            raise RelayError(ErrorCode.INVALID_TARGET, f"This is host {host}, and not {session.host}.", host=host)
        if asked_on != host and not allows(asked_on):
            raise RelayError(
                ErrorCode.PERMISSION_DENIED, f"Host {host} lets nobody on host {asked_on} start agents. The owner of {host} can "
                f"allow it: add {asked_on} to cluster_control there.",
                reason="host_control", host=host, setting="cluster_control", value=asked_on,
            )  # fmt: skip
        local.start(session, environment)
        told(b"")

    def stop(asker: str, body: bytes, told: Callable[[bytes | RelayError], None]) -> None:
        if is_seat(asker):
            session_id, is_forced = msgspec.msgpack.decode(body, type=_Stop)
            local.stop(session_id, force=is_forced)
            told(b"")

    def adopt(asker: str, body: bytes, told: Callable[[bytes | RelayError], None]) -> None:
        if is_seat(asker):
            local.adopt(msgspec.msgpack.decode(body, type=SessionRow))
            told(b"")

    for kind, handler in ((START, start), (STOP, stop), (ADOPT, adopt)):
        asks.answer(kind, handler)
