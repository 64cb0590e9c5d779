"""The law of the rooms holds over the source, and the check that says so has been seen to bite."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture import MAY_IMPORT, PARTS_MAY_IMPORT, PURE_ROOMS, check_package, check_source

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "agent_relay"
PAGE = ROOT / "ARCHITECTURE.md"


def test_the_source_obeys() -> None:
    assert [str(violation) for violation in check_package(SOURCE)] == []


def test_the_check_looks_at_every_room() -> None:
    """A check that walks the wrong folder finds nothing wrong."""
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert {"protocol", "ports", "core", "daemon"} <= rooms


def test_no_two_rooms_may_import_each_other() -> None:
    for room, allowed in MAY_IMPORT.items():
        assert allowed <= set(MAY_IMPORT), room
        assert not [other for other in allowed if room in MAY_IMPORT[other]], room


def test_nobody_may_import_testing() -> None:
    assert not [room for room, allowed in MAY_IMPORT.items() if "testing" in allowed]


# --- every way to write an import is seen ----------------------------------------------------------------------------

FORBIDDEN = {
    "absolute": "import agent_relay.storage.sqlite",
    "absolute, renamed": "import agent_relay.storage as s",
    "one of several": "import re, agent_relay.storage",
    "from the room": "from agent_relay.storage import sqlite",
    "from inside the room": "from agent_relay.storage.sqlite import SqliteStore",
    "the room itself": "from agent_relay import storage",
    "one of several rooms": "from agent_relay import protocol, storage",
    "relative": "from ..storage import sqlite",
    "relative, the room itself": "from .. import storage",
    "relative, deeper": "from ..storage.sqlite import SqliteStore",
    "in a function": "def f():\n    from agent_relay.storage import sqlite\n    return sqlite",
    "in a method": "class C:\n    def f(self):\n        import agent_relay.storage",
    "under TYPE_CHECKING": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from agent_relay.storage import sqlite",
    "in a try": "try:\n    import agent_relay.storage\nexcept ImportError:\n    pass",
    "by name": "import importlib\nimportlib.import_module('agent_relay.storage.sqlite')",
    "by name, short": "from importlib import import_module\nimport_module('agent_relay.storage')",
    "by name, with a keyword": "import importlib\nimportlib.import_module(name='agent_relay.storage')",
    "by relative name": "import importlib\nimportlib.import_module('.storage', 'agent_relay')",
    "by relative name, from here": "import importlib\nimportlib.import_module('..storage', package=__package__)",
    "by __import__": "__import__('agent_relay.storage')",
}


@pytest.mark.parametrize("source", FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_a_forbidden_import_is_caught_however_it_is_written(source: str) -> None:
    reasons = [violation.reason for violation in check_source(source, Path("transports/planted.py"))]
    assert reasons == ["`transports` may not import `storage`"]


@pytest.mark.parametrize("source", FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_the_same_import_is_fine_where_it_is_allowed(source: str) -> None:
    assert check_source(source, Path("daemon/planted.py")) == []


@pytest.mark.parametrize("source", ["import importlib\nimportlib.import_module(name)", "__import__('agent_relay.' + room)"])
def test_a_computed_import_is_caught(source: str) -> None:
    (violation,) = check_source(source, Path("daemon/planted.py"))
    assert "computed" in violation.reason


@pytest.mark.parametrize("source", ["import agent_relay", "from agent_relay import RelayClient", "from agent_relay import *"])
def test_a_room_does_not_use_the_front_door(source: str) -> None:
    (violation,) = check_source(source, Path("cli/planted.py"))
    assert "front door" in violation.reason


def test_relative_imports_are_resolved_from_the_folder_they_stand_in() -> None:
    assert check_source("from ..files import private_files", Path("terminal/doors/planted.py")) == []
    assert check_source("from ...core import router", Path("terminal/doors/planted.py")) != []
    assert check_source("from . import sqlite", Path("storage/__init__.py")) == []
    assert check_source("from .sdk import RelayClient", Path("__init__.py")) == []


def test_the_version_and_the_way_to_start_python_may_be_asked_for_everywhere() -> None:
    for room in MAY_IMPORT:
        assert check_source("from agent_relay.interpreter import run_module", Path(room) / "planted.py") == []
        assert check_source("from agent_relay.version import __version__", Path(room) / "planted.py") == []


def test_only_the_pure_rooms_may_not_look_at_a_repository_or_a_file() -> None:
    for room in MAY_IMPORT:
        for line in ("from agent_relay.repository import find_checkout", "from agent_relay.private_files import is_locked"):
            assert bool(check_source(line, Path(room) / "planted.py")) == (room in PURE_ROOMS), room


# --- every cell of the table ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_may_import_what_the_table_says_and_nothing_else(room: str) -> None:
    caught = {
        other
        for other in MAY_IMPORT
        if other != room and check_source(f"from agent_relay.{other} import thing", Path(room) / "planted.py")
    }
    assert caught == set(MAY_IMPORT) - MAY_IMPORT[room] - {room}


@pytest.mark.parametrize("part", PARTS_MAY_IMPORT)
def test_a_part_of_the_terminal_room_may_import_what_its_table_says_and_nothing_else(part: str) -> None:
    caught = {
        other
        for other in PARTS_MAY_IMPORT
        if other != part and check_source(f"from agent_relay.terminal.{other}.x import y", Path("terminal", part, "planted.py"))
    }
    assert caught == set(PARTS_MAY_IMPORT) - PARTS_MAY_IMPORT[part] - {part}


def test_no_two_parts_may_import_each_other_and_every_part_is_in_the_table() -> None:
    for part, allowed in PARTS_MAY_IMPORT.items():
        assert allowed <= set(PARTS_MAY_IMPORT), part
        assert not [other for other in allowed if part in PARTS_MAY_IMPORT[other]], part
    assert {path.parent.name for path in (SOURCE / "terminal").glob("*/__init__.py")} == set(PARTS_MAY_IMPORT)


def test_a_screen_knows_no_doors_and_a_door_no_screens_however_deep_they_lie() -> None:
    (violation,) = check_source(
        "from agent_relay.terminal.screen.contents import Screen", Path("terminal/doors/codex/planted.py")
    )
    assert violation.reason == "`terminal.doors` may not import `terminal.screen`"
    (violation,) = check_source("def f():\n    from ..doors import door", Path("terminal/screen/planted.py"))
    assert violation.reason == "`terminal.screen` may not import `terminal.doors`"
    assert len(check_source("from agent_relay.terminal.screen import contents", Path("terminal/planted.py"))) == 1


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("__init__.py", "from agent_relay.daemon import lifecycle"),
        ("__main__.py", "from agent_relay.sdk import RelayClient"),
        ("version.py", "from agent_relay.protocol import names"),
        ("__init__.py", "from agent_relay.testing import plugin"),
    ],
)
def test_the_files_at_the_top_are_held_to_the_table_too(file: str, source: str) -> None:
    assert len(check_source(source, Path(file))) == 1


# --- the pure rooms -------------------------------------------------------------------------------------------------

IMPURE_MODULES = (
    "asyncio", "concurrent.futures", "datetime", "io", "logging", "multiprocessing", "os", "os.path", "pathlib",
    "queue", "random", "secrets", "select", "signal", "socket", "sqlite3", "ssl", "subprocess", "sys", "tempfile",
    "threading", "time", "uuid", "uvloop", "typer",
)  # fmt: skip


@pytest.mark.parametrize("module", IMPURE_MODULES)
@pytest.mark.parametrize("room", sorted(PURE_ROOMS))
def test_a_pure_room_does_not_import_what_waits_or_looks_at_the_world(room: str, module: str) -> None:
    for source in (f"import {module}", f"from {module} import thing", f"def f():\n    import {module} as m"):
        (violation,) = check_source(source, Path(room) / "planted.py")
        assert module in violation.reason
        assert check_source(source, Path("daemon/planted.py")) == []


@pytest.mark.parametrize(
    "source",
    [
        "async def f(): ...",
        "def f():\n    with open('x') as file:\n        return file",
        "print('hello')",
    ],
)
def test_a_pure_room_does_not_wait_or_write_without_an_import_either(source: str) -> None:
    assert len(check_source(source, Path("core/planted.py"))) == 1
    assert check_source(source, Path("transports/planted.py")) == []


def test_a_pure_room_may_compute() -> None:
    source = "import hashlib, hmac, re\nfrom collections import deque\nfrom collections.abc import Callable\nimport msgspec"
    assert check_source(source, Path("core/planted.py")) == []


# --- the core knows no transport --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "if peer.arc: pass",
        "from agent_relay.ports.connection import ARC_UID",
        "class ArcAgents: pass",
        "x = 1  # over a WebSocket",
        "def is_http(): pass",
        '"""Agents over ARC."""',
        "limits = arc_ephemeral",
    ],
)
def test_the_core_mentions_no_transport(source: str) -> None:
    (violation,) = check_source(source, Path("core/planted.py"))
    assert "knows no transport" in violation.reason
    assert check_source(source, Path("transports/planted.py")) == []


@pytest.mark.parametrize("source", ["search = archive = 1", "march = 2  # a parcel in an arch"])
def test_words_that_only_hold_a_transports_name_are_fine(source: str) -> None:
    assert check_source(source, Path("core/planted.py")) == []


# --- what stands at the top of the package --------------------------------------------------------------------------


def test_an_unknown_room_and_a_stray_file_are_caught(tmp_path: Path) -> None:
    for name in ("__init__.py", "__main__.py", "version.py", "py.typed", "stray.py", "core/__init__.py", "utils/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "gone" / "__pycache__").mkdir(parents=True)  # what is left of a room that was removed
    (tmp_path / "gone" / "__pycache__" / "x.pyc").write_text("")
    assert [violation.path for violation in check_package(tmp_path)] == ["stray.py", "utils"]


def test_a_violation_deep_in_a_room_is_found_and_placed(tmp_path: Path) -> None:
    planted = tmp_path / "core" / "deep" / "planted.py"
    planted.parent.mkdir(parents=True)
    planted.write_text('"""Planted."""\n\nimport time\n')
    assert [(violation.path, violation.line) for violation in check_package(tmp_path)] == [("core/deep/planted.py", 3)]


def test_a_class_whose_name_its_folder_has_already_is_found(tmp_path: Path) -> None:
    """Two folders may mirror each other, as the stores do; and a file's own parts are nobody else's business."""
    for name, source in {
        "a.py": "class Note: ...\nclass _Part: ...", "b.py": "class _Part: ...\nclass Note: ...", "deep/c.py": "class Note: ...",
    }.items():  # fmt: skip
        (tmp_path / "core" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "core" / name).write_text(source)
    assert [str(violation) for violation in check_package(tmp_path)] == ["core/b.py:2: `a.py` has a class `Note` too"]


# --- the page says the same -----------------------------------------------------------------------------------------


def _documented_rooms() -> dict[str, frozenset[str]]:
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", PAGE.read_text("utf-8"), re.MULTILINE)
    return {room: frozenset(re.findall(r"\w+", cell)) for room, cell in rows}


def test_the_page_shows_the_table_that_is_enforced() -> None:
    documented = _documented_rooms()
    everything = frozenset({"everything"})
    assert {room: allowed for room, allowed in documented.items() if allowed not in (MAY_IMPORT[room], everything)} == {}
    assert [room for room, allowed in documented.items() if allowed == everything] == ["testing"]


def test_the_page_has_a_row_for_every_room_and_none_that_does_not_exist() -> None:
    existing = {path.name for path in SOURCE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert set(_documented_rooms()) == existing
