"""The suite that checks relays: a relay that keeps to the protocol passes, and each planted fault is found by its rule."""

from __future__ import annotations

import asyncio
import json
from functools import cache

import pytest

from agent_relay.arc.conformance.case import Case, Level
from agent_relay.arc.conformance.cases import CASES, SECTIONS
from agent_relay.arc.conformance.report import conforms, describe, summarise
from agent_relay.arc.conformance.runner import Outcome, Result, run_cases
from agent_relay.arc.conformance.stage import Relay
from tests.arc.small_relay import SmallRelay

TIMEOUT_S = 3.0  # that something never comes is a fault's usual sign, and costs so long


def check(small: SmallRelay, rule: str | None = None, timeout_s: float = TIMEOUT_S) -> list[Result]:
    async def main() -> list[Result]:
        cases = [case for case in CASES if rule in {None, case.id}]
        return [result async for result in run_cases(Relay(small.url, timeout_s), cases)]

    with small:
        return asyncio.run(main())


@cache
def results_of_a_good_relay() -> tuple[Result, ...]:
    return tuple(check(SmallRelay(), timeout_s=10.0))


def broken(results: list[Result] | tuple[Result, ...]) -> dict[str, str]:
    return {result.case.id: result.detail for result in results if result.outcome in {Outcome.BROKEN, Outcome.UNCHECKED}}


def test_a_relay_that_keeps_to_the_protocol_passes() -> None:
    results = results_of_a_good_relay()
    assert broken(results) == {}
    assert conforms(results)
    assert {result.case.id for result in results if result.outcome is Outcome.NOT_OFFERED} == {
        "limits/keeps-its-rate-limit", "presence/lists-who-is-there", "presence/tells-who-comes-and-goes",
    }  # fmt: skip


def test_one_that_offers_nothing_passes_too() -> None:
    results = check(SmallRelay("silent-errors", "no-pong", extensions=(), welcomes=False), timeout_s=2.0)
    assert broken(results) == {}
    left_out = {result.case.section for result in results if result.outcome is Outcome.NOT_OFFERED}
    assert left_out == {"welcome", "limits", "errors", "heartbeat", "subscriptions", "offline", "persistence", "presence"}


FAULTS = {
    "client-from": "relay-assigned fields/sets-from",
    "client-ts": "relay-assigned fields/sets-ts",
    "ts-in-seconds": "relay-assigned fields/sets-ts",
    "client-id": "relay-assigned fields/sets-id",
    "same-id": "relay-assigned fields/ids-are-unique",
    "drops-fields": "relay-assigned fields/keeps-other-fields",
    "any-token": "connection/refuses-an-unknown-token",
    "no-query-token": "connection/takes-the-token-from-the-query",
    "reuses-agent-ids": "registration/refuses-a-taken-id",
    "any-agent-id": "registration/refuses-ids-that-are-none",
    "same-token": "registration/tokens-differ",
    "null-stops-it": "message validation/null",
    "needs-no-payload": "message validation/no-payload",
    "echoes-broadcasts": "routing/broadcasts-to-all-but-the-sender",
    "subscribers-only": "routing/broadcasts-to-all-but-the-sender",
    "direct-to-all": "routing/sends-direct-messages-to-one",
    "first-recipient-only": "routing/sends-to-several",
    "repeats": "routing/sends-once-to-who-is-named-twice",
    "keeps-the-dead": "disconnection/survives-an-abrupt-end",
    "no-size-limit": "limits/keeps-its-size-limit",
    "leaks-to-subscribers": "subscriptions/keeps-direct-messages-private",
    "never-unsubscribes": "subscriptions/unsubscribes",
    "forgets-the-absent": "offline/stores-direct-messages",
    "two-at-once": "one connection an agent/the-newer-one-takes-over",
    "shows-all-history": "persistence/shows-own-and-broadcast-messages",
}


@pytest.mark.parametrize(("fault", "rule"), FAULTS.items(), ids=FAULTS)
def test_a_planted_fault_is_found_by_its_rule(fault: str, rule: str) -> None:
    results = check(SmallRelay(fault), rule)
    assert list(broken(results)) == [rule]
    assert conforms(results) == (results[0].case.level is Level.ADVICE)


def test_every_rule_has_a_text_a_level_and_a_name_of_its_own() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
    assert [case.id for case in CASES if not case.rule.endswith(".")] == []
    assert {case.section for case in CASES if case.level is Level.REQUIRED} == {section.name for section in SECTIONS[:6]}


def test_the_report_for_programs() -> None:
    results = results_of_a_good_relay()
    described = json.loads(json.dumps(describe("ws://here/arc", results, {"relay": "small"})))
    assert described["conforms"] is True
    assert described["counts"] == {
        "kept": len(CASES) - 3,
        "broken": 0,
        "not_offered": 3,
        "unchecked": 0,
        "advice_not_followed": 0,
    }
    assert [section["section"] for section in described["sections"]] == [section.name for section in SECTIONS]
    ignored = Result(Case("s", "n", "R.", Level.ADVICE, CASES[0].check), Outcome.BROKEN)
    assert summarise([ignored])["advice_not_followed"] == 1
    assert conforms([ignored])
    assert not conforms([Result(CASES[0], Outcome.UNCHECKED)])


def test_a_relay_that_is_not_there_is_told_from_a_bad_one() -> None:
    async def main() -> None:
        with pytest.raises(Exception, match="No answer"):
            async for _ in run_cases(Relay("ws://127.0.0.1:1/arc", 1.0)):
                pass

    asyncio.run(main())
