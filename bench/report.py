"""The rows of a run as text: what was measured, and how it stands against the peers and the targets."""

from __future__ import annotations

from collections.abc import Sequence

from bench.scenarios import RELAY, Row
from bench.targets import TARGETS, Results

_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("msg/s", "messages_per_s", ",.0f"),
    ("deliveries/s", "deliveries_per_s", ",.0f"),
    ("CPU µs/msg", "cpu_us_per_message", ".1f"),
    ("later µs", "later_us_per_message", ".1f"),
    ("µs/delivery", "cpu_us_per_delivery", ".1f"),
    ("RSS MB", "rss_mb", ".0f"),
    ("answered ms", "answered", ".2f"),
    ("delivered ms", "delivered", ".2f"),
    ("generator", "generator_busy", ".0%"),
)
_SMALL: tuple[tuple[str, str, str], ...] = (
    ("start_s", "exec → first WELCOME", ".3f s"),
    ("idle_mb", "daemon idle", ".1f MB"),
    ("connection_kb", "per idle connection", ".2f KB"),
    ("websocket_kb", "per idle WebSocket", ".2f KB"),
)


def format_report(rows: Sequence[Row]) -> str:
    loads = [row for row in rows if row.failure or "messages_per_s" in row.metrics]
    parts = [_format_loads(loads)] if loads else []
    parts += [
        line for line in (_format_small(rows), _format_terminals(rows), _format_ratios(rows), _format_targets(rows)) if line
    ]
    return "\n\n".join(parts)


def _format_loads(rows: Sequence[Row]) -> str:
    head = ["scenario", "subject", *(title for title, _, _ in _COLUMNS)]
    table = [head]
    failures = []
    for row in rows:
        if row.failure:
            table.append([row.scenario, row.subject, "FAILED", *[""] * (len(_COLUMNS) - 1)])
            failures.append(f"FAILED {row.scenario}, {row.subject}: {row.failure}")
        else:
            table.append([row.scenario, row.subject, *(_cell(row, metric, style) for _, metric, style in _COLUMNS)])
    return "\n".join([align(table), *failures])


def _cell(row: Row, metric: str, style: str) -> str:
    if metric in ("answered", "delivered"):
        found = [row.metrics.get(f"{metric}_p{percent}_ms") for percent in (50, 99)]
        return " / ".join(format(value, style) for value in found if value is not None) or "–"
    value = row.metrics.get(metric)
    return "–" if value is None else format(value, style)


def _format_small(rows: Sequence[Row]) -> str:
    lines = []
    for row in rows:
        for metric, text, style in _SMALL:
            if metric in row.metrics:
                number, unit = style.split(" ")
                name = text if row.subject == RELAY else f"{text}, {row.subject}"
                lines.append([name, f"{row.metrics[metric]:{number}} {unit}"])
    return align(lines) if lines else ""


def _format_terminals(rows: Sequence[Row]) -> str:
    table = [["screen to prompt", "pasted ms, p50 / p95", "taken ms, p50 / p95"]]
    for row in rows:
        if "taken_p50_ms" in row.metrics:
            cells = [[row.metrics[f"{what}_p{percent}_ms"] for percent in (50, 95)] for what in ("pasted", "taken")]
            table.append([row.subject, *(" / ".join(f"{value:.0f}" for value in cell) for cell in cells)])
    return align(table) if len(table) > 1 else ""


def _format_ratios(rows: Sequence[Row]) -> str:
    """The relay over each peer of the same scenario: the figures that hold from one machine to the next."""
    results = Results(rows)
    table = [["agent-relay against", "in", "msg/s", "CPU per message", "delivered p50", "delivered p99"]]
    metrics = ("messages_per_s", "cpu_us_per_message", "delivered_p50_ms", "delivered_p99_ms")
    for row in rows:
        if row.failure or row.scenario in ("growth", "start", "memory", "arc-idle") or row.subject == RELAY:
            continue
        ratios = [results.compare(row.scenario, metric, row.subject) for metric in metrics]
        if any(ratio is not None for ratio in ratios):
            table.append([row.subject, row.scenario, *("–" if ratio is None else f"{ratio:.2f}×" for ratio in ratios)])
    return align(table) if len(table) > 1 else ""


def _format_targets(rows: Sequence[Row]) -> str:
    results = Results(rows)
    table = [["target", "measured", "floor", "goal", ""]]
    for target in TARGETS:
        value = target.read(results)
        if value is not None:
            sign = "≥" if target.more_is_better else "≤"
            limits = [f"{sign} {_number(limit)} {target.unit}".rstrip() for limit in (target.floor, target.goal)]
            table.append([target.text, f"{_number(value)} {target.unit}".rstrip(), *limits, target.judge(value)])
    return align(table) if len(table) > 1 else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def align(table: Sequence[Sequence[str]]) -> str:
    """Columns of equal width, those with numbers to the right."""
    columns = list(zip(*table, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [index > 0 and any(cell[:1].isdigit() for cell in column) for index, column in enumerate(columns)]
    lines = [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width) for cell, width, number in zip(row, widths, right, strict=True)
        )
        for row in table
    ]
    return "\n".join(line.rstrip() for line in lines)
