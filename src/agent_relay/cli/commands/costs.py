"""`costs`: what the agents used, and what that costs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_relay.cli.options import Json, Socket, StateDir, agent_option, find_place, read_moment_ms
from agent_relay.cli.output.formats import count
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Column, Part, Screen

if TYPE_CHECKING:
    from agent_relay.events.costs import Breakdown, CostReport

_COUNTS = (
    Column("input", right=True),
    Column("output", right=True),
    Column("cache read", right=True, optional=True),
    Column("cache write", right=True, optional=True),
    Column("cost", right=True),
)


def costs(
    since: Annotated[str | None, typer.Option("--since", metavar="WHEN", help="Start: 24h, 7d, or 2025-01-31 14:00.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="WHEN", help="End, in the same format.")] = None,
    agent: Annotated[str | None, agent_option("--agent", "Only this agent.")] = None,
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Only this session.")] = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Show how many tokens the agents used, and their cost at the providers' list prices.

    Costs are estimates: they do not account for subscriptions or discounts. Put your own prices into cost-models.json in
    AGENT_RELAY_HOME, a list of {"model", "inputPer1M", "outputPer1M", "cacheReadPer1M"?, "cacheWritePer1M"?} in dollars;
    they override the built-in ones. Tokens of models without a price are counted, and marked as unpriced. The daemon need
    not be running. With --json: {"total", "byAgent", "byModel", "bySession", "unpricedModels", "pricesAsOf"}.
    """
    from agent_relay.daemon.cost_models import load_prices
    from agent_relay.events.costs import CostBook

    place = find_place(socket, state_dir)
    loaded = load_prices(place.home)
    if loaded.warning:
        sys.stderr.write(f"agent-relay: {clean_line(loaded.warning)}\n")
    book = CostBook(
        loaded.prices, since_ms=read_moment_ms(since, "--since"), until_ms=read_moment_ms(until, "--until"), agent=agent,
        session_id=session,
    )  # fmt: skip
    _read_into(book, place.state_dir)
    screen = Screen()
    if as_json:
        import msgspec

        screen.json(msgspec.to_builtins(book.report()))
    else:
        _show(screen, book.report(), loaded.path)
    return 0


def _read_into(book: Any, state_dir: str) -> None:
    from agent_relay.daemon.event_scan import scan_events
    from agent_relay.events.costs import read_usage
    from agent_relay.events.types import TokensUsed

    for event in scan_events(state_dir, "tokens.used"):
        if isinstance(event, TokensUsed):
            book.add(read_usage(event))


def _show(screen: Screen, report: CostReport, prices_path: str) -> None:
    if not report.total.total_tokens:
        screen.line(("No token usage was recorded.", "dim"))
        return
    rows = [*_rows("by agent", report.by_agent), *_rows("by model", report.by_model)]
    screen.table((Column(""), *_COUNTS), [*rows, _row("total", report.total, "bold")])
    screen.line()
    if report.unpriced_models:
        models = ", ".join(clean_line(model) for model in report.unpriced_models)
        tokens = count(report.total.unpriced_tokens, "token")
        screen.line((f"No price is known for {models}: {tokens} not included.", "yellow"))
        screen.line((f"Put your own prices into {clean_line(prices_path)}.", "dim"))
    screen.line((f"Estimated from list prices as of {report.prices_as_of}.", "dim"))


def _rows(title: str, parts: dict[str, Breakdown]) -> Iterable[list[Part]]:
    yield [(title, "dim"), *("" for _ in _COUNTS)]
    for name, part in sorted(parts.items(), key=lambda item: (-(item[1].estimated_cost_usd or 0), item[0])):
        yield _row(f"  {clean_line(name)}", part, "")


def _row(name: str, part: Breakdown, style: str) -> list[Part]:
    counts = (part.input_tokens, part.output_tokens, part.cache_read_tokens, part.cache_write_tokens)
    return [(name, style), *((f"{number:,}", style) for number in counts), (format_cost(part), style)]


def format_cost(part: Breakdown) -> str:
    """`$1.23`, with more digits where it is less than a dime; what is not known is said."""
    if part.estimated_cost_usd is None:
        return "unknown"
    usd = part.estimated_cost_usd
    shown = f"${usd:,.2f}" if usd == 0 or usd >= 0.1 else f"${usd:.4f}" if usd >= 0.0001 else "< $0.0001"
    return f"{shown} + unknown" if part.unpriced_tokens else shown
