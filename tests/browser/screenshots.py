"""Pictures of the main views for the documentation, light and dark, on a desk and on a phone.

python -m tests.browser.screenshots docs/screenshots [name …]
"""

from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from PIL import Image
from playwright.sync_api import Browser, Page, expect

from scripts.dashboard_scene import SCENE, Scene
from tests.browser.stage import PHONE, Stage, open_browser, open_page

COLOURS = 256  # of a picture: half of its bytes, and nobody sees the difference
LARGEST_BYTES = 150_000
DESK = {"width": 1360, "height": 850}
PROJECT = "shop"
STEPS = 14
STEP_S = 0.4
REST_MS = 800  # until what moves has come to rest


class Shot(NamedTuple):
    name: str
    view: str
    shows: str  # what must be there before the picture is taken
    options: dict[str, Any]


def _on_a_desk(name: str, view: str, shows: str) -> list[Shot]:
    common = {"viewport": DESK, "reduced_motion": "reduce"}
    return [Shot(f"{name}-{scheme}", view, shows, common | {"color_scheme": scheme}) for scheme in ("light", "dark")]


def _on_a_phone(name: str, view: str, shows: str, scheme: str) -> Shot:
    options = {"viewport": PHONE, "has_touch": True, "is_mobile": True, "reduced_motion": "reduce", "color_scheme": scheme}
    return Shot(f"phone-{name}", view, shows, options)


SHOTS = [
    *_on_a_desk("conversations", "conversations/channel/%23build?select=agent:Alice", ".message"),
    *_on_a_desk("inbox", "inbox", "[data-request]"),
    *_on_a_desk("terminals", "terminals", ".xterm-rows:has-text('Ready.')"),
    *_on_a_desk("timeline", "timeline", "main canvas"),
    *_on_a_desk("graph", "graph?select=agent:Lead", "[data-node]"),
    *_on_a_desk("costs", "costs?range=1h", ".uplot"),
    _on_a_phone("agents", "agents", ".agent[data-agent]", "light"),
    _on_a_phone("conversations", "conversations/channel/%23build", ".message", "light"),
    _on_a_phone("inbox", "inbox", "[data-request]", "dark"),
]


async def _live_a_little(scene: Scene) -> None:
    """Something must have happened, over some time, to be seen in the timeline and the costs."""
    members = [about for about in SCENE["agents"] if about["name"] in scene.agents]
    for step in range(STEPS):
        about = members[step % len(members)]
        scene.work(about)
        await asyncio.sleep(STEP_S)
    for name in ("Term-1", "Term-2"):
        await scene.agents["Lead"].send(name, "Please build it once more.")


def _settle(page: Page, shows: str) -> None:
    page.locator(shows).first.wait_for()
    expect(page.locator("[data-connection=live]").first).to_be_attached()
    expect(page.locator("main .spinner")).to_have_count(0)
    page.evaluate("document.fonts.ready")
    page.wait_for_timeout(REST_MS)


def _take(browser: Browser, stage: Stage, shot: Shot, folder: Path) -> int:
    with open_page(browser, f"{stage.url}/#/{shot.view}", stage.daemon, **shot.options) as (page, _):
        _settle(page, shot.shows)
        taken = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    path = folder / f"{shot.name}.png"
    taken.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return path.stat().st_size


def main(folder: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [shot for shot in SHOTS if not names or shot.name in names]
    with open_browser() as browser, TemporaryDirectory(prefix="relay-") as temporary:
        project = Path(temporary) / PROJECT
        project.mkdir()
        with Stage(terminals=True, directory=project) as stage:
            stage.run(_live_a_little(stage.scene))
            for shot in wanted:
                size = _take(browser, stage, shot, folder)
                sys.stdout.write(f"{shot.name}.png {size:,} bytes\n")
                sys.stdout.flush()
                if size > LARGEST_BYTES:
                    raise SystemExit(f"{shot.name}.png is larger than {LARGEST_BYTES:,} bytes.")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
