"""The figures of several hosts as text, and each beside one host alone and beside bare JetStream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.measure import Metrics
from bench.report import align

Found = Mapping[str, Mapping[str, Metrics]]  # by scenario and subject
_ROLES = ("seat", "sending edge", "receiving edge", "edges", "copy", "NATS")
_ALONE = "one host alone"


def format_cluster_report(found: Found) -> str:
    parts = [_loads(found, scenario) for scenario in ("pipelined", "fan-out", "crowd load") if scenario in found]
    parts += [part(found) for part in (_turns, _ratios, _idle, _bytes, _pauses)]
    return "\n\n".join(part for part in parts if part)


def _loads(found: Found, scenario: str) -> str:
    roles = [role for role in _ROLES if any(f"cpu µs/message {role}" in metrics for metrics in found[scenario].values())]
    table = [[f"{scenario}: CPU µs/message", "msg/s", "deliveries/s", *roles, "all, later"]]
    for subject, metrics in found[scenario].items():
        later = sum(value for name, value in metrics.items() if name.startswith("later "))
        cells = [_show(metrics.get(f"cpu µs/message {role}"), ".1f") for role in roles]
        table.append(
            [subject, f"{metrics['messages_per_s']:,.0f}", f"{metrics['deliveries_per_s']:,.0f}", *cells, f"{later:.1f}"]
        )
    return align(table)


def _turns(found: Found) -> str:
    if "turns" not in found:
        return ""
    roles = [role for role in _ROLES if any(f"cpu µs/message {role}" in metrics for metrics in found["turns"].values())]
    table = [["one at a time: CPU µs/message", "stored ms, p50 / p99", "delivered ms, p50 / p99", *roles]]
    for subject, metrics in found["turns"].items():
        times = [
            " / ".join(f"{metrics[f'{what}_p{percent}_ms']:.2f}" for percent in (50, 99)) for what in ("answered", "delivered")
        ]
        table.append([subject, *times, *(_show(metrics.get(f"cpu µs/message {role}"), ".0f") for role in roles)])
    return align(table)


def total_cpu_us(metrics: Metrics) -> float:
    """Of all processes together, a message."""
    return sum(value for name, value in metrics.items() if name.startswith("cpu µs/message"))


def _ratios(found: Found) -> str:
    pipelined, turns = found.get("pipelined", {}), found.get("turns", {})
    table = [["ratio", "against", "msg/s", "CPU of all processes", "delivered p50"]]
    for subject, metrics in pipelined.items():
        if "hosts" not in subject:
            continue
        mine = turns.get(f"{subject}, edge to edge")
        for peer, other in pipelined.items():
            if "hosts" in peer or (("sync" in peer) != ("sync" in subject) and peer != _ALONE):
                continue
            theirs = turns.get(peer)
            p50 = mine["delivered_p50_ms"] / theirs["delivered_p50_ms"] if mine and theirs else None
            rate = metrics["messages_per_s"] / other["messages_per_s"]
            table.append(
                [subject, peer, f"{rate:.2f}×", f"{total_cpu_us(metrics) / total_cpu_us(other):.2f}×", _show(p50, ".2f", "×")]
            )
    return align(table) if len(table) > 1 else ""


def _idle(found: Found) -> str:
    table = [["idle", "role", "share of a core", "RSS MB"]]
    for scenario in ("idle", "crowd"):
        for subject, metrics in found.get(scenario, {}).items():
            for role in ("seat", "edge", "NATS server"):
                share, size = metrics[f"idle core share {role}"], metrics[f"RSS MB {role}"]
                table.append([subject, role, f"{share:.2%}", f"{size:.0f}"])
    return align(table) if len(table) > 1 else ""


def _bytes(found: Found) -> str:
    rows = [[name, f"{value:,.3g}"] for metrics in found.get("bytes", {}).values() for name, value in metrics.items()]
    return align([["a message of 200 bytes, edge to edge", "adds"], *rows]) if rows else ""


def _pauses(found: Found) -> str:
    rows: Sequence[Sequence[str]] = [
        [f"{name} is killed", f"{metrics['pause s']:.2f} s"] for name, metrics in found.get("pause", {}).items()
    ]
    return align([["longest pause of a sender at an edge", "median"], *rows]) if rows else ""


def _show(value: float | None, style: str, unit: str = "") -> str:
    return "–" if value is None else f"{value:{style}}{unit}"
