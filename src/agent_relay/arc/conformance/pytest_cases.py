"""The rules as tests. In a test file of your relay:

    from agent_relay.arc.conformance.pytest_cases import *

and, beside it or in `conftest.py`, a fixture `arc_url` with the address of a running relay, or the address in `ARC_URL`. A relay
that lets nobody register just so is given what `ARC_INVITE` or `ARC_API_TOKEN` says.
Advice that is not followed is an expected failure; what a relay does not offer is skipped.
"""

from __future__ import annotations

import asyncio
import os

import pytest

from agent_relay.arc.conformance.case import Case, Level
from agent_relay.arc.conformance.runner import CASES, Outcome, Result, run_case
from agent_relay.arc.conformance.stage import Relay

__all__ = ["arc_relay", "arc_url", "test_arc_rule"]


@pytest.fixture(scope="session")
def arc_url() -> str:
    url = os.environ.get("ARC_URL")
    if not url:
        pytest.fail("no relay address: define a fixture `arc_url`, or set ARC_URL in the environment")
    return url


@pytest.fixture(scope="module")
def arc_relay(arc_url: str) -> Relay:
    """One for all rules: its agents are registered once."""
    relay = Relay(arc_url, invite=os.environ.get("ARC_INVITE"), api_token=os.environ.get("ARC_API_TOKEN"))
    asyncio.run(relay.learn_facts())
    return relay


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_arc_rule(arc_relay: Relay, case: Case) -> None:
    result: Result = asyncio.run(run_case(arc_relay, case))
    if result.outcome is Outcome.NOT_OFFERED:
        pytest.skip(f"not offered: {result.detail or case.section}")
    if result.outcome is Outcome.BROKEN and case.level is Level.ADVICE:
        pytest.xfail(f"advice: {case.rule} {result.detail}")
    if result.outcome is not Outcome.KEPT:
        pytest.fail(f"{case.rule} {result.detail}", pytrace=False)
