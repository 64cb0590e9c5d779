"""The WebSocket side: the daemon as an ARC relay, next to small relays without a store on other implementations of WebSockets."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from bench.arc_wire import ArcDialect, open_many
from bench.dialect import Stream
from bench.measure import Metrics, Running, measure_following
from bench.process import read_rss_bytes
from bench.servers import run_arc_peer, run_arc_relay

if TYPE_CHECKING:
    from bench.scenarios import Attempt, Bench

ARC = "agent-relay"
PEERS = {
    "frames": "own frames, no storage",
    "websockets": "websockets",
    "sansio": "uvicorn, sansio",
    "picows": "picows",
}
WINDOW = 1_000
BROADCAST, BROADCAST_WINDOW = 100, 100
ACTIVE_PAIRS, ACTIVE_WINDOW = 500, 10


def arc(bench: Bench) -> None:
    """One to one, one to a hundred, a thousand who all talk, and thousands who only listen."""
    count = bench.sizes.messages // 2
    pair = Stream(0, "writer-0000", ("reader-0000",), count)
    everybody = tuple(f"reader-{number:04d}" for number in range(BROADCAST))
    broadcast = Stream(0, "writer-0000", everybody, max(count // 100, 50), broadcast=True)
    each = max(count // ACTIVE_PAIRS, ACTIVE_WINDOW)
    active = [Stream(number, f"writer-{number:04d}", (f"reader-{number:04d}",), each) for number in range(ACTIVE_PAIRS)]
    _measure_all(bench, "arc", [pair], WINDOW)
    _measure_all(bench, "arc-broadcast", [broadcast], BROADCAST_WINDOW)
    _measure_all(bench, "arc-active", active, ACTIVE_WINDOW)
    _measure_idle(bench)


def _measure_all(bench: Bench, scenario: str, streams: list[Stream], window: int) -> None:
    _repeat(bench, scenario, lambda running: measure_following(bench.crew, running, streams, window))


def _measure_idle(bench: Bench) -> None:
    """Registered and connected, with nothing to say: what each adds to the resident memory, its registration included."""
    count = bench.sizes.idle_websockets

    def measure(running: Running) -> Metrics:
        server, dialect = running.server, running.dialect
        assert isinstance(dialect, ArcDialect)
        dialect.open_receiver("first-one").close()
        before = read_rss_bytes(server.pid)
        with ExitStack() as stack:
            for sock in open_many(dialect, [f"idle-{number:05d}" for number in range(count)]):
                stack.enter_context(sock)
            return {"websocket_kb": (read_rss_bytes(server.pid) - before) / count / 1e3}

    _repeat(bench, "arc-idle", measure, repeats=1)


def _repeat(bench: Bench, scenario: str, measure: Callable[[Running], Metrics], repeats: int | None = None) -> None:
    def attempt(kind: str | None) -> Metrics:
        with run_arc_relay(bench.relay_command) if kind is None else run_arc_peer(kind) as (server, port):
            return measure(Running(server, ArcDialect(port, registers=kind is None), lambda _: []))

    kinds = [kind for kind in PEERS if kind != "picows" or importlib.util.find_spec("picows") is not None]
    attempts: dict[str, Attempt] = {ARC: partial(attempt, None)}
    attempts |= {PEERS[kind]: partial(attempt, kind) for kind in kinds}
    bench.repeat(scenario, attempts, repeats)
