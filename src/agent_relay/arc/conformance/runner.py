"""Runs the rules against a relay, one after the other, and says of each what was found."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from websockets.exceptions import WebSocketException

from agent_relay.arc.conformance.basic_rules import BASIC
from agent_relay.arc.conformance.case import Broken, Case, Level, NotOffered, Unchecked
from agent_relay.arc.conformance.extension_rules import EXTENSIONS
from agent_relay.arc.conformance.offered_rules import OFFERED
from agent_relay.arc.conformance.stage import Relay, Stage

SECTIONS = [*BASIC, *OFFERED, *EXTENSIONS]  # all rules, in the order of the protocol
CASES: list[Case] = [case for section in SECTIONS for case in section.cases]

_MOST_WAITS = 12  # a check waits for a few things, one after the other


class Outcome(StrEnum):
    KEPT = "kept"
    BROKEN = "broken"
    NOT_OFFERED = "not offered"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class Result:
    case: Case
    outcome: Outcome
    detail: str = ""
    took_ms: int = 0

    @property
    def fails(self) -> bool:
        """Whether the relay cannot be said to keep to the protocol. Advice that is not followed does not count."""
        return self.outcome in {Outcome.BROKEN, Outcome.UNCHECKED} and self.case.level is not Level.ADVICE


async def run_cases(relay: Relay, cases: Iterable[Case] = CASES) -> AsyncIterator[Result]:
    """Raises Unchecked where the relay cannot be reached at all."""
    await relay.learn_facts()
    for case in cases:
        yield await run_case(relay, case)


async def run_case(relay: Relay, case: Case) -> Result:
    if case.offered is not None and not case.offered(relay.facts):
        return Result(case, Outcome.NOT_OFFERED)
    began = time.monotonic()
    outcome, detail = await _check(relay, case)
    return Result(case, outcome, detail, round((time.monotonic() - began) * 1000))


async def _check(relay: Relay, case: Case) -> tuple[Outcome, str]:
    stage = Stage(relay)
    try:
        async with asyncio.timeout(relay.timeout_s * _MOST_WAITS):
            await case.check(stage)
    except Broken as broken:
        return Outcome.BROKEN, str(broken)
    except NotOffered as missing:
        return Outcome.NOT_OFFERED, str(missing)
    except Unchecked as unchecked:
        return Outcome.UNCHECKED, str(unchecked)
    except TimeoutError:
        return Outcome.BROKEN, "the relay did not respond in time"
    except (OSError, WebSocketException) as error:
        return Outcome.BROKEN, f"the connection failed: {str(error) or type(error).__name__}"
    finally:
        await stage.close()
    return Outcome.KEPT, ""


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
