"""No view has a serious fault that axe can find, in light or dark, on a desk or a phone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.stage import PHONE, expect_to_fit

AXE = (Path(__file__).parent / "vendor/axe-core/axe.min.js").read_text()
# What must be there before a view is looked at.
VIEWS = {
    "conversations": ".message",
    "conversations/pair/Alice,Bob": ".conversation-view",
    "conversations?select=agent:Alice": ".details .facts",
    "inbox": "[data-request] [data-press=approve]",
    "decisions": ".empty",
    "terminals": ".empty",
    "timeline": ".tl-picture canvas",
    "replay": ".rp-session",
    "graph": "[data-node]",
    "costs": ".chart canvas",
    "dead-letters": ".letter",
}
ON_A_PHONE = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
RUN = "axe.run({ resultTypes: ['violations'] }).then((result) => result.violations)"
SERIOUS = {"serious", "critical"}


def find_faults(page: Page) -> list[str]:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    found: list[dict[str, Any]] = page.evaluate(RUN)
    return [
        f"{fault['id']}: {node['html'][:200]} {json.dumps(node['failureSummary'])[:300]}"
        for fault in found
        if fault["impact"] in SERIOUS
        for node in fault["nodes"]
    ]


def show(visit: Visit, view: str, **options: Any) -> Page:
    page = visit(view, **options)
    expect(page.locator(VIEWS[view]).first).to_be_visible()
    expect(page.locator("[data-connection=live]")).to_be_attached()
    expect(page.locator("main .spinner, main .skeleton")).to_have_count(0)
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_on_a_desk(visit: Visit, view: str, scheme: str) -> None:
    assert find_faults(show(visit, view, color_scheme=scheme)) == []


@pytest.mark.parametrize("view", ["conversations", "inbox", "costs"])
def test_on_a_phone(visit: Visit, view: str) -> None:
    page = show(visit, view, **ON_A_PHONE)
    assert find_faults(page) == []
    expect_to_fit(page)


def test_it_would_find_one(visit: Visit) -> None:
    page = show(visit, "conversations", color_scheme="light")
    page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<button id=nameless></button>')")
    found = find_faults(page)
    page.evaluate("document.getElementById('nameless').remove()")
    assert any(fault.startswith("button-name") for fault in found)
