"""No view has a serious fault that axe can find, in light or dark, on a desk or a phone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.stage import DESKTOP, PHONE

AXE = (Path(__file__).parent / "vendor/axe-core/axe.min.js").read_text()
VIEWS = [
    "conversations", "conversations/pair/Alice,Bob", "conversations?select=agent:Alice", "attention", "terminals", "timeline",
    "replay", "graph", "costs", "dead-letters",
]  # fmt: skip
SERIOUS = {"serious", "critical"}


def find_faults(page: Page) -> list[str]:
    page.evaluate(AXE)
    found: list[dict[str, Any]] = page.evaluate("axe.run().then((result) => result.violations)")
    return [
        f"{fault['id']}: {node['html'][:200]} {json.dumps(node['failureSummary'])[:300]}"
        for fault in found
        if fault["impact"] in SERIOUS
        for node in fault["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_on_a_desk(open_view: OpenPage, view: str, scheme: str) -> None:
    page, _ = open_view(f"#/{view}", color_scheme=scheme, viewport=DESKTOP, reduced_motion="reduce")
    page.locator("main h1, main .view").first.wait_for()
    expect(page.locator("main .spinner, main .skeleton")).to_have_count(0)
    assert find_faults(page) == []


@pytest.mark.parametrize("view", ["conversations", "attention", "costs"])
def test_on_a_phone(open_view: OpenPage, view: str) -> None:
    page, _ = open_view(f"#/{view}", viewport=PHONE, has_touch=True, is_mobile=True, reduced_motion="reduce")
    page.locator("main").first.wait_for()
    expect(page.locator("main .spinner, main .skeleton")).to_have_count(0)
    assert find_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways"


def test_it_would_find_one(open_view: OpenPage) -> None:
    page, _ = open_view()
    page.locator("main").first.wait_for()
    page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<button></button>')")
    assert any(fault.startswith("button-name") for fault in find_faults(page))
