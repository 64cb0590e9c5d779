"""The needs of a relay of many agents on many hosts, computed from what was measured.

    .venv/bin/python scripts/scale_model.py             prints the tables of docs/scale.md
    .venv/bin/python scripts/scale_model.py --write     puts them into the page
    .venv/bin/python scripts/scale_model.py --figures mine.json --agents-per-host 10 --messages-per-minute 5

The figures are medians of `python -m bench.cluster --json bench/cluster.json`. Everything else is an assumption, and stands in
`Assumptions`. A model, not a measurement: it adds up what was measured on a few hosts, and knows nothing of what it leaves out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "bench" / "cluster.json"
PAGE = ROOT / "docs" / "scale.md"
_BEGIN, _END = "<!-- scale model -->\n", "<!-- end of scale model -->"
_SYNC = "4 hosts, sync always"
_DAY_S = 86_400
SIZES = ((100, 3), (1_000, 10), (10_000, 100), (100_000, 1_000))  # agents, hosts


@dataclass(frozen=True, slots=True)
class Assumptions:
    messages_per_minute: float = 1.0  # of one agent: a turn of a coding agent takes about a minute
    peak: float = 5.0  # times the average
    body_bytes: int = 1_000
    retention_days: int = 30  # of the log and the copies, as the default is
    agents_per_host: int = 100
    presence_every_s: float = 2.0  # how often a host tells the others that it is there
    presence_bytes: int = 150
    small_message_us: float = 7.0  # for a daemon to read one small message from NATS (nats-py)
    server_message_us: float = 1.0  # for a NATS server to hand one on
    core_share: float = 0.7  # of a core may be used at the peak; beyond it latency grows
    server_cores: float = 8.0  # of a NATS server
    line_bytes_per_s: float = 1.25e9  # 10 Gbit/s, of a NATS server
    seat_line_bytes_per_s: float = 1.25e8  # 1 Gbit/s, of a host
    disk_bytes: float = 500e9  # of a host, for its copy
    memory_bytes: float = 8e9  # of the seat's host, for its daemon
    log_bytes: int = 16 * 1024**3  # `max_bytes` of the stream
    absence_s: float = 3 * _DAY_S  # a host that was away so long, over a weekend, should still find its records in the log
    readers: int = 256  # `max_consumers` of the stream
    servers: int = 3
    join_s: float = 30.0  # after the seat has moved, all agents should be back by then


@dataclass(frozen=True, slots=True)
class Figures:
    """Measured, per message of 200 bytes unless it says otherwise. A batch holds hundreds of messages, a single one is alone."""

    seat_batch_us: float
    seat_record_us: float  # more for a record of one message
    seat_link_us: float  # more for packets of one message
    copy_batch_us: float
    copy_record_us: float
    nats_batch_us: float  # three servers together
    nats_record_us: float
    nats_link_us: float
    confirm_ms: float
    idle_agent_share: float  # of a core at the seat, for an agent that only answers its heartbeat
    agent_bytes: float  # at the seat
    join_us: float  # at the seat
    seat_bytes: float  # memory of a seat without agents
    link_bytes: float  # at the seat, in and out
    log_bytes: float
    copy_bytes: float
    delivery_us: float  # of a broadcast, at the seat
    bench_body_bytes: int = 200


def read_figures(path: Path) -> Figures:
    found: dict[str, dict[str, dict[str, float]]] = json.loads(path.read_text("utf-8"))["medians"]
    pipelined, alone = found["pipelined"][_SYNC], found["turns"][f"{_SYNC}, at the seat"]
    across, sizes = found["turns"][f"{_SYNC}, edge to edge"], found["bytes"][_SYNC]
    crowd = found["crowd"]
    empty = next(metrics for name, metrics in crowd.items() if name.startswith("nobody"))
    full_name, full = next((name, metrics) for name, metrics in crowd.items() if "agents" in name)
    agents = int(full_name.split(" ")[0].replace(",", ""))
    fan_out = found["fan-out"][_SYNC]
    recipients = round(fan_out["deliveries_per_s"] / fan_out["messages_per_s"])

    def cpu(metrics: dict[str, float], role: str, later: bool = True) -> float:
        return metrics[f"cpu µs/message {role}"] + (metrics[f"later µs/message {role}"] if later else 0.0)

    def more(value: float) -> float:
        return max(value, 0.0)  # two medians of a busy machine

    copies = 3  # hosts that only copy, in the runs at the seat
    return Figures(
        seat_batch_us=cpu(pipelined, "seat"),
        seat_record_us=more(cpu(alone, "seat", later=False) - cpu(pipelined, "seat")),
        seat_link_us=more(cpu(across, "seat", later=False) - cpu(alone, "seat", later=False)),
        copy_batch_us=cpu(pipelined, "copy"),
        copy_record_us=more(cpu(alone, "copy", later=False) / copies - cpu(pipelined, "copy")),
        nats_batch_us=cpu(pipelined, "NATS", later=False),
        nats_record_us=more(cpu(alone, "NATS", later=False) - cpu(pipelined, "NATS", later=False)),
        nats_link_us=more(cpu(across, "NATS", later=False) - cpu(alone, "NATS", later=False)),
        confirm_ms=alone["answered_p50_ms"],
        idle_agent_share=more(full["idle core share seat"] - empty["idle core share seat"]) / agents,
        agent_bytes=more(full["RSS MB seat"] - empty["RSS MB seat"]) * 1e6 / agents,
        join_us=full["seat µs/join"],
        seat_bytes=empty["RSS MB seat"] * 1e6,
        link_bytes=sizes["link bytes/message received"] + sizes["link bytes/message sent"],
        log_bytes=sizes["log bytes/message"],
        copy_bytes=sizes["copy bytes/message"],
        delivery_us=cpu(fan_out, "seat") / recipients,
    )


@dataclass(frozen=True, slots=True)
class Needs:
    """The use of a relay of that size, at its peak where it is a rate."""

    agents: int
    hosts: int
    messages_per_s: float
    peak_per_s: float
    seat_cores: float
    edge_cores: float  # for the copy and the presence of others
    server_cores: float  # each
    server_bytes_per_s: float  # out of each
    seat_bytes_per_s: float  # both directions
    seat_memory_bytes: float
    copy_bytes: float  # on every host, with all that is kept
    log_s: float  # how long the log lasts until its oldest record goes
    readers: int
    presence_per_s: float  # messages that all hosts hear
    broadcast_s: float  # of the seat's CPU, for one message to everybody
    rejoin_s: float  # of the seat's CPU, until all agents are back


def compute(agents: int, hosts: int, figures: Figures, given: Assumptions) -> Needs:
    average = agents * given.messages_per_minute / 60
    peak = average * given.peak
    # One record is under way at a time: what comes meanwhile is the next one's. A link gathers only what its own host sends.
    together = max(1.0, peak * figures.confirm_ms / 1000)
    records = peak / together
    more_bytes = given.body_bytes - figures.bench_body_bytes
    seat_us = figures.seat_batch_us + figures.seat_record_us / together + figures.seat_link_us
    copy_us = figures.copy_batch_us + figures.copy_record_us / together
    heard_per_s = hosts / given.presence_every_s  # by each host
    copied = peak * (figures.log_bytes + more_bytes)  # to each host
    nats_us = figures.nats_batch_us + figures.nats_record_us / together + figures.nats_link_us
    linked = peak * (figures.link_bytes + 2 * more_bytes)  # in with the sender, out to the recipient
    presence = heard_per_s * hosts
    handed_on = records * hosts + presence  # records to copies, and presence, besides what was measured
    out = copied * hosts + linked + presence * given.presence_bytes
    kept = average * given.retention_days * _DAY_S
    return Needs(
        agents, hosts, average, peak,
        seat_cores=(peak * seat_us + heard_per_s * given.small_message_us) / 1e6 + agents * figures.idle_agent_share,
        edge_cores=(peak * copy_us + heard_per_s * given.small_message_us) / 1e6,
        server_cores=(peak * nats_us + handed_on * given.server_message_us) / 1e6 / given.servers,
        server_bytes_per_s=out / given.servers,
        seat_bytes_per_s=linked + peak * (figures.log_bytes + more_bytes),
        seat_memory_bytes=figures.seat_bytes + agents * figures.agent_bytes,
        copy_bytes=kept * (figures.copy_bytes + more_bytes),
        log_s=given.log_bytes / (average * (figures.log_bytes + more_bytes)),
        readers=hosts,
        presence_per_s=presence,
        broadcast_s=agents * figures.delivery_us / 1e6,
        rejoin_s=agents * figures.join_us / 1e6,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limit:
    text: str
    is_kept: Callable[[Needs, Assumptions], bool]
    remedy: str


LIMITS = (
    Limit("the log's readers, one per host (`max_consumers` 256)", lambda n, a: n.readers <= a.readers,
          "raise it, or let hosts without agents of their own go"),
    Limit("the log (16 GiB) still has what a host missed in three days", lambda n, a: n.log_s >= a.absence_s,
          "raise `max_bytes`; a host that was away longer copies anew"),
    Limit("each copy fits 500 GB (30 days)", lambda n, a: n.copy_bytes <= a.disk_bytes, "a shorter `message_retention`"),
    Limit("a NATS server's line (10 Gbit/s), at the peak", lambda n, a: n.server_bytes_per_s <= a.line_bytes_per_s,
          "five servers; fewer hosts with a copy"),
    Limit("a NATS server's 8 cores, at the peak", lambda n, a: n.server_cores <= a.core_share * a.server_cores, "five servers"),
    Limit("the seat's core, at the peak", lambda n, a: n.seat_cores <= a.core_share, "several projects; a longer `heartbeat_ms`"),
    Limit("the seat's line (1 Gbit/s), at the peak", lambda n, a: n.seat_bytes_per_s <= a.seat_line_bytes_per_s,
          "hosts with 10 Gbit/s for the seat"),
    Limit("a core of every other host, for its copy", lambda n, a: n.edge_cores <= a.core_share, "several projects"),
    Limit("the seat's memory (8 GB)", lambda n, a: n.seat_memory_bytes <= a.memory_bytes, "more memory"),
    Limit("all agents are back 30 s after the seat has moved", lambda n, a: n.rejoin_s <= a.join_s, "several projects"),
)  # fmt: skip


def reach(limit: Limit, figures: Figures, given: Assumptions) -> int:
    """The number of agents up to which a limit is kept, with as many hosts as they need."""
    least, most = 1, 100_000_000
    while least < most:
        agents = (least + most + 1) // 2
        if limit.is_kept(compute(agents, _hosts_for(agents, given), figures, given), given):
            least = agents
        else:
            most = agents - 1
    return least


def _hosts_for(agents: int, given: Assumptions) -> int:
    return max(1, -(-agents // given.agents_per_host))


# --- the page -----------------------------------------------------------------------------------------------------------


def render(figures: Figures, given: Assumptions, machine: str) -> str:
    needs = [compute(agents, hosts, figures, given) for agents, hosts in SIZES]
    parts = [
        f"Measured on {machine}.\n",
        _table(("measured", "figure"), _figure_rows(figures)),
        f"Assumed: {_describe(given)}.\n",
        _table(("what a relay needs", *(f"{n.agents:,} agents, {n.hosts:,} hosts" for n in needs)), _need_rows(needs)),
        f"Each limit, and how many agents one relay has when it is reached. The first is {_first(figures, given)}\n",
        _table(("limit", "agents", "then"), _limit_rows(figures, given)),
    ]
    return "\n".join(parts)


def _describe(given: Assumptions) -> str:
    return (
        f"{given.messages_per_minute:g} message per minute and agent on average and {given.peak:g} times that at the peak, "
        f"{given.body_bytes:,} bytes each to one recipient, {given.agents_per_host} agents per host, {given.servers} NATS "
        f"servers, a heartbeat every 5 s, each host telling the others every {given.presence_every_s:g} s that it is there "
        f"({given.presence_bytes} bytes), {given.small_message_us:g} µs for a daemon to read a small message and "
        f"{given.server_message_us:g} µs for a server to hand one on, at most {given.core_share:.0%} of a core used"
    )


def _figure_rows(f: Figures) -> Iterator[tuple[str, ...]]:
    yield "seat: CPU per message, in a batch", f"{f.seat_batch_us:.0f} µs"
    yield "… more for a record of its own; for packets of its own", f"{f.seat_record_us:.0f}; {f.seat_link_us:.0f} µs"
    yield "a copy: CPU per message, in a batch; more for a record of its own", f"{f.copy_batch_us:.0f}; {f.copy_record_us:.0f} µs"
    yield "NATS, all servers: CPU per message, in a batch", f"{f.nats_batch_us:.0f} µs"
    yield "… more for a record of its own; for packets of its own", f"{f.nats_record_us:.0f}; {f.nats_link_us:.0f} µs"
    yield "until a message is stored, at the seat (p50)", f"{f.confirm_ms:.1f} ms"
    yield "seat: an idle agent", f"{f.idle_agent_share * 1e6:.1f} µs of CPU per second, {f.agent_bytes / 1e3:.1f} KB"
    yield "seat: an agent joins; a delivery of a broadcast", f"{f.join_us:.0f} µs; {f.delivery_us:.1f} µs"
    yield "a message of 200 bytes: link in and out, log, copy", f"{f.link_bytes:.0f}, {f.log_bytes:.0f}, {f.copy_bytes:.0f} bytes"


def _need_rows(needs: list[Needs]) -> Iterator[tuple[str, ...]]:
    def row(text: str, show: Callable[[Needs], str]) -> tuple[str, ...]:
        return (text, *map(show, needs))

    yield row("messages per second, average / peak", lambda n: f"{_short(n.messages_per_s)} / {_short(n.peak_per_s)}")
    yield row("seat: cores", lambda n: _short(n.seat_cores))
    yield row("seat: memory", lambda n: _bytes(n.seat_memory_bytes))
    yield row("seat: line", lambda n: _bits(n.seat_bytes_per_s))
    yield row("every other host: cores for copy and presence", lambda n: _short(n.edge_cores))
    yield row("every host: disk for its copy, 30 days", lambda n: _bytes(n.copy_bytes))
    yield row("all hosts: disk for copies", lambda n: _bytes(n.copy_bytes * n.hosts))
    yield row("each NATS server: cores", lambda n: _short(n.server_cores))
    yield row("each NATS server: line", lambda n: _bits(n.server_bytes_per_s))
    yield row("readers of the log", lambda n: f"{n.readers:,}")
    yield row("the log (16 GiB) lasts", lambda n: _time(n.log_s))
    yield row("presence: messages that all hosts hear per second", lambda n: _short(n.presence_per_s))
    yield row("one broadcast to everybody: the seat's CPU", lambda n: _time(n.broadcast_s))
    yield row("everybody comes back: the seat's CPU", lambda n: _time(n.rejoin_s))


def _limits(figures: Figures, given: Assumptions) -> list[tuple[int, Limit]]:
    return sorted(((reach(limit, figures, given), limit) for limit in LIMITS), key=lambda pair: pair[0])


def _first(figures: Figures, given: Assumptions) -> str:
    agents, limit = _limits(figures, given)[0]
    return f"**{limit.text}, at about {_round(agents):,} agents**."


def _limit_rows(figures: Figures, given: Assumptions) -> list[tuple[str, ...]]:
    return [(limit.text, f"{_round(agents):,}", limit.remedy) for agents, limit in _limits(figures, given)]


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _round(value: int) -> int:
    """Two digits: more would be pretended."""
    return int(float(f"{value:.2g}"))


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _bytes(value: float) -> str:
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{_short(value)} {unit}"


def _bits(bytes_per_s: float) -> str:
    return f"{_short(bytes_per_s * 8 / 1e6)} Mbit/s" if bytes_per_s < 1.25e8 else f"{_short(bytes_per_s * 8 / 1e9)} Gbit/s"


def _time(seconds: float) -> str:
    for unit, size in (("days", _DAY_S), ("hours", 3_600), ("min", 60), ("s", 1)):
        if seconds >= 2 * size:
            return f"{_short(seconds / size)} {unit}"
    return f"{_short(seconds * 1000)} ms"


def put_into(page: str, tables: str) -> str:
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} has no place for the tables: {_BEGIN.strip()} … {_END} is missing.")
    return f"{before}{begin}\n{tables}\n{end}{after}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="scale_model.py", description="Computes the tables of docs/scale.md.")
    parser.add_argument("--write", action="store_true", help="put them into the page")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="results of python -m bench.cluster --json")
    for field in fields(Assumptions):
        kind = int if isinstance(field.default, int) else float
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=kind, default=field.default)
    options = parser.parse_args(arguments)
    given = Assumptions(**{field.name: getattr(options, field.name) for field in fields(Assumptions)})
    machine = json.loads(options.figures.read_text("utf-8"))["machine"]
    tables = render(read_figures(options.figures), given, machine)
    if options.write:
        PAGE.write_text(put_into(PAGE.read_text("utf-8"), tables), "utf-8")
    else:
        sys.stdout.write(tables)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
