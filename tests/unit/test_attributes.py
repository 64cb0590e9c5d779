"""An object is whole once it is made: every attribute is born in `__init__`, in the class, or in one of its bases."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src" / "agent_relay"
_MAKERS = {"__init__", "__new__", "__post_init__"}
_BARE = {"Protocol", "Generic", "asyncio.Protocol", "Exception"}  # bases from elsewhere that bring no attributes


class _Class(NamedTuple):
    place: str
    bases: list[str]
    born: set[str]
    late: dict[str, int]  # by name, the line


def _of_self(tree: ast.AST, context: type[ast.expr_context]) -> list[ast.Attribute]:
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, context)]
    return [each for each in attributes if isinstance(each.value, ast.Name) and each.value.id == "self"]


def _read_class(node: ast.ClassDef, place: str) -> _Class:
    found = _Class(place, [ast.unparse(base).split("[")[0] for base in node.bases], set(), {})
    methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)}
    makers = [name for name in methods if name in _MAKERS]
    for maker in makers:  # and the methods that those use
        makers += [used.attr for used in _of_self(methods[maker], ast.Load) if used.attr in methods and used.attr not in makers]
    for name, method in methods.items():
        for target in _of_self(method, ast.Store):
            if name in makers:
                found.born.add(target.attr)
            else:
                found.late[target.attr] = target.lineno
        if any(isinstance(mark, ast.Attribute) and mark.attr == "setter" for mark in method.decorator_list):
            found.born.add(name)
    for item in node.body:
        if isinstance(item, ast.Assign | ast.AnnAssign):
            targets = item.targets if isinstance(item, ast.Assign) else [item.target]
            found.born.update(target.id for target in targets if isinstance(target, ast.Name))
    return found


def find_late_attributes(sources: dict[str, str]) -> list[str]:
    """Those that a method sets first. Of a class with a base from elsewhere nothing is known, so nothing is said."""
    classes: dict[str, list[_Class]] = {}
    for place, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(_read_class(node, place))

    def born(known: _Class) -> set[str] | None:
        found = set(known.born)
        for base in known.bases:
            if base not in _BARE:
                inherited = [born(each) for each in classes.get(base, [])]
                if not inherited or None in inherited:
                    return None
                found.update(*(names for names in inherited if names is not None))
        return found

    return [
        f"{known.place}:{line} {name}.{attribute}"
        for name, same_name in classes.items()
        for known in same_name
        if (there := born(known)) is not None
        for attribute, line in known.late.items()
        if attribute not in there
    ]


def test_every_attribute_is_born_with_its_object() -> None:
    sources = {str(path.relative_to(SOURCE)): path.read_text() for path in SOURCE.rglob("*.py")}
    assert find_late_attributes(sources) == []


def test_late_attributes_are_found() -> None:
    planted = """
class Base:
    kind = ""
    def __init__(self) -> None:
        self.born = 1
        self.clear()
    def clear(self) -> None:
        self.cleared = True
class Part(Base):
    def start(self) -> None:
        self.kind, self.born, self.cleared = "a", 2, False
        self.late, other = 3, 4
class Foreign(Elsewhere):
    def start(self) -> None:
        self.unknown = 1
"""
    assert find_late_attributes({"a.py": planted}) == ["a.py:12 Part.late"]
