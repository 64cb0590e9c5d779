"""One run on one server: the load, the check of every promise, the server's cost, the numbers.

A run that broke a promise raises FailedRunError and has no numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from bench import nats_wire, redis_wire
from bench.dialect import Dialect, FailedRunError, Stream
from bench.process import read_cpu_s, read_rss_bytes, wait_for_rest
from bench.relay_wire import ForwarderDialect, RelayDialect
from bench.servers import Server, run_forwarder, run_nats, run_redis, run_relay
from bench.worker import Crew, Part, Report

_LEAST_CPU_S = 0.05  # the kernel tells processor time in hundredths of a second: below five of them it says too little

Metrics = dict[str, float]


class Running(NamedTuple):
    """A server that is up, and how to talk to it. `settle` waits for what it still does and says what went wrong."""

    server: Server
    dialect: Dialect
    settle: Callable[[int], list[str]]


@contextmanager
def relay(command: Sequence[str]) -> Iterator[Running]:
    with run_relay(command) as (server, path):
        yield Running(server, RelayDialect(path), lambda _: [])


@contextmanager
def forwarder() -> Iterator[Running]:
    with run_forwarder() as (server, path):
        yield Running(server, ForwarderDialect(path), lambda _: [])


@contextmanager
def nats(binary: str, sync_always: bool) -> Iterator[Running]:
    with run_nats(binary, sync_always) as (server, port):
        nats_wire.create_stream(port)
        yield Running(server, nats_wire.NatsDialect(port), lambda messages: nats_wire.check_all_acknowledged(port, messages))


@contextmanager
def redis(binary: str, sync: str) -> Iterator[Running]:
    with run_redis(binary, sync) as (server, path):
        redis_wire.create_stream(path)
        yield Running(server, redis_wire.RedisDialect(path), lambda messages: redis_wire.check_all_acknowledged(path, messages))


def measure_load(crew: Crew, running: Running, streams: Sequence[Stream], window: int = 0, rate: int = 0) -> Metrics:
    keep_times = rate > 0
    everyone = tuple(streams)
    parts = [
        Part("receive", running.dialect, everyone, keep_times=keep_times),
        Part("send", running.dialect, everyone, window, rate, keep_times),
    ]
    (receiver, sender), cost = _run(crew, running, parts)
    messages = sum(stream.messages for stream in streams)
    deliveries = sum(stream.messages * len(stream.recipients) for stream in streams)
    wall_s = (max(receiver.end_ns, sender.end_ns) - sender.start_ns) / 1e9
    metrics = {
        "messages_per_s": messages / wall_s,
        "deliveries_per_s": deliveries / wall_s,
        **_costs(cost, messages, deliveries),
        "generator_busy": max(report.cpu_s / wall_s for report in (receiver, sender)),
    }
    if rate:
        warm_up = min(rate // 2, messages // 10)
        metrics |= percentiles("delivered", sender, receiver.delivered_ns[warm_up:], warm_up)
        metrics |= percentiles("answered", sender, sender.answered_ns[warm_up:], warm_up)
    return metrics


def measure_following(crew: Crew, running: Running, streams: Sequence[Stream], window: int) -> Metrics:
    """Where messages are not answered: one process is both ends, and sends as its recipients are given."""
    (report,), cost = _run(crew, running, [Part("follow", running.dialect, tuple(streams), window)])
    messages = sum(stream.messages for stream in streams)
    deliveries = sum(stream.messages * len(stream.recipients) for stream in streams)
    return {
        "messages_per_s": messages / report.wall_s,
        "deliveries_per_s": deliveries / report.wall_s,
        **_costs(cost, messages, deliveries),
        "generator_busy": report.cpu_s / report.wall_s,
    }


def measure_turns(crew: Crew, running: Running, stream: Stream) -> Metrics:
    parts = [Part("turns", running.dialect, (stream,), keep_times=True)]
    (report,), cost = _run(crew, running, parts)
    return {
        "messages_per_s": stream.messages / report.wall_s,
        **_costs(cost, stream.messages, stream.messages),
        **percentiles("delivered", report, report.delivered_ns),
        **percentiles("answered", report, report.answered_ns),
    }


class Cost(NamedTuple):
    cpu_s: float
    rss_bytes: int
    later_cpu_s: float  # what the server does once everybody has been answered, until it rests


def _run(crew: Crew, running: Running, parts: Sequence[Part]) -> tuple[list[Report], Cost]:
    """The reports of a run that kept every promise, and what it cost the server."""
    samples: list[tuple[float, int]] = []
    problems: list[str] = []

    def sample() -> None:
        pid = running.server.pid
        if len(samples) == 1:
            problems.extend(running.settle(sum(stream.messages for stream in parts[0].streams)))
        samples.append((wait_for_rest(pid) if len(samples) == 2 else read_cpu_s(pid), read_rss_bytes(pid)))

    reports = crew.run(parts, sample)
    problems += find_problems(reports)
    if problems:
        raise FailedRunError("; ".join(problems[:3]))
    (before, _), (after, rss_bytes), (at_rest, _) = samples
    return reports, Cost(after - before, rss_bytes, at_rest - after)


def find_problems(reports: Sequence[Report]) -> list[str]:
    """What the load processes saw that should not be, and deliveries that are not what their senders were told."""
    sent = {sender: digest for report in reports for sender, digest in report.sent_digests.items()}
    problems: list[str] = []
    for report in reports:
        problems += report.problems
        problems += [
            f"what was delivered from {sender} is not what it was told is stored"
            for sender, digest in report.received_digests
            if sent[sender] != digest
        ]
    return problems


def _costs(cost: Cost, messages: int, deliveries: int) -> Metrics:
    metrics = {"rss_mb": cost.rss_bytes / 1e6}
    if cost.cpu_s >= _LEAST_CPU_S:
        metrics |= {
            "cpu_us_per_message": cost.cpu_s / messages * 1e6,
            "cpu_us_per_delivery": cost.cpu_s / deliveries * 1e6,
            "later_us_per_message": cost.later_cpu_s / messages * 1e6,
        }
    return metrics


def percentiles(name: str, sender: Report, ends_ns: Sequence[int], skip: int = 0) -> Metrics:
    taken_ms = sorted((end - begin) / 1e6 for begin, end in zip(sender.written_ns[skip:], ends_ns, strict=True))
    return {f"{name}_p{percent}_ms": taken_ms[min(len(taken_ms) * percent // 100, len(taken_ms) - 1)] for percent in (50, 99)}
