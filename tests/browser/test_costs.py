"""Costs: sums that go up as tokens are used, prices that nobody knows, and a budget."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from tests.browser.conftest import Visit
from tests.browser.stage import Stage, until


def dollars(shown: Locator) -> float:
    return float(shown.inner_text().lstrip("$").replace(",", ""))


def test_costs_go_up_as_tokens_are_used_and_unknown_prices_are_told(visit: Visit, stage: Stage) -> None:
    page = visit("costs?range=1h")
    total = page.locator(".tile dd").first
    expect(total).to_contain_text("$")
    before = dollars(total)
    stage.report("Ada", "tokens.used", model="claude-opus-4-5", inputTokens=1_000_000, outputTokens=0)
    stage.report("Ada", "tokens.used", model="<i>nobody's</i>", inputTokens=77, outputTokens=0)
    until(page, lambda: dollars(total) >= before + 5, "five dollars more")
    note = page.locator(".note.warn")
    expect(note).to_contain_text("<i>nobody's</i>")
    expect(page.locator(".spent tr", has_text="<i>nobody's</i>")).to_contain_text("no price")
    page.get_by_role("tab", name="Agent").click()
    expect(page.locator(".legend")).to_contain_text("Ada")
    page.get_by_role("button", name="Show as a table").click()
    expect(page.locator(".figures thead")).to_contain_text("Ada")


def test_the_bar_and_the_view_show_the_same_total(visit: Visit, stage: Stage) -> None:
    page = visit("costs?range=1h")
    bar, total = (
        page.locator(".topbar .stat", has_text="Total cost").locator("b"),
        page.locator(".tile", has_text="In total").locator(".tabular"),
    )
    expect(total).to_contain_text("$")
    assert bar.inner_text() == total.inner_text()
    before = dollars(bar)
    stage.report("Ada", "tokens.used", model="claude-opus-4-5", inputTokens=1_000_003, outputTokens=0)
    page.locator(".topbar .stat", has_text="Total cost").click()
    shown = page.locator(".tile", has_text="all recorded usage").locator(".tabular")
    until(page, lambda: shown.count() and dollars(shown) >= before + 5, "it is counted")
    assert bar.inner_text() == shown.inner_text()


def test_a_budget_is_set_and_its_bar_shows_how_far_it_is_spent(visit: Visit, stage: Stage) -> None:
    stage.report("Ada", "tokens.used", model="claude-opus-4-5", inputTokens=1_000_001, outputTokens=0)
    stage.wait_for_event("tokens.used", "1000001")
    page = visit("costs", allows_network_errors=True)  # a browser logs that it was asked before
    page.get_by_role("button", name="Set a budget").click()
    page.get_by_role("spinbutton", name="Total").fill("1000")
    page.get_by_label("Per hour").fill("1")
    page.get_by_label("Alert me at").fill("80")
    page.get_by_text("Start no more agents").click()
    page.get_by_role("button", name="Save").click()
    asked = page.get_by_role("dialog", name="This budget is already spent")
    expect(asked).to_contain_text("in the last hour. No more agents will be started.")
    asked.get_by_role("button", name="Set it anyway").click()
    expect(page.locator(".toast", has_text="The budget is set.")).to_be_visible()
    hour, total = page.get_by_role("meter", name="Per hour"), page.get_by_role("meter", name="Total")
    expect(hour).to_have_class(re.compile("danger"))
    expect(total).to_have_class(re.compile("ok"))
    page.reload()
    expect(total).to_be_visible()
    expect(page.locator(".budget")).to_contain_text("start no more agents")


def test_a_budget_that_would_stop_agents_says_whom_and_is_not_set_unless_that_is_wanted(visit: Visit, stage: Stage) -> None:
    stage.report("Ada", "tokens.used", model="claude-opus-4-5", inputTokens=1_000_002, outputTokens=0)
    stage.wait_for_event("tokens.used", "1000002")
    page = visit("costs", allows_network_errors=True)
    page.locator(".budget header button").click()
    page.get_by_role("spinbutton", name="Total").fill("2")
    page.get_by_text("Stop all agents").click()
    page.get_by_role("button", name="Save").click()
    asked = page.get_by_role("dialog", name="This budget is already spent")
    expect(asked).to_contain_text(re.compile(r"of \$2\.00 in total.* Ada.* will be stopped now"))
    asked.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog", name="Budget", exact=True)).to_be_visible()
    assert stage.get("costs/budget")["action"] != "stop-all"


def test_what_would_follow_is_said_before_it_is_saved(visit: Visit, stage: Stage) -> None:
    stage.report("Bob", "tokens.used", model="claude-opus-4-5", inputTokens=1_000_004, outputTokens=0)
    stage.wait_for_event("tokens.used", "1000004")
    page = visit("costs")
    until(page, lambda: dollars(page.locator(".spent tr", has_text="Bob").locator(".strong").first) >= 5, "it is counted")
    page.locator(".budget header button").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Add a limit").click()
    dialog.get_by_label("Name", exact=True).fill("Bob")
    dialog.get_by_label("Its limit").fill("1000")
    follows = dialog.get_by_role("status", name="What follows")
    expect(follows).to_contain_text("of $1,000.00 left. Then: you are alerted.")
    dialog.get_by_text("Stop all agents").click()
    expect(follows).to_contain_text("Bob alone is stopped.")
    dialog.get_by_label("Its limit").fill("1")
    expect(follows).to_contain_text("of $1.00 is spent already. At once: Bob alone is stopped.")
    dialog.get_by_role("spinbutton", name="Total").fill("5000")
    expect(follows).to_contain_text(re.compile(r"All together: .* would be stopped, and no more agents started"))
    dialog.get_by_text("Alert only").click()
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator(".toast", has_text="The budget is set.")).to_be_visible()
    assert stage.get("costs/budget")["agents"] == {"Bob": 1}
    expect(page.get_by_role("meter", name="Bob")).to_have_class(re.compile("danger"))
