"""No view has a serious fault that axe can find, in light or dark, on a desk, a laptop or a phone; and nothing is cut."""

from __future__ import annotations

import json
from itertools import cycle
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
LAPTOP = {"width": 1280, "height": 800}
ON_A_PHONE = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
RUN = "axe.run({ resultTypes: ['violations'] }).then((result) => result.violations)"
SERIOUS = {"serious", "critical"}
# What one reads or presses, and cannot see whole: beyond the screen, or cut by what is around it and does not scroll.
CUT = """() => [...document.querySelectorAll("button, a[href], input, select, textarea, h1, h2")].filter((it) => {
  const { left, right, width } = it.getBoundingClientRect();
  if (!width || !it.checkVisibility({ visibilityProperty: true }) || it.closest("svg, .sr-only")) return false;
  for (let around = it.parentElement; around; around = around.parentElement) {
    const { overflowX } = getComputedStyle(around);
    if (["auto", "scroll"].includes(overflowX) && around.scrollWidth > around.clientWidth) return false;
    const edge = around.getBoundingClientRect();
    if (overflowX !== "visible" && (right > edge.right + 1 || left < edge.left - 1)) return true;
  }
  return left < -1 || right > innerWidth + 1;
}).map((it) => it.outerHTML.slice(0, 200))"""


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


@pytest.mark.parametrize(("view", "scheme"), [*zip(VIEWS, cycle(["light", "dark"]), strict=False)])  # a desk has all in both
def test_on_a_laptop(visit: Visit, view: str, scheme: str) -> None:
    page = show(visit, view, color_scheme=scheme, viewport=LAPTOP)
    assert find_faults(page) == []
    assert page.evaluate(CUT) == []
    expect_to_fit(page)


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


@pytest.mark.parametrize("style", ["margin-left: 2000px", "position: fixed; left: -20px"])
def test_it_would_see_what_is_cut(visit: Visit, style: str) -> None:
    page = show(visit, "conversations", viewport=LAPTOP, color_scheme="light")
    page.evaluate("document.querySelector('main .view-head').insertAdjacentHTML('beforeend', '<button id=planted>Cut</button>')")
    page.evaluate(
        "(style) => { document.getElementById('planted').style.cssText = style; }", style
    )  # as a part of HTML, it is refused
    found = page.evaluate(CUT)
    page.evaluate("document.getElementById('planted').remove()")
    assert any("planted" in each for each in found)
