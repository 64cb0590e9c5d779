"""Words for what was shown raw, or wrongly: steps of a message, budgets, and an agent that is paused."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.stage import Stage
from tests.browser.test_modules import call, lab

__all__ = ["lab"]
STEPS = ["stored", "sent", "resent", "received", "waits", "handed", "acknowledged", "injected", "read", "rejected", "expired",
         "busy", "unanswered", "dropped", "erased", "removed"]  # fmt: skip
PAUSED = re.compile(r"\bpaused\b")


@pytest.mark.parametrize("step", STEPS)
def test_each_step_of_a_message_has_words(lab: Page, step: str) -> None:
    words = call(lab, "conversations/receipts.js", "m.stepText({ event: x })", step)
    assert words[0].isupper()
    assert words != step


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (("hour", 8.1, "stop-all"), "The hourly budget is nearly spent: $8.10 of $10.00."),
        (("total", 10, "alert"), "The total budget is spent: $10.00 of $10.00."),
        (("session", 12, "stop"), "Bob's budget is spent: $12.00 of $10.00. The agent is stopped."),
    ],
)
def test_a_budget_is_spent_only_once_it_is(lab: Page, event: tuple[str, float, str], said: str) -> None:
    budget, spent, action = event
    told = {"budget": budget, "limitUsd": 10, "spentUsd": spent, "action": action, "agent": "Bob" if action == "stop" else None}
    assert call(lab, "lib/budgets.js", "m.describeBudget(x)", told) == said


def test_the_early_alert_does_not_say_that_it_is_spent(visit: Visit, stage: Stage) -> None:
    page = visit("conversations/all")
    expect(page.locator("[data-connection=live]")).to_be_visible()
    spent = stage.get("costs")["total"]["estimatedCostUsd"]
    budget = {"maxTotal": round(spent * 1.1, 2), "alertThreshold": 0.5, "action": "alert"}
    httpx.post(f"{stage.url}/api/v1/costs/budget", json=budget, headers=stage.daemon.api_headers).raise_for_status()
    expect(page.locator(".toast", has_text="is nearly spent")).to_be_visible()
    expect(page.locator(".toast", has_text="is spent")).to_have_count(0)


def test_an_agent_that_is_paused_is_not_green(visit: Visit, stage: Stage) -> None:
    page = visit("conversations/all")
    row = page.locator("[data-agent=Bob]")
    stage.report("Bob", "agent.state", state="idle", paused=True)
    expect(row).to_contain_text("Paused")
    expect(row.locator(".dot")).to_have_class(PAUSED)
    page.goto(f"{stage.url}/#/conversations/all?select=agent:Bob")
    expect(page.locator(".details .badge", has_text="Paused")).to_have_class(re.compile("warn"))
    stage.report("Bob", "agent.state", state="idle")
    expect(row.locator(".dot")).not_to_have_class(PAUSED)
