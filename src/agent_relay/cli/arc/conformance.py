"""The report of `arc conformance`: a line for each rule as it is checked, by section, and a sentence at the end."""

from __future__ import annotations

from collections.abc import Sequence

from agent_relay.arc.conformance.case import Level, Unchecked
from agent_relay.arc.conformance.runner import CASES, SECTIONS, Outcome, Result, conforms, describe, run_cases, summarise
from agent_relay.arc.conformance.stage import Relay
from agent_relay.cli.failures import FAILED, OK, USAGE, Failure
from agent_relay.cli.output.formats import count
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen

_SIGNS = {
    Outcome.KEPT: ("✓", "green"),
    Outcome.BROKEN: ("✗", "bold red"),
    Outcome.NOT_OFFERED: ("–", "dim"),
    Outcome.UNCHECKED: ("?", "bold yellow"),
}


async def check_relay(
    url: str, screen: Screen, sections: Sequence[str], timeout_s: float, *, invite: str | None, api_token: str | None,
    strict: bool, as_json: bool,
) -> int:  # fmt: skip
    known = [section.name for section in SECTIONS]
    if unknown := [name for name in sections if name not in known]:
        raise Failure(f"Unknown section {unknown[0]!r}; choose from: {', '.join(known)}.", USAGE)
    relay = Relay(url, timeout_s, invite=invite, api_token=api_token)
    results: list[Result] = []
    try:
        async for result in run_cases(relay, [case for case in CASES if not sections or case.section in sections]):
            if not as_json:
                _show(screen, result, new_section=not results or results[-1].case.section != result.case.section)
            results.append(result)
    except Unchecked as unchecked:
        raise Failure(clean_line(f"The relay could not be checked: {unchecked}")) from None
    passed = conforms(results) and not (strict and any(result.outcome is Outcome.BROKEN for result in results))
    if as_json:
        screen.json(describe(url, results, relay.facts.welcome))
    else:
        _conclude(screen, results, passed=passed)
    return OK if passed else FAILED


def _show(screen: Screen, result: Result, *, new_section: bool) -> None:
    case = result.case
    if new_section:
        screen.line((case.section, "bold"))
    is_advice = case.level is Level.ADVICE
    sign = ("!", "yellow") if is_advice and result.outcome is Outcome.BROKEN else _SIGNS[result.outcome]
    screen.line("  ", sign, " ", case.rule, *((("  advice", "dim"),) if is_advice else ()))
    if result.detail and result.outcome is not Outcome.KEPT:
        screen.block(clean_line(result.detail), indent=6, style="dim" if result.outcome is Outcome.NOT_OFFERED else "")
    screen.flush()


def _conclude(screen: Screen, results: Sequence[Result], *, passed: bool) -> None:
    counts = summarise(results)
    screen.line()
    parts = [count(counts["kept"], "rule") + " kept", f"{counts['broken']} broken", f"{counts['not_offered']} not offered"]
    if counts["unchecked"]:
        parts.append(f"{counts['unchecked']} could not be checked")
    if counts["advice_not_followed"]:
        parts.append(count(counts["advice_not_followed"], "piece") + " of advice not followed")
    verdict = ("This relay follows the protocol: ", "bold green") if passed else ("This relay does not pass: ", "bold red")
    screen.line(verdict, ", ".join(parts) + ".")
