"""ARCHITECTURE.md names modules and functions that exist, so that a reader who looks for one finds it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.architecture import MAY_IMPORT, PARTS_MAY_IMPORT

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "agent_relay"
PAGE = ROOT / "ARCHITECTURE.md"
WALKS = (
    "One message", "From screen to screen", "A permission and back", "A message over HTTP", "A message over ARC",
    "A message between hosts", "A tool call", "A vote", "A run and its agents",
)  # fmt: skip

_NAMED = re.compile(r"`(\w+(?:\.\w+)+)`")


def named_in(text: str) -> list[str]:
    """Dotted names in backticks that begin with a room, such as `core.router` or `terminal.output.parser.CommandParser`."""
    return [name for name in _NAMED.findall(text) if name.split(".")[0] in MAY_IMPORT]


def missing_part(name: str) -> str:
    """The first part of a dotted name that does not exist; empty when all of it does."""
    place, parts = SOURCE, name.split(".")
    while parts and (place / parts[0]).is_dir():
        place /= parts.pop(0)
    if not parts:
        return ""
    place /= f"{parts.pop(0)}.py" if (place / f"{parts[0]}.py").is_file() else "__init__.py"
    body: list[ast.stmt] = ast.parse(place.read_text("utf-8")).body
    for part in parts:
        found = [node for node in body if part in _defined_by(node)]
        if not found:
            return part
        body = found[0].body if isinstance(found[0], ast.ClassDef) else []
    return ""


def _defined_by(node: ast.stmt) -> list[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []


@pytest.mark.parametrize("name", sorted(set(named_in(PAGE.read_text("utf-8")))))
def test_what_the_page_names_exists(name: str) -> None:
    assert missing_part(name) == "", f"ARCHITECTURE.md names `{name}`"


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("core", ""),
        ("terminal.screen", ""),
        ("protocol.framing.FrameDecoder", ""),
        ("protocol.framing.FrameDecoder.feed", ""),
        ("core.nowhere", "nowhere"),
        ("protocol.framing.Nobody", "Nobody"),
        ("protocol.framing.FrameDecoder.fly", "fly"),
    ],
)
def test_a_name_that_does_not_exist_is_found(name: str, missing: str) -> None:
    assert missing_part(name) == missing


@pytest.mark.parametrize("title", WALKS)
def test_each_walk_names_a_module_in_every_step(title: str) -> None:
    text = PAGE.read_text("utf-8")
    (section,) = re.findall(rf"^### {title}\n(.*?)(?=^##)", text, re.MULTILINE | re.DOTALL)
    steps = re.findall(r"^\d+\. .*(?:\n   .*)*", section, re.MULTILINE)
    assert len(steps) >= 4
    assert [step for step in steps if not named_in(step)] == []


def test_the_diagram_shows_every_room_and_every_part_of_the_terminal_room() -> None:
    (diagram,) = re.findall(r"^```\n(.*?protocol.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)[:1]
    shown = set(re.findall(r"\w+", diagram))
    assert set(MAY_IMPORT) - {"testing"} <= shown
    assert set(PARTS_MAY_IMPORT) <= shown


def folders_below(source: Path) -> set[str]:
    """Packages inside a room, and inside a part of the divided one, as the page writes them."""
    places = [path.parent.relative_to(source).parts for path in source.rglob("__init__.py")]
    return {".".join(parts) for parts in places if len(parts) > (2 if parts[:1] == ("terminal",) else 1)}


def test_the_page_names_every_folder() -> None:
    folders = folders_below(SOURCE)
    assert {"storage.sqlite", "terminal.doors.claude", "transports.http.routes"} <= folders
    assert folders - set(named_in(PAGE.read_text("utf-8"))) == set()


def test_a_folder_that_is_not_named_is_found(tmp_path: Path) -> None:
    for place in ("core", "core/secret", "terminal/screen", "terminal/screen/secret"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "__init__.py").touch()
    assert folders_below(tmp_path) == {"core.secret", "terminal.screen.secret"}
