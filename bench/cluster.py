"""What several hosts cost and how fast they are, beside one host alone and beside bare JetStream in the same run.

    python -m bench.cluster                             # everything, about ten minutes
    python -m bench.cluster --quick                     # everything once, small: a smoke test, not a measurement
    python -m bench.cluster --only loads --repeats 3
    python -m bench.cluster --json bench/cluster.json   # the figures that docs/scale.md computes with

All hosts and NATS servers run on this machine, over loopback: CPU is what each needs, throughput is what they have to share.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.cluster_faults import FAULTS, measure_pause
from bench.cluster_loads import (
    Stage,
    hold_agents,
    measure_bytes,
    measure_idle,
    measure_stage,
    measure_turns,
    stage_edges,
    stage_engine,
    stage_everywhere,
    stage_seat,
)
from bench.cluster_report import format_cluster_report
from bench.cluster_servers import run_cluster, run_engine
from bench.dialect import FailedRunError, Stream
from bench.measure import Metrics
from bench.measure import relay as run_alone
from bench.process import describe_machine, raise_file_limit, read_cpu_s
from bench.servers import find_nats, find_relay
from bench.worker import Crew

README = Path(__file__).with_name("README.md")
_BEGIN, _END = "<!-- cluster results -->", "<!-- end of cluster results -->"
ALONE, BARE, BARE_SYNC = "one host alone", "bare JetStream, 3 replicas", "bare JetStream, 3 replicas, sync always"
CLUSTER, CLUSTER_SYNC = "4 hosts", "4 hosts, sync always"
HOSTS, CROWD_HOSTS = 4, 10
WINDOW, FAN_OUT, FAN_OUT_WINDOW, PAIRS, PAIR_WINDOW = 1_000, 48, 100, 50, 20


@dataclass(frozen=True, slots=True)
class Sizes:
    messages: int = 50_000
    slow_messages: int = 4_000  # for bare JetStream that flushes each one
    turns: int = 500
    broadcasts: int = 1_000
    agents: int = 1_000
    idle_s: float = 20.0
    repeats: int = 3
    budget_s: float = 300.0  # once spent, no further round begins


QUICK = Sizes(messages=3_000, slow_messages=1_000, turns=50, broadcasts=60, agents=60, idle_s=1.0, repeats=1)


@dataclass(slots=True)
class Bench:
    crew: Crew
    command: list[str]
    nats: str
    sizes: Sizes
    found: dict[str, dict[str, list[Metrics]]] = field(default_factory=dict)  # by scenario and subject, a round each
    failures: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    streams: int = 0

    def note(self, scenario: str, subject: str, attempt: Callable[[], Metrics]) -> None:
        print(f"{time.monotonic() - self.began:4.0f} s  {scenario}: {subject}", file=sys.stderr, flush=True)
        try:
            self.found.setdefault(scenario, {}).setdefault(subject, []).append(attempt())
        except FailedRunError as error:
            self.failures.append(f"{scenario}, {subject}: {error}")

    @contextmanager
    def trying(self, subject: str) -> Iterator[None]:
        """Servers that do not start fail their subject, not the run."""
        try:
            yield
        except FailedRunError as error:
            self.failures.append(f"{subject}: {error}")

    def pair(self, messages: int) -> Stream:
        """Names that no run before had: each stream is counted from one."""
        self.streams += 1
        return Stream(self.streams, f"writer-{self.streams:04d}", (f"reader-{self.streams:04d}",), messages)

    def medians(self) -> dict[str, dict[str, Metrics]]:
        return {
            scenario: {
                subject: {name: median(run[name] for run in runs) for name in runs[0]} for subject, runs in subjects.items()
            }
            for scenario, subjects in self.found.items()
        }

    def rounds(self) -> Iterator[int]:
        began = time.monotonic()
        for turn in range(self.sizes.repeats):
            if turn == 0 or time.monotonic() - began < self.sizes.budget_s:
                yield turn


def loads(bench: Bench) -> None:
    """Pipelined, one at a time, and fan-out; all subjects take turns, so that a slow minute of the machine hits them alike."""
    for _ in bench.rounds():
        with bench.trying(ALONE), run_alone(bench.command) as running:
            _load_relay(bench, ALONE, Stage(running.dialect, {"seat": [running.server.pid]}), None)
        for subject, sync in ((BARE, False), (BARE_SYNC, True)):
            with bench.trying(subject), run_engine(bench.nats, sync) as nodes:
                messages = bench.sizes.slow_messages if sync else bench.sizes.messages
                stage, stream = stage_engine(nodes), bench.pair(messages)
                bench.note("pipelined", subject, lambda: measure_stage(bench.crew, stage, [stream], WINDOW))  # noqa: B023
            with bench.trying(subject), run_engine(bench.nats, sync) as nodes:
                stage, stream = stage_engine(nodes), bench.pair(bench.sizes.turns)
                bench.note("turns", subject, lambda: measure_turns(bench.crew, stage, stream))  # noqa: B023
        for subject, sync in ((CLUSTER, False), (CLUSTER_SYNC, True)):
            with bench.trying(subject), run_cluster(bench.command, bench.nats, sync, HOSTS) as cluster:
                _load_relay(bench, subject, stage_everywhere(cluster, 3), stage_edges(cluster))
                seat, stream = stage_seat(cluster), bench.pair(bench.sizes.turns)
                bench.note("turns", f"{subject}, at the seat", lambda: measure_turns(bench.crew, seat, stream))  # noqa: B023


def _load_relay(bench: Bench, subject: str, everywhere: Stage, edges: Stage | None) -> None:
    crew, sizes = bench.crew, bench.sizes
    names = tuple(f"listener-{number:02d}" for number in range(FAN_OUT))
    bench.streams += 1
    # First, while nobody else is known: a broadcast is for everybody.
    broadcast = Stream(bench.streams, f"caller-{bench.streams:04d}", names, sizes.broadcasts, broadcast=True)
    bench.note("fan-out", subject, lambda: measure_stage(crew, everywhere, [broadcast], FAN_OUT_WINDOW))
    stage = edges or everywhere
    pipelined, turns = bench.pair(sizes.messages), bench.pair(sizes.turns)
    bench.note("pipelined", subject, lambda: measure_stage(crew, stage, [pipelined], WINDOW))
    suffix = ", edge to edge" if edges else ""
    bench.note("turns", f"{subject}{suffix}", lambda: measure_turns(crew, stage, turns))


def idle(bench: Bench) -> None:
    """Nobody connected; and what a message adds to the log, the links and the copies."""
    for _ in bench.rounds():
        with bench.trying("idle"), run_cluster(bench.command, bench.nats, True, HOSTS) as cluster:
            bench.note("idle", CLUSTER_SYNC, lambda: measure_idle(cluster, bench.sizes.idle_s))
            stream = bench.pair(bench.sizes.messages)
            bench.note("bytes", CLUSTER_SYNC, lambda: measure_bytes(bench.crew, cluster, [stream], WINDOW))  # noqa: B023


def crowd(bench: Bench) -> None:
    """1,000 agents over 10 daemons, with the heartbeat that is the default; idle, and 50 pairs of them talking."""
    sizes = bench.sizes
    many = f"{sizes.agents:,} agents on {CROWD_HOSTS} hosts"
    each = max(sizes.messages // PAIRS, PAIR_WINDOW)
    with bench.trying("crowd"), run_cluster(bench.command, bench.nats, True, CROWD_HOSTS, "--heartbeat-ms", "5000") as cluster:
        bench.note("crowd", f"nobody on {CROWD_HOSTS} hosts", lambda: measure_idle(cluster, sizes.idle_s))
        seat = cluster.hosts[0].server.pid
        before_s = read_cpu_s(seat)
        with hold_agents(cluster.hosts, sizes.agents):
            joined = {"seat µs/join": (read_cpu_s(seat) - before_s) / sizes.agents * 1e6}
            bench.note("crowd", many, lambda: measure_idle(cluster, sizes.idle_s) | joined)
            stage = stage_everywhere(cluster, CROWD_HOSTS)
            streams = [bench.pair(each) for _ in range(PAIRS)]
            bench.note("crowd load", many, lambda: measure_stage(bench.crew, stage, streams, PAIR_WINDOW))


def faults(bench: Bench) -> None:
    for _ in bench.rounds():
        for fault in FAULTS:
            with bench.trying(fault), run_cluster(bench.command, bench.nats, True, 3) as cluster:
                bench.note("pause", fault, lambda: {"pause s": measure_pause(cluster, fault)})  # noqa: B023


SCENARIOS: dict[str, Callable[[Bench], None]] = {"loads": loads, "idle": idle, "crowd": crowd, "faults": faults}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description="Measures several hosts as one relay.")
    parser.add_argument("--quick", action="store_true", help="everything small and once: shows that it works, not how fast")
    parser.add_argument("--only", action="append", choices=SCENARIOS, metavar="SCENARIO", help=f"one of {', '.join(SCENARIOS)}")
    parser.add_argument("--repeats", type=int, help="rounds of each scenario (3)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to a file as well")
    parser.add_argument("--write-readme", action="store_true", help="put the results into bench/README.md")
    options = parser.parse_args(arguments)
    nats = find_nats()
    if nats is None:
        parser.error("nats-server is not installed: pip install 'agent-relay[cluster]'")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # servers and workers are stopped on the way out
    raise_file_limit()
    machine = f"{describe_machine(tempfile.gettempdir())}, Python {sys.version.split()[0]}"
    sizes = QUICK if options.quick else Sizes()
    if options.repeats:
        sizes = Sizes(repeats=options.repeats) if not options.quick else sizes
    with Crew() as crew:
        bench = Bench(crew, find_relay(), nats, sizes)
        for name in options.only or SCENARIOS:
            SCENARIOS[name](bench)
    found = bench.medians()
    print(f"{machine}\n\n{format_cluster_report(found)}\n\n{time.monotonic() - bench.began:.0f} s in all.")
    for failure in bench.failures:
        print(f"FAILED {failure}")
    if options.write_readme and not bench.failures:
        _write_readme(machine, format_cluster_report(found))
    if options.json:
        content = {"machine": machine, "rounds": bench.found, "medians": found}
        Path(options.json).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return 1 if bench.failures else 0


def _write_readme(machine: str, report: str) -> None:
    before, begin, rest = README.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise SystemExit(f"{README.name} has no place for results: {_BEGIN} … {_END} is missing.")
    README.write_text(f"{before}{begin}\n`python -m bench.cluster` on {machine}:\n\n```text\n{report}\n```\n{end}{after}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
