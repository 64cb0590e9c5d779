"""Nothing in the protocol room does I/O, reads a clock, draws a random number or knows asyncio."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import agent_relay.protocol

ROOM = Path(agent_relay.protocol.__file__).parent
ALLOWED = {
    "__future__", "collections.abc", "dataclasses", "difflib", "enum", "functools", "hashlib", "itertools", "msgspec",
    "posixpath", "re", "struct", "typing", "zlib",
}  # fmt: skip
FORBIDDEN_CALLS = {"open", "print", "input", "exec", "eval", "__import__", "breakpoint", "compile"}


def find_impurities(source: str) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if not is_allowed(alias.name)]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level or not is_allowed(module):
                found.append("." * node.level + module)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
            found.append(f"{node.func.id}()")
        elif isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.Global):
            found.append(type(node).__name__)
    return found


def is_allowed(module: str) -> bool:
    return module in ALLOWED or module == "agent_relay.protocol" or module.startswith("agent_relay.protocol.")


@pytest.mark.parametrize("path", sorted(ROOM.rglob("*.py")), ids=lambda path: path.stem)
def test_the_room_is_pure(path: Path) -> None:
    assert find_impurities(path.read_text("utf-8")) == []


def test_every_module_has_its_test_file() -> None:
    tests = Path(__file__).parent
    missing = [
        path.stem for path in ROOM.glob("*.py") if path.stem != "__init__" and not (tests / f"test_{path.stem}.py").exists()
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("planted", "name"),
    [
        ("import asyncio", "asyncio"),
        ("import os", "os"),
        ("import os.path", "os.path"),
        ("from os import environ", "os"),
        ("import socket as re", "socket"),
        ("from time import monotonic", "time"),
        ("def f():\n    import random", "random"),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import secrets", "secrets"),
        ("from datetime import datetime", "datetime"),
        ("from agent_relay.core import limits", "agent_relay.core"),
        ("from agent_relay.ports.clock import Clock", "agent_relay.ports.clock"),
        ("import agent_relay", "agent_relay"),
        ("from . import errors", "."),
        ("open('x')", "open()"),
        ("print('x')", "print()"),
        ("__import__('os')", "__import__()"),
        ("async def f(): pass", "AsyncFunctionDef"),
        ("def f():\n    global x\n    x = 1", "Global"),
    ],
)
def test_the_check_bites(planted: str, name: str) -> None:
    assert find_impurities(planted) == [name]
