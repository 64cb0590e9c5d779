"""Loads over several hosts, and what each process of the cluster uses for them."""

from __future__ import annotations

import re
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bench import nats_wire
from bench.cluster_servers import Cluster, Host, Node, size_of_copy
from bench.dialect import Dialect, FailedRunError, Stream
from bench.measure import Metrics, find_problems, percentiles
from bench.process import read_cpu_s, read_rss_bytes
from bench.relay_wire import RelayDialect, open_agent
from bench.worker import Crew, Part, Report

Roles = dict[str, list[int]]  # processes by what they do in the cluster
_REST_S, _REST_CPU_S, _REST_TIMEOUT_S = 0.5, 0.06, 15.0  # a dozen idle processes use a little themselves


@dataclass(frozen=True, slots=True)
class SpreadDialect(RelayDialect):
    """Agents over several hosts, by the number that their names end with."""

    senders: tuple[str, ...] = ()
    receivers: tuple[str, ...] = ()

    def open_sender(self, name: str, /) -> socket.socket:
        return open_agent(_pick(self.senders, name), name)

    def open_receiver(self, name: str, /) -> socket.socket:
        return open_agent(_pick(self.receivers, name), name)


def _pick(paths: Sequence[str], name: str) -> str:
    found = re.search(r"\d+$", name)
    return paths[int(found[0]) % len(paths) if found else 0]


@dataclass(frozen=True, slots=True)
class SpreadNats(nats_wire.NatsDialect):
    """The recipient at another server than the sender."""

    receiver_port: int = 0

    def open_receiver(self, _name: str, /) -> socket.socket:
        return nats_wire.connect_nats(self.receiver_port, f"SUB {nats_wire.DELIVER_SUBJECT} 1\r\n".encode())


@dataclass(frozen=True, slots=True)
class Stage:
    """What is measured: how to talk to it, and its processes."""

    dialect: Dialect
    roles: Roles
    settle: Callable[[int], list[str]] = lambda _messages: []


def stage_edges(cluster: Cluster) -> Stage:
    """From one edge to another; the fourth host only copies."""
    seat, sending, receiving, copy = cluster.hosts
    roles = {
        "seat": [seat.server.pid], "sending edge": [sending.server.pid], "receiving edge": [receiving.server.pid],
        "copy": [copy.server.pid], "NATS": _pids(cluster.nodes),
    }  # fmt: skip
    return Stage(SpreadDialect("", (sending.path,), (receiving.path,)), roles)


def stage_seat(cluster: Cluster) -> Stage:
    """Both at the host that has the seat."""
    seat, *others = cluster.hosts
    roles = {"seat": [seat.server.pid], "copy": _pids(others), "NATS": _pids(cluster.nodes)}
    return Stage(SpreadDialect("", (seat.path,), (seat.path,)), roles)


def stage_everywhere(cluster: Cluster, hosts: int) -> Stage:
    """Sender and recipient of a pair on neighbouring hosts, the pairs over all of them."""
    seat, *edges = cluster.hosts[:hosts]
    paths = tuple(host.path for host in (seat, *edges))
    roles = {"seat": [seat.server.pid], "edges": _pids(edges), "NATS": _pids(cluster.nodes)}
    return Stage(SpreadDialect("", paths, (*paths[1:], paths[0])), roles)


def stage_engine(nodes: Sequence[Node]) -> Stage:
    port = nodes[0].port
    nats_wire.create_stream(port, len(nodes))
    dialect = SpreadNats(port, nodes[1].port)
    return Stage(dialect, {"NATS": _pids(nodes)}, lambda messages: nats_wire.check_all_acknowledged(port, messages))


def _pids(members: Sequence[Host] | Sequence[Node]) -> list[int]:
    return [member.server.pid for member in members]


def read_roles(roles: Roles) -> dict[str, float]:
    return {role: sum(map(read_cpu_s, pids)) for role, pids in roles.items()}


def _wait_for_rest(roles: Roles) -> dict[str, float]:
    ends_at = time.monotonic() + _REST_TIMEOUT_S
    used = read_roles(roles)
    while time.monotonic() < ends_at:
        time.sleep(_REST_S)
        before, used = used, read_roles(roles)
        if sum(used.values()) - sum(before.values()) <= _REST_CPU_S:
            break
    return used


def measure_stage(crew: Crew, stage: Stage, streams: Sequence[Stream], window: int) -> Metrics:
    everyone = tuple(streams)
    parts = [Part("receive", stage.dialect, everyone), Part("send", stage.dialect, everyone, window)]
    (receiver, sender), costs = _run(crew, stage, parts)
    messages = sum(stream.messages for stream in streams)
    deliveries = sum(stream.messages * len(stream.recipients) for stream in streams)
    wall_s = (max(receiver.end_ns, sender.end_ns) - sender.start_ns) / 1e9
    return {"messages_per_s": messages / wall_s, "deliveries_per_s": deliveries / wall_s} | _per_message(costs, messages)


def _per_message(costs: dict[str, dict[str, float]], messages: int) -> Metrics:
    return {
        f"{what} µs/message {role}": cpu_s / messages * 1e6 for what, by_role in costs.items() for role, cpu_s in by_role.items()
    }


def measure_turns(crew: Crew, stage: Stage, stream: Stream) -> Metrics:
    """Nothing is gathered here: each message is a record and a packet of its own."""
    (report,), costs = _run(crew, stage, [Part("turns", stage.dialect, (stream,), keep_times=True)])
    times = percentiles("delivered", report, report.delivered_ns) | percentiles("answered", report, report.answered_ns)
    return times | _per_message(costs, stream.messages)


def _run(crew: Crew, stage: Stage, parts: Sequence[Part]) -> tuple[list[Report], dict[str, dict[str, float]]]:
    """The reports of a run that kept every promise, and CPU seconds by role: until all is answered, and after that."""
    samples: list[dict[str, float]] = []
    problems: list[str] = []

    def sample() -> None:
        if len(samples) == 1:
            problems.extend(stage.settle(sum(stream.messages for stream in parts[0].streams)))
        samples.append(_wait_for_rest(stage.roles) if len(samples) == 2 else read_roles(stage.roles))

    reports = crew.run(parts, sample)
    problems += find_problems(reports)
    if problems:
        raise FailedRunError("; ".join(problems[:3]))
    before, after, at_rest = samples
    return reports, {
        "cpu": {role: after[role] - before[role] for role in stage.roles},
        "later": {role: at_rest[role] - after[role] for role in stage.roles},
    }


# --- idle ---------------------------------------------------------------------------------------------------------------


def measure_idle(cluster: Cluster, seconds: float) -> Metrics:
    """Shares of one core, and memory, of one of each kind."""
    seat, *edges = cluster.hosts
    roles = {"seat": [seat.server.pid], "edge": _pids(edges), "NATS server": _pids(cluster.nodes)}
    before, began = read_roles(roles), time.monotonic()
    time.sleep(seconds)
    after, took_s = read_roles(roles), time.monotonic() - began
    found: Metrics = {}
    for role, pids in roles.items():
        found[f"idle core share {role}"] = (after[role] - before[role]) / took_s / len(pids)
        found[f"RSS MB {role}"] = sum(map(read_rss_bytes, pids)) / len(pids) / 1e6
    return found


@contextmanager
def hold_agents(hosts: Sequence[Host], count: int) -> Iterator[None]:
    """So many agents over all hosts, which say nothing but answer when they are pinged."""
    dialect = RelayDialect("")
    stopped = threading.Event()
    with ExitStack() as stack, select.epoll() as epoll:
        held: dict[int, tuple[socket.socket, bytes]] = {}

        def answer() -> None:
            while not stopped.is_set():
                for handle, _ in epoll.poll(0.2):
                    sock, rest = held[handle]
                    buffer = rest + sock.recv(1 << 16)
                    scan = dialect.scan_deliveries(buffer)
                    held[handle] = (sock, buffer[scan.consumed :])
                    if scan.reply:
                        sock.sendall(scan.reply)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        try:
            for number in range(count):
                sock = stack.enter_context(open_agent(hosts[number % len(hosts)].path, f"idle-{number:05d}"))
                held[sock.fileno()] = (sock, b"")
                epoll.register(sock.fileno(), select.EPOLLIN)
            yield
        finally:
            stopped.set()
            thread.join()


# --- bytes --------------------------------------------------------------------------------------------------------------


def measure_bytes(crew: Crew, cluster: Cluster, streams: Sequence[Stream], window: int) -> Metrics:
    """What a message from edge to edge adds to the log, to each copy, and to the links, each way."""
    seat = cluster.hosts[0]

    def read() -> dict[str, float]:
        figures = seat.figures()
        links = {f"link bytes/message {way}": figures[f"link_bytes_total {way}"] for way in ("received", "sent")}
        return links | {
            "log bytes/message": cluster.log_bytes(), "copy bytes/message": size_of_copy(cluster.hosts[-1]),
            "records/message": figures["position"],
        }  # fmt: skip

    before = read()
    measure_stage(crew, stage_edges(cluster), streams, window)
    after = read()
    messages = sum(stream.messages for stream in streams)
    return {name: (after[name] - before[name]) / messages for name in before}
