"""Every regular expression of the relay, found by itself, and texts made to slow each of them down.

Expressions are found in the profiles, in the modules (as values), and in calls of `re` with a literal. How a module uses an
expression decides how it is measured: one that is only ever matched at the beginning need not be fast when searched.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import re._constants as sre
import re._parser as parser
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from msgspec import Struct

import agent_relay
from agent_relay.core.risk import _any_of
from agent_relay.terminal.delivery.message_text import _misleading
from agent_relay.terminal.output.parser import lead_of
from agent_relay.terminal.profiles.profile import Profile, load_profiles

_METHODS = {"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
_AT_THE_START = {"match", "fullmatch"}
_OWN_PATTERN_FIELDS = {"default", "bullets", "code_ink", "close_lines", "block_marks", "kind", "typed"}


class Expression(Struct, frozen=True):
    where: str
    pattern: str | bytes
    flags: int
    methods: frozenset[str] = frozenset({"search"})

    def run(self, text: str) -> None:
        compiled: re.Pattern[Any] = re.compile(self.pattern, self.flags)
        given: Any = text.encode("utf-8", "replace") if isinstance(self.pattern, bytes) else text
        for method in self.methods or {"search"}:
            if method in _AT_THE_START:
                getattr(compiled, method)(given)
            else:
                for _ in compiled.finditer(given):
                    pass


def all_expressions() -> list[Expression]:
    found = [*_of_profiles(), *_of_modules(), *_made_on_demand()]
    return list({(each.pattern, each.flags, each.methods): each for each in found}.values())


# --- profiles --------------------------------------------------------------------------------------------------------------


def _of_profiles() -> Iterator[Expression]:
    for profile in load_profiles().values():
        for name, compiled in profile.compiled.items():
            yield Expression(f"{profile.name}.rows.{name}, joined", compiled.pattern, 0)
        for where, pattern in profile_patterns(profile):
            yield Expression(f"{profile.name}.{where}", pattern, 0)


def profile_patterns(profile: Profile) -> Iterator[tuple[str, str]]:
    groups: list[tuple[str, Struct]] = [
        ("rows", profile.rows), ("composer", profile.composer), ("busy", profile.busy), ("idle", profile.idle),
        ("asking", profile.asking), ("patterns", profile.patterns),
        *((f"dialogs[{index}]", dialog) for index, dialog in enumerate(profile.dialogs)),
    ]  # fmt: skip
    for group, struct in groups:
        for field in struct.__struct_fields__:
            value = getattr(struct, field)
            texts = (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ()
            for text in texts if field not in _OWN_PATTERN_FIELDS else ():
                yield f"{group}.{field}", text
    if profile.submit.placeholder:
        yield "submit.placeholder", profile.submit.placeholder


# --- modules ---------------------------------------------------------------------------------------------------------------


def _of_modules() -> Iterator[Expression]:
    for info in pkgutil.walk_packages(agent_relay.__path__, "agent_relay."):
        if info.name.startswith(("agent_relay.testing", "agent_relay.arc.conformance")) or info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        tree = ast.parse(inspect.getsource(module))
        uses = _uses(tree)
        for name, value in vars(module).items():
            for compiled in _patterns_in(value):
                yield Expression(
                    f"{info.name}.{name}", compiled.pattern, compiled.flags & ~re.UNICODE, frozenset(uses.get(name, ()))
                )
        yield from _literal_calls(module, tree)


def _patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif inspect.isbuiltin(value) and isinstance(value.__self__, re.Pattern):  # `_match = re.compile(…).match`
        yield value.__self__
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _patterns_in(each)
    elif isinstance(value, dict):
        yield from _patterns_in(list(value.values()))


def _uses(tree: ast.AST) -> dict[str, set[str]]:
    """Name of an expression → the methods that its module calls on it."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in _METHODS and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr in _METHODS:
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, set()).add(node.value.attr)
    return found


def _literal_calls(module: ModuleType, tree: ast.AST) -> Iterator[Expression]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        first = node.args[0]
        is_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.func.attr in _METHODS
        if is_re and isinstance(first, ast.Constant) and isinstance(first.value, str | bytes):
            yield Expression(f"{module.__name__}:{node.lineno}", first.value, 0, frozenset({node.func.attr}))


def _made_on_demand() -> Iterator[Expression]:
    """Those that functions make of what they are given."""
    for where, compiled in (
        ("message_text._misleading", _misleading("->relay:")),
        ("risk._any_of", _any_of(("rm", "drop"))),
        ("parser.lead_of", lead_of(load_profiles()["generic"].rows.bullets)),
    ):
        yield Expression(where, compiled.pattern, compiled.flags & ~re.UNICODE)


# --- hostile texts ---------------------------------------------------------------------------------------------------------

_ALWAYS = ("1", " ", "a", "(", "[", "?", ",", "1,", "a ", "? ", "(y/n", "\n", "\x1b", "\x1b[", "|", "->relay:", "Allow ", "—")


def hostile_texts(pattern: str | bytes, flags: int, size: int) -> Iterator[str]:
    """Runs of everything it repeats, of everything it begins with, and of each beginning followed by such a run."""
    tree = parser.parse(pattern, flags)
    repeated = sorted({text for text in _repeated(tree) if text})[:8]
    beginnings = _beginnings(tree)
    units = dict.fromkeys((*_ALWAYS, *repeated, *(text for text in beginnings if text)))
    for unit in units:
        yield (unit * (size // len(unit) + 1))[:size]
    for beginning in beginnings[-6:]:
        for unit in (*repeated, " ", "1", "a"):
            yield beginning + (unit * (size // len(unit) + 1))[:size]


def _repeated(tree: Iterable[Any]) -> Iterator[str]:
    for operation, value in tree:
        if operation in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
            yield _sample(value[2])
            yield from _repeated(value[2])
        else:
            for part in _inside(operation, value):
                yield from _repeated(part)


def _beginnings(tree: Iterable[Any]) -> list[str]:
    """What it matches up to each of its parts."""
    found, text = [], ""
    for item in tree:
        text += _sample([item])
        found.append(text)
    return found


def _inside(operation: Any, value: Any) -> list[Any]:
    if operation is sre.SUBPATTERN:
        return [value[-1]]
    if operation is sre.BRANCH:
        return list(value[1])
    if operation in {sre.ASSERT, sre.ASSERT_NOT}:
        return [value[1]]
    return [value] if operation is sre.ATOMIC_GROUP else []


def _sample(tree: Iterable[Any]) -> str:
    """One text that it may match; assertions are taken for nothing."""
    text = ""
    for operation, value in tree:
        if operation is sre.LITERAL:
            text += chr(value)
        elif operation is sre.NOT_LITERAL:
            text += "a" if value != ord("a") else "b"
        elif operation is sre.ANY:
            text += "a"
        elif operation is sre.IN:
            text += _one_of(value)
        elif operation in {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}:
            text += _sample(value[2]) * max(int(value[0]), 1)
        elif operation is sre.BRANCH:
            text += _sample(value[1][0])
        elif operation is sre.SUBPATTERN:
            text += _sample(value[-1])
        elif operation is sre.ATOMIC_GROUP:
            text += _sample(value)
    return text


def _one_of(members: list[Any]) -> str:
    if members[0][0] is sre.NEGATE:
        expression = re.compile("[" + "".join(_spell(member) for member in members[1:]) + "]")
        return next((letter for letter in "a1 (-" if not expression.match(letter)), "ä")
    operation, value = members[0]
    if operation is sre.RANGE:
        return chr(value[0])
    if operation is sre.CATEGORY:
        return {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a"}.get(str(value), "-")
    return chr(value)


def _spell(member: tuple[Any, Any]) -> str:
    operation, value = member
    if operation is sre.RANGE:
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    if operation is sre.CATEGORY:
        names = {"CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w", "CATEGORY_NOT_DIGIT": r"\D"}
        return {**names, "CATEGORY_NOT_SPACE": r"\S", "CATEGORY_NOT_WORD": r"\W"}[str(value)]
    return re.escape(chr(value))
