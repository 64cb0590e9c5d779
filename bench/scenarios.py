"""What is measured: one function a scenario, each on fresh servers, each leaving rows of numbers or of failures."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median

from bench.arc import arc
from bench.dialect import FailedRunError, Stream
from bench.measure import Metrics, Running, forwarder, measure_load, measure_turns, nats, redis, relay
from bench.process import read_rss_bytes
from bench.relay_wire import RelayDialect, open_agent
from bench.servers import run_relay, wait_until
from bench.terminal import measure_terminal
from bench.worker import Crew

RELAY, FORWARDER, NATS, NATS_SYNC = "agent-relay", "bare forwarder", "JetStream", "JetStream, sync always"
REDIS, REDIS_SYNC = "Redis Streams", "Redis Streams, always"
TMUX, PTY = "agent-relay in tmux", "agent-relay in a PTY"
WINDOW = 1_000
PAIRS, PAIR_WINDOW = 50, 100
FAN_OUT, FAN_OUT_WINDOW = 50, 100
STEADY_RATE = 5_000
GROWTH_PAIRS, GROWTH_WINDOW = 5, 200
_NATS_SYNC_SHARE = 20  # it is that much slower: a twentieth of the messages keeps its run as short as the others


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything. `messages` is the pipelined run's; the others follow it."""

    messages: int = 100_000
    repeats: int = 3
    starts: int = 5
    idle_connections: int = 1_000
    idle_websockets: int = 5_000
    typed: int = 20  # messages through terminals, each way of running them
    budget_s: float = 120.0  # once spent, every scenario still has its first round but no further one

    @property
    def turns(self) -> int:
        return max(self.messages // 50, 100)

    @property
    def fan_out(self) -> int:
        return max(self.messages // 25, 200)

    @property
    def steady(self) -> int:
        return max(self.messages // 5, STEADY_RATE)

    @property
    def growth(self) -> int:
        return max(self.messages * 2 // 5, 5_000)


QUICK = Sizes(messages=5_000, repeats=1, starts=2, typed=3, idle_websockets=500)


@dataclass(slots=True)
class Row:
    scenario: str
    subject: str
    metrics: Metrics = field(default_factory=dict)
    failure: str = ""  # a failed run has no numbers
    rounds: int = 1


Attempt = Callable[[], Metrics]


@dataclass(slots=True)
class Bench:
    crew: Crew
    relay_command: Sequence[str]
    nats_binary: str | None  # None: it is left out
    redis_binary: str | None  # the same
    sizes: Sizes
    tell: Callable[[str], None]
    rows: list[Row] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def repeat(self, scenario: str, attempts: dict[str, Attempt], repeats: int | None = None) -> None:
        """Round by round through all subjects, so that a slow minute of the machine hits them alike; medians are kept."""
        found: dict[str, list[Metrics]] = {subject: [] for subject in attempts}
        failed: dict[str, str] = {}
        for turn in range(repeats or self.sizes.repeats):
            if turn and time.monotonic() - self.began > self.sizes.budget_s:
                break
            for subject, attempt in attempts.items():
                if subject in failed:
                    continue
                self.tell(f"{scenario}: {subject}")
                try:
                    found[subject].append(attempt())
                except FailedRunError as error:
                    failed[subject] = str(error)
        for subject, runs in found.items():
            metrics = {} if subject in failed else _medians(runs)
            self.rows.append(Row(scenario, subject, metrics, failed.get(subject, ""), len(runs)))


def _medians(runs: Sequence[Metrics]) -> Metrics:
    """Of every number that each of the runs could tell."""
    return {name: median(run[name] for run in runs) for name in runs[0] if all(name in run for run in runs)}


def pipelined(bench: Bench) -> None:
    """One sender, one recipient, at most 1,000 messages unanswered."""
    count = bench.sizes.messages
    binary = bench.nats_binary

    def measure_relay() -> Metrics:
        with relay(bench.relay_command) as running:
            return measure_load(bench.crew, running, [_pair(0, count)], WINDOW)

    def measure_forwarder() -> Metrics:
        with forwarder() as running:
            return measure_load(bench.crew, running, [_pair(0, count)], WINDOW)

    def measure_nats(sync_always: bool) -> Metrics:
        assert binary is not None
        share = _NATS_SYNC_SHARE if sync_always else 1
        with nats(binary, sync_always) as running:
            return measure_load(bench.crew, running, [_pair(0, max(count // share, WINDOW))], WINDOW)

    def measure_redis(sync: str) -> Metrics:
        assert bench.redis_binary is not None
        with redis(bench.redis_binary, sync) as running:
            return measure_load(bench.crew, running, [_pair(0, count)], WINDOW)

    attempts: dict[str, Attempt] = {RELAY: measure_relay}
    if binary is not None:
        attempts |= {NATS: lambda: measure_nats(False), NATS_SYNC: lambda: measure_nats(True)}
    if bench.redis_binary is not None:
        attempts |= {REDIS: lambda: measure_redis("everysec"), REDIS_SYNC: lambda: measure_redis("always")}
    bench.repeat("pipelined", attempts | {FORWARDER: measure_forwarder})


def pairs(bench: Bench) -> None:
    """Fifty senders, each with a recipient of its own."""
    each = max(bench.sizes.messages // PAIRS, PAIR_WINDOW)

    def measure() -> Metrics:
        with relay(bench.relay_command) as running:
            return measure_load(bench.crew, running, [_pair(number, each) for number in range(PAIRS)], PAIR_WINDOW)

    bench.repeat("pairs", {RELAY: measure})


def fan_out(bench: Bench) -> None:
    """One sender broadcasts, fifty recipients get and acknowledge every message."""
    names = tuple(f"reader-{number:02d}" for number in range(FAN_OUT))

    def measure() -> Metrics:
        with relay(bench.relay_command) as running:
            stream = Stream(0, "writer-0000", names, bench.sizes.fan_out, broadcast=True)
            return measure_load(bench.crew, running, [stream], FAN_OUT_WINDOW)

    bench.repeat("fan-out", {RELAY: measure})


def turns(bench: Bench) -> None:
    """One message at a time: the next is sent when the last has been answered and delivered."""
    count = bench.sizes.turns

    def measure_relay() -> Metrics:
        with relay(bench.relay_command) as running:
            return measure_turns(bench.crew, running, _pair(0, count))

    def measure_nats(sync_always: bool) -> Metrics:
        assert bench.nats_binary is not None
        with nats(bench.nats_binary, sync_always) as running:
            return measure_turns(bench.crew, running, _pair(0, count))

    def measure_redis(sync: str) -> Metrics:
        assert bench.redis_binary is not None
        with redis(bench.redis_binary, sync) as running:
            return measure_turns(bench.crew, running, _pair(0, count))

    attempts: dict[str, Attempt] = {RELAY: measure_relay}
    if bench.nats_binary is not None:
        attempts |= {NATS: lambda: measure_nats(False), NATS_SYNC: lambda: measure_nats(True)}
    if bench.redis_binary is not None:
        attempts |= {REDIS: lambda: measure_redis("everysec"), REDIS_SYNC: lambda: measure_redis("always")}
    bench.repeat("turns", attempts, repeats=1)


def steady(bench: Bench) -> None:
    """5,000 messages a second whatever comes back, and how long each takes to its recipient."""

    def measure_steady(running: Running) -> Metrics:
        return measure_load(bench.crew, running, [_pair(0, bench.sizes.steady)], rate=STEADY_RATE)

    def measure_relay() -> Metrics:
        with relay(bench.relay_command) as running:
            return measure_steady(running)

    def measure_forwarder() -> Metrics:
        with forwarder() as running:
            return measure_steady(running)

    bench.repeat("steady", {RELAY: measure_relay, FORWARDER: measure_forwarder})


def start(bench: Bench) -> None:
    """From exec to the first WELCOME, on an empty state directory."""

    def measure() -> Metrics:
        with run_relay(bench.relay_command, wait=False) as (server, path):
            wait_until(lambda: open_agent(path, "first"), server).close()
            return {"start_s": (time.monotonic_ns() - server.started_ns) / 1e9}

    bench.repeat("start", {RELAY: measure}, repeats=bench.sizes.starts)


def memory(bench: Bench) -> None:
    """Resident memory of the daemon with nobody connected for long, and what every idle connection adds."""
    count = bench.sizes.idle_connections

    def measure() -> Metrics:
        with run_relay(bench.relay_command) as (server, path):
            open_agent(path, "first").close()
            idle_bytes = read_rss_bytes(server.pid)
            with _idle_agents(path, count):
                grown_bytes = read_rss_bytes(server.pid) - idle_bytes
            return {"idle_mb": idle_bytes / 1e6, "connection_kb": grown_bytes / count / 1e3}

    bench.repeat("memory", {RELAY: measure}, repeats=1)


def growth(bench: Bench) -> None:
    """The same traffic among 10 agents, alone and with idle ones around it: what a message costs the daemon."""
    each = bench.sizes.growth // GROWTH_PAIRS
    crowd = bench.sizes.idle_connections - 2 * GROWTH_PAIRS

    def measure(idle: int) -> Metrics:
        with relay(bench.relay_command) as running, ExitStack() as stack:
            assert isinstance(running.dialect, RelayDialect)
            stack.enter_context(_idle_agents(running.dialect.path, idle))
            return measure_load(bench.crew, running, [_pair(number, each) for number in range(GROWTH_PAIRS)], GROWTH_WINDOW)

    few, many = f"{RELAY}, 10 agents", f"{RELAY}, {crowd + 2 * GROWTH_PAIRS:,} agents"
    bench.repeat("growth", {few: lambda: measure(0), many: lambda: measure(crowd)})


def terminal(bench: Bench) -> None:
    """What an agent writes on its screen until another has it at its prompt, both of them idle."""
    attempts: dict[str, Attempt] = {PTY: lambda: measure_terminal(bench.relay_command, "pty", bench.sizes.typed)}
    if shutil.which("tmux") is not None:
        attempts = {TMUX: lambda: measure_terminal(bench.relay_command, "tmux", bench.sizes.typed)} | attempts
    bench.repeat("terminal", attempts, repeats=1)


SCENARIOS: dict[str, Callable[[Bench], None]] = {
    "pipelined": pipelined,
    "pairs": pairs,
    "fan-out": fan_out,
    "turns": turns,
    "steady": steady,
    "start": start,
    "memory": memory,
    "growth": growth,
    "terminal": terminal,
    "arc": arc,
}


def _pair(number: int, messages: int) -> Stream:
    return Stream(number, f"writer-{number:04d}", (f"reader-{number:04d}",), messages)


@contextmanager
def _idle_agents(path: str, count: int) -> Iterator[None]:
    with ExitStack() as stack:
        for number in range(count):
            stack.enter_context(open_agent(path, f"idle-{number:05d}"))
        yield
