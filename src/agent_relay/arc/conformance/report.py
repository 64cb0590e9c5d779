"""The findings, for programs: by section of the protocol, and in all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_relay.arc.conformance.case import Level
from agent_relay.arc.conformance.runner import Outcome, Result


def conforms(results: Sequence[Result]) -> bool:
    return not any(result.fails for result in results)


def summarise(results: Sequence[Result]) -> dict[str, int]:
    """Counts of rules that were kept and so on; advice that was not followed is counted apart."""
    counts = {outcome.value.replace(" ", "_"): 0 for outcome in Outcome} | {"advice_not_followed": 0}
    for result in results:
        ignored = result.case.level is Level.ADVICE and result.outcome is Outcome.BROKEN
        counts["advice_not_followed" if ignored else result.outcome.value.replace(" ", "_")] += 1
    return counts


def describe(url: str, results: Sequence[Result], welcome: dict[str, Any] | None) -> dict[str, Any]:
    sections: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        case = result.case
        sections.setdefault(case.section, []).append(
            {"name": case.name, "rule": case.rule, "level": case.level.value, "outcome": result.outcome.value,
             "detail": result.detail, "took_ms": result.took_ms}
        )  # fmt: skip
    return {
        "url": url, "conforms": conforms(results), "counts": summarise(results), "welcome": welcome,
        "sections": [{"section": section, "rules": rules} for section, rules in sections.items()],
    }  # fmt: skip
