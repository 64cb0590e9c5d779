"""The suite that checks relays: a relay that keeps to the protocol passes, and each planted fault is found by its rule."""

from __future__ import annotations

import asyncio
import json
from functools import cache

import pytest

from agent_relay.arc.conformance.case import Case, Level
from agent_relay.arc.conformance.runner import CASES, SECTIONS, Outcome, Result, conforms, describe, run_cases, summarise
from agent_relay.arc.conformance.stage import Relay
from tests.arc.faulty_relay import FaultyRelay
from tests.arc.small_relay import SmallRelay

TIMEOUT_S = 1.0  # that something never comes is a fault's usual sign, and costs so long


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
    results = check(SmallRelay("silent-errors", "no-pong", extensions=(), welcomes=False), timeout_s=5.0)
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
    "two-at-once": "one connection per agent/the-newer-one-takes-over",
    "shows-all-history": "persistence/shows-own-and-broadcast-messages",
}


FURTHER_FAULTS = [
    ("another-id", "registration/gives-the-id-asked-for"),
    ("picks-nonsense", "registration/picks-an-id"),
    ("relay-for-all", "registration/keeps-the-relays-name"),
    ("no-header-token", "connection/takes-the-token-from-the-header"),
    ("guests", "connection/refuses-no-token"),
    ("query-wins", "connection/the-header-wins"),
    ("payloads-as-text", "relay-assigned fields/keeps-to-and-payload"),
    *(
        ("ends-on-nonsense", f"message validation/{what}")
        for what in (
            "not-json", "a-number", "a-text", "an-array", "nothing", "no-to", "to-is-text", "to-holds-numbers", "binary",
        )
    ),
    ("ends-all-on-nonsense", "message validation/others-do-not-notice"),
    ("ends-on-unknown", "routing/drops-what-is-for-nobody"),
    ("one-way", "routing/answers-both-ways"),
    ("turns-around", "routing/keeps-the-order"),
    ("not-to-the-sender", "routing/sends-to-the-sender-who-is-named"),
    ("burns-tokens", "disconnection/answers-a-close"),
    ("bare-welcome", "welcome/comes-first"),
    ("flat-welcome", "welcome/is-an-envelope-too"),
    ("smaller-limit", "limits/takes-what-is-within"),
    ("ends-on-large", "limits/lives-on-after-a-large-one"),
    ("no-rate-limit", "limits/keeps-its-rate-limit"),
    ("other-words", "errors/says-invalid-message"),
    ("flat-errors", "errors/errors-are-envelopes-too"),
    ("no-refs", "errors/unknown-commands-are-said"),
    ("pong-from-nobody", "heartbeat/answers-ping"),
    ("subscribes-to-nothing", "subscriptions/subscribes"),
    ("shows-what-is-written-to-others", "subscriptions/does-not-show-what-others-write-to-it"),
    ("forgets-subscriptions", "subscriptions/are-kept"),
    ("the-same-again", "tokens/refresh-gives-another"),
    ("keeps-the-revoked", "tokens/revoking-ends-everything"),
    ("finds-everything", "persistence/finds-words"),
    ("replays-everything", "persistence/replays"),
    ("no-presence", "presence/lists-who-is-there"),
    ("no-presence", "presence/tells-who-comes-and-goes"),
]  # fmt: skip
# The WebSocket library under the small relay answers pings by itself.
WITHOUT_A_FAULT = {"heartbeat/answers-the-sockets-ping"}


def test_every_rule_has_a_fault_that_it_finds() -> None:
    found = {*FAULTS.values(), *(rule for _, rule in FURTHER_FAULTS)}
    assert {case.id for case in CASES} - found == WITHOUT_A_FAULT


@pytest.mark.parametrize(
    ("relay", "rule"),
    [(SmallRelay(fault), rule) for fault, rule in FAULTS.items()]
    + [(FaultyRelay(fault), rule) for fault, rule in FURTHER_FAULTS],
    ids=[*FAULTS, *(f"{fault} {rule}" for fault, rule in FURTHER_FAULTS)],
)
def test_a_planted_fault_is_found_by_its_rule(relay: SmallRelay, rule: str) -> None:
    results = check(relay, rule)
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
        with pytest.raises(Exception, match="No response"):
            async for _ in run_cases(Relay("ws://127.0.0.1:1/arc", 1.0)):
                pass

    asyncio.run(main())
