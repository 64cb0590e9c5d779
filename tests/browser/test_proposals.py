"""The view Decisions: it follows votes live, the owner votes where asked to, and what has ended is below."""

from __future__ import annotations

import os
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.stage import Stage
from tests.browser.test_accessibility import find_faults


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """One of its own: others have nothing to decide."""
    with Stage() as made:
        yield made


def card(page: Page, title: str) -> Locator:
    return page.locator("article.proposal", has_text=title)


def test_votes_come_in_live_and_the_owner_has_one(stage: Stage, open_view: OpenPage) -> None:
    me = str(stage.get("status")["you"])
    with stage.visitor("Proposer") as proposer, stage.visitor("Voter") as voter:
        # Whoever has never said or joined anything cannot be asked.
        httpx.post(f"{stage.url}/api/v1/channels/decide/join", headers=stage.daemon.api_headers, timeout=60).raise_for_status()
        page, _ = open_view("#/decisions")
        expect(page.get_by_text("Nothing to decide")).to_be_visible()
        asked = stage.run(
            proposer.propose("Use SQLite <b>now</b>", [me, "Voter"], rule="unanimous", timeout=600, body="It is\nthere already.")
        )
        found = card(page, "Use SQLite <b>now</b>")  # text, whatever is in it
        expect(found).to_contain_text("All must approve. 0 of 2 participants voted.")
        expect(found.locator("time")).to_contain_text("left")
        expect(page.locator("nav a", has_text="Decisions").locator(".badge")).to_contain_text("1")
        stage.run(voter.vote(asked.id, "approve", "No new service."))
        expect(found.locator("[data-voter=Voter]")).to_contain_text("No new service.")
        assert find_faults(page) == []
        if folder := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=f"{folder}/decisions-open.png")
        found.get_by_label("Reason for your vote").fill("Go ahead.")
        found.get_by_role("button", name="Approve").click()
        expect(found.locator(".badge").first).to_have_text("Approved")
        expect(found).to_contain_text("Go ahead.")
        expect(found.get_by_role("button")).to_have_count(0)
        expect(page.locator("nav a", has_text="Decisions").locator(".badge")).to_have_count(0)
        info = stage.run(proposer.proposal(asked.id)).info
        assert (info.outcome, info.votes[me].reason) == ("approved", "Go ahead.")


def test_whoever_is_not_asked_only_looks_and_may_withdraw(stage: Stage, open_view: OpenPage) -> None:
    with stage.visitor("Proposer") as proposer, stage.visitor("Voter"):
        stage.run(proposer.propose("Among ourselves", ["Voter"], rule="weighted", weights={"Voter": 3}, timeout=600))
        page, _ = open_view("#/decisions")
        found = card(page, "Among ourselves")
        expect(found.locator("[data-voter=Voter]")).to_contain_text("counts 3")
        expect(found.get_by_role("button", name="Approve")).to_have_count(0)
        found.get_by_role("button", name="Withdraw").click()
        page.get_by_role("dialog").get_by_role("button", name="Withdraw").click()
        expect(found.locator(".badge").first).to_have_text("Withdrawn")
        expect(page.get_by_role("heading", name="Ended")).to_be_visible()
        if folder := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=f"{folder}/decisions-ended.png")


def test_the_owner_asks_agents_and_sees_what_they_decide(stage: Stage, open_view: OpenPage) -> None:
    with stage.visitor("Carol") as carol, stage.visitor("Dave") as dave:
        page, watched = open_view("#/decisions")
        watched.allows_network_errors = True  # a name that nobody has is refused
        page.get_by_role("button", name="Ask agents to vote").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("What is to be decided").fill("Release on Friday")
        dialog.get_by_label("Who votes").fill("Carol, Nobody-here")
        dialog.get_by_label("Approved by").select_option("quorum")
        dialog.get_by_label("How many").fill("50%")
        dialog.get_by_label("Ends").select_option("240")
        dialog.get_by_label("Description").fill("The tests are green.")
        assert find_faults(page) == []
        if folder := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=f"{folder}/decisions-ask.png")
        dialog.get_by_role("button", name="Ask them").click()
        expect(dialog.get_by_role("alert")).to_contain_text("Nobody-here")  # and what was written stays
        dialog.get_by_label("Who votes").fill("Carol, Dave")
        dialog.get_by_role("button", name="Ask them").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        found = card(page, "Release on Friday")
        expect(found).to_contain_text("You proposed it. 50% must approve.")
        expect(found).to_contain_text("The tests are green.")
        (proposal,) = [each for each in stage.run(carol.proposals()) if each.info.title == "Release on Friday"]
        stage.run(carol.vote(proposal.id, "approve"))
        expect(found.locator(".badge").first).to_have_text("Approved")
        assert stage.run(dave.proposals()) == []
