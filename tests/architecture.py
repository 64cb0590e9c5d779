"""The law of the rooms, and the check that reads it off the source.

`MAY_IMPORT` is the table of ARCHITECTURE.md. Every import counts, wherever it stands: at the top, inside a function,
under TYPE_CHECKING, relative, or by name through importlib. The pure rooms are held to more: they compute, and neither
wait nor look at the world. `tests/unit/test_architecture.py` runs the check over the source and over planted violations.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "agent_relay"

_BELOW = frozenset({"protocol", "events"})  # what both sides of a connection share
_SERVER = frozenset({"core", "storage", "transports", "cluster", "dashboard"})  # wired together by the daemon alone

MAY_IMPORT: dict[str, frozenset[str]] = {
    "protocol": frozenset(),
    "events": frozenset({"protocol"}),
    "ports": _BELOW,
    "core": _BELOW | {"ports"},
    "storage": _BELOW | {"ports"},
    "transports": _BELOW | {"ports"},
    "cluster": _BELOW | {"ports"},
    "dashboard": _BELOW | {"ports"},
    "sdk": _BELOW,
    "arc": frozenset({"protocol"}),
    "bridge": frozenset({"protocol", "sdk", "arc"}),
    "terminal": _BELOW | {"ports", "sdk"},
    "patterns": _BELOW | {"sdk"},
    "mcp": frozenset({"protocol", "sdk"}),
    "acp": _BELOW | {"sdk"},
    "daemon": _BELOW | {"ports"} | _SERVER,
    "cli": _BELOW | {"sdk", "arc", "bridge", "terminal", "patterns", "mcp", "acp", "daemon"},
    "testing": _BELOW | {"ports", "sdk", "arc", "bridge", "terminal", "patterns", "mcp", "acp", "daemon", "cli"} | _SERVER,
}

# The parts of the terminal room. A screen knows nothing of doors, a door nothing of screens; `agent` connects them all.
PARTS_MAY_IMPORT: dict[str, frozenset[str]] = {
    "files": frozenset(),
    "profiles": frozenset(),
    "screen": frozenset({"profiles"}),
    "backends": frozenset({"files", "screen"}),
    "output": frozenset({"profiles", "screen"}),
    "doors": frozenset({"files", "profiles", "output"}),
    "reports": frozenset({"files", "output", "doors"}),
    "delivery": frozenset({"files", "profiles", "screen", "backends", "output", "doors", "reports"}),
    "requests": frozenset({"profiles", "screen", "backends", "output", "doors", "reports", "delivery"}),
    "acp": frozenset({"files", "backends", "output", "doors"}),
    "recordings": frozenset({"files", "profiles", "screen", "backends", "output"}),
    "agent": frozenset(
        {"files", "profiles", "screen", "backends", "output", "doors", "reports", "delivery", "requests", "recordings"}
    ),
}
_DIVIDED_ROOM = "terminal"

# The modules that are no room: the front door, `python -m agent_relay`, and what every room may ask for: the version, how
# Python is started, which git repository a folder belongs to, and how small files of the user's own are replaced.
FRONT_DOOR = "__init__"
_DOORS: dict[str, frozenset[str]] = {
    FRONT_DOOR: frozenset({"protocol", "sdk", "patterns"}),
    "__main__": frozenset({"cli"}),
    "version": frozenset(),
    "interpreter": frozenset(),
    "repository": frozenset(),
    "private_files": frozenset(),
}
_FOR_ALL = frozenset({"version", "__version__", "interpreter"})
_FOR_ALL_BUT_THE_PURE = frozenset({"repository", "private_files"})  # they read files
_TOP_LEVEL_FILES = {"__init__.py", "__main__.py", "version.py", "interpreter.py", "repository.py", "private_files.py", "py.typed"}

PURE_ROOMS = frozenset({"protocol", "core"})

# All that a pure room may import from outside: modules that only compute. What reads a clock, draws a random number,
# waits, or touches a file or socket is never to be added here; it is asked for through a port.
PURE_MODULES = frozenset(
    {
        "__future__", "abc", "base64", "binascii", "bisect", "collections", "contextlib", "copy", "dataclasses",
        "decimal", "difflib", "enum", "fnmatch", "fractions", "functools", "hashlib", "heapq", "hmac", "itertools",
        "json", "math", "msgspec", "numbers", "operator", "posixpath", "re", "reprlib", "string", "struct", "textwrap",
        "types", "typing", "typing_extensions", "unicodedata", "weakref", "zlib",
    }
)  # fmt: skip
_IMPURE_BUILTINS = frozenset({"open", "input", "print", "breakpoint", "exec", "eval"})
# The core serves any transport and names none, in code, words or comments: what depends on one comes with a peer's traits.
_TRANSPORT = re.compile(r"(?:(?<![A-Za-z])(?:arc|ARC)|Arc)(?![a-z])|(?i:http|websocket)")
_IMPORTERS = frozenset({"import_module", "__import__"})


@dataclass(frozen=True, slots=True)
class Violation:
    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


def check_package(root: Path) -> list[Violation]:
    """Everything in the package at `root` (the folder `agent_relay`) that breaks the law."""
    violations = list(_check_top_level(root))
    places: dict[tuple[Path, str], str] = {}  # by folder and class
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.pyi")]):
        source, place = path.read_text("utf-8"), path.relative_to(root)
        violations += check_source(source, place)
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                other = places.setdefault((path.parent, node.name), path.name)
                if other != path.name:
                    violations.append(Violation(str(place), node.lineno, f"`{other}` has a class `{node.name}` too"))
    return violations


def check_source(source: str, path: Path) -> list[Violation]:
    """What one file does that its room may not; `path` is relative to the package."""
    room = room_of(path)
    allowed = _DOORS[room] if room in _DOORS else MAY_IMPORT.get(room, frozenset())
    tree = ast.parse(source, str(path))
    violations: list[Violation] = []
    for line, name in _imports(tree, path):
        reason = _judge_import(room, allowed, name) or _judge_part(path, name)
        if reason:
            violations.append(Violation(str(path), line, reason))
    if room in PURE_ROOMS:
        violations += [Violation(str(path), line, reason) for line, reason in _impurities(tree, room)]
    if room == "core":
        for line, text in enumerate(source.splitlines(), 1):
            if found := _TRANSPORT.search(text):
                violations.append(Violation(str(path), line, f"`core` knows no transport: `{found[0]}`"))
    return violations


def room_of(path: Path) -> str:
    return path.parts[0] if len(path.parts) > 1 else path.stem


def _check_top_level(root: Path) -> Iterator[Violation]:
    for entry in sorted(root.iterdir()):
        if entry.is_dir():
            holds_something = any(file.is_file() and "__pycache__" not in file.parts for file in entry.rglob("*"))
            if holds_something and entry.name not in MAY_IMPORT:
                yield Violation(entry.name, 1, f"`{entry.name}` is no room of the architecture")
        elif entry.name not in _TOP_LEVEL_FILES:
            yield Violation(entry.name, 1, "a file at the top of the package belongs into a room")


def _judge_import(room: str, allowed: frozenset[str], name: str | None) -> str:
    """Why this import is wrong; empty when it is right. `name` None: it is computed and cannot be checked."""
    if name is None:
        return "imports a computed name; spell it out, so that it can be checked"
    top, _, rest = name.partition(".")
    if top != PACKAGE:
        pure = room not in PURE_ROOMS or top in PURE_MODULES
        return "" if pure else f"`{room}` only computes, and `{name}` is not among the modules that do no more (PURE_MODULES)"
    target = rest.partition(".")[0]
    is_common = target in _FOR_ALL or (target in _FOR_ALL_BUT_THE_PURE and room not in PURE_ROOMS)
    if target == room or target in allowed or is_common:
        return ""
    if target in MAY_IMPORT:
        return f"`{room}` may not import `{target}`"
    return f"`{room}` may not import from the front door (`{name}`); import from the room that holds it"


def _judge_part(path: Path, name: str | None) -> str:
    """Why a part of the divided room may not import this; empty when it may."""
    target = (name or "").split(".")[1:3]
    if path.parts[0] != _DIVIDED_ROOM or target[:1] != [_DIVIDED_ROOM]:
        return ""
    if len(path.parts) < 3 or len(target) < 2:
        return "" if path.name == "__init__.py" else f"a module of `{_DIVIDED_ROOM}` belongs into one of its parts"
    part, other = path.parts[1], target[1]
    if part not in PARTS_MAY_IMPORT:
        return f"`{_DIVIDED_ROOM}.{part}` is no part of the architecture"
    if other == part or other in PARTS_MAY_IMPORT[part]:
        return ""
    return f"`{_DIVIDED_ROOM}.{part}` may not import `{_DIVIDED_ROOM}.{other}`"


def _imports(tree: ast.AST, path: Path) -> Iterator[tuple[int, str | None]]:
    """Every import with its line, as an absolute name."""
    package = (PACKAGE, *path.parts[:-1])
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = _absolute(module or "", level, package)
                # `from agent_relay import core` names a room only with what it imports; so does `from . import core`.
                yield from ((node.lineno, f"{base}.{alias.name}") for alias in names)
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)) if called in _IMPORTERS:
                yield node.lineno, _literal_import(node, package)
            case _:
                pass


def _absolute(module: str, level: int, package: tuple[str, ...]) -> str:
    if not level:
        return module
    kept = package[: len(package) - (level - 1)]
    return ".".join([*kept, *([module] if module else [])])


def _literal_import(call: ast.Call, package: tuple[str, ...]) -> str | None:
    arguments = {keyword.arg: keyword.value for keyword in call.keywords}
    name = call.args[0] if call.args else arguments.get("name")
    if not (isinstance(name, ast.Constant) and isinstance(name.value, str)):
        return None
    level = len(name.value) - len(name.value.lstrip("."))
    if level:
        anchor = call.args[1] if len(call.args) > 1 else arguments.get("package")
        if isinstance(anchor, ast.Constant) and isinstance(anchor.value, str):
            package = tuple(anchor.value.split("."))
        elif not (isinstance(anchor, ast.Name) and anchor.id == "__package__"):
            return None
    return _absolute(name.value[level:], level, package)


def _impurities(tree: ast.AST, room: str) -> Iterator[tuple[int, str]]:
    """What a pure room does without importing anything."""
    for node in ast.walk(tree):
        match node:
            case ast.AsyncFunctionDef() | ast.AsyncFor() | ast.AsyncWith() | ast.Await():
                yield node.lineno, f"`{room}` never waits: no async, no await"
            case ast.Call(func=ast.Name(id=called)) if called in _IMPURE_BUILTINS:
                yield node.lineno, f"`{room}` does no input and no output: `{called}`"
            case _:
                pass
