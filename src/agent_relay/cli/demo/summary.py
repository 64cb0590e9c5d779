"""The end of the demonstration: what was counted and measured, for people and for programs."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

from agent_relay.cli.commands.explain import timeline
from agent_relay.cli.demo.evidence import Evidence
from agent_relay.cli.demo.script import YES
from agent_relay.cli.output.formats import count, format_span
from agent_relay.cli.output.message_view import text_of
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Part, Screen


def holds(evidence: Evidence) -> bool:
    """Once each, in order, and nothing in the dialog but what the person typed."""
    return evidence.verdict.holds and evidence.keys == YES


def show_summary(screen: Screen, evidence: Evidence, took_s: float) -> None:
    verdict, crash = evidence.verdict, evidence.crash
    good = holds(evidence)
    screen.line("")
    end = "Every message arrived once and in order" if good else "The promise was broken"
    screen.line((f"{end}, despite a daemon crash, in {took_s:.0f} s.", "bold green" if good else "bold red"))
    screen.line("")
    stray = len(evidence.keys) - evidence.keys.endswith(YES)
    wrong = verdict.doubled + verdict.unexpected
    facts: list[tuple[str, str, bool]] = [
        ("delivered", f"{verdict.delivered} of {verdict.expected}, of {count(verdict.accepted, 'message')}",
         verdict.delivered == verdict.expected),
        ("faults", f"lost {verdict.lost}, doubled {wrong}, out of order {verdict.out_of_order}",
         not (verdict.lost or wrong or verdict.out_of_order)),
        ("from print to screen", _latencies(evidence), True),
        ("the dialog", f"open for {evidence.open_s:.1f} s; the relay typed {count(stray, 'key')} into it", not stray),
        ("the crash", f"no daemon for {crash.gone_s:.1f} s; {count(crash.printed, 'message')} printed meanwhile", True),
    ]  # fmt: skip
    for title, text, is_good in facts:
        mark: Part = ("ok   ", "green") if is_good else ("WRONG", "bold red")
        screen.line("  ", mark, "  ", (f"{title:<22}", "dim"), text)
    for difference in evidence.differences:
        screen.line("         ", (clean_line(difference), "red"))
    screen.line("")
    message = evidence.explained.message
    screen.line((f"`agent-relay explain` of {text_of(message)!r}, which went through the crash:", "dim"))
    before: int | None = None
    for at, event, rest in timeline(message, evidence.explained.trail):
        gap = "" if before is None else f"+{format_span(max(0, at - before))}"
        screen.line((f"{gap:>12}", "dim"), "  ", (event, "green"), rest)
        before = at
    screen.flush()


def _latencies(evidence: Evidence) -> str:
    known = sorted(arrival.latency_s for arrival in evidence.arrivals if arrival.latency_s is not None)
    if not known:
        return "not measured"
    best, middle, most = (format_span(round(1000 * each)) for each in (known[0], statistics.median(known), known[-1]))
    return f"{best} minimum, {middle} median, {most} maximum"


def as_json(evidence: Evidence, took_s: float) -> dict[str, Any]:
    return {
        "holds": holds(evidence),
        **dataclasses.asdict(evidence.verdict),
        "differences": evidence.differences,
        "took_s": round(took_s, 3),
        "dialog": {"open_s": round(evidence.open_s, 3), "keys": evidence.keys},
        "crash": {"gone_s": round(evidence.crash.gone_s, 3), "printed": evidence.crash.printed},
        "arrivals": [
            {"from": one.sender, "to": one.to, "text": one.text,
             "print_to_screen_ms": None if one.latency_s is None else round(one.latency_s * 1000)}
            for one in evidence.arrivals
        ],
        "explained": {"message": evidence.explained.message, "trail": evidence.explained.trail},
    }  # fmt: skip
