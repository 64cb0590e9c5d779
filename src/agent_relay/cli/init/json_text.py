"""An entry in a JSON file, with or without comments and commas at the end: found, added and removed without touching the rest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agent_relay.cli.init.editing import BOM, CannotEdit, line_of, newline_of, undo

_SKIPPED = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[A-Za-z0-9+.\-]+")
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\r\n]*)?(?=\r?\n)")
_DEEPEST = 200


@dataclass(slots=True)
class Member:
    name: str
    start: int  # of its name
    value: Value


@dataclass(slots=True)
class Value:
    start: int
    end: int
    members: list[Member] | None = None  # of an object
    items: list[Value] = field(default_factory=list)

    def find(self, name: str) -> Member | None:
        return next((member for member in self.members or () if member.name == name), None)


@dataclass(frozen=True, slots=True)
class JsonEntry:
    """The member `name`, with this value, of the object that the file has under `parent`."""

    parent: str
    name: str
    value: dict[str, Any]

    def is_in(self, text: str) -> bool:
        return self._find(text) is not None

    def add(self, text: str) -> str:
        """Raises CannotEdit. Where the entry is already there, whoever wrote it, nothing is changed."""
        if not text.strip(BOM + " \t\r\n"):
            newline = newline_of(text)
            made = json.dumps({self.parent: {self.name: self.value}}, indent=2, ensure_ascii=False)
            return text + made.replace("\n", newline) + newline
        root = read(text)
        if root.members is None:
            raise CannotEdit("it is not a JSON object")
        parent = root.find(self.parent)
        if parent is None:
            return _insert(text, root, self.parent, {self.name: self.value})
        if parent.value.members is None:
            raise CannotEdit(f'"{self.parent}" in line {line_of(text, parent.start)} is not an object')
        if parent.value.find(self.name) is not None:
            return text
        return _insert(text, parent.value, self.name, self.value)

    def remove(self, text: str) -> str:
        """Leaves an entry of that name alone that is not ours."""
        found = self._find(text)
        if found is None or not self._is_ours(text, found[1]):
            return text
        parent, member = found
        root = read(text)
        # Whether the object around it was ours as well, only adding it again can tell; in doubt it stays, empty.
        around = list(_cuts(text, root, parent)) if parent.value.members == [member] else []
        if around and root.members == [parent]:
            around.append(BOM if text.startswith(BOM) else "")
        exact = [each for each in around if self._gives(each, text)]
        return exact[0] if exact else undo(text, self.add, _cuts(text, parent.value, member))

    def _gives(self, candidate: str, text: str) -> bool:
        try:
            return self.add(candidate) == text
        except CannotEdit:
            return False

    def _find(self, text: str) -> tuple[Member, Member] | None:
        if not text.strip(BOM + " \t\r\n"):
            return None
        parent = read(text).find(self.parent)
        member = None if parent is None else parent.value.find(self.name)
        return None if parent is None or member is None else (parent, member)

    def _is_ours(self, text: str, member: Member) -> bool:
        """Whether it runs `… mcp` of ours, whatever options a person added."""
        said = text[member.value.start : member.value.end]
        return "agent-relay" in said or "agent_relay" in said


# --- inserting and cutting ------------------------------------------------------------------------------------------------


def _insert(text: str, target: Value, name: str, value: Any) -> str:
    """As the first member: nothing that stands in the object has to change, not even a comma."""
    newline, at, members = newline_of(text), target.start + 1, target.members or []
    is_empty = not members
    first = members[0].start if members else target.end - 1
    if not is_empty and "\n" not in text[at:first]:
        return f"{text[:at]}{_encode(name, value)}, {text[at:]}"
    rest = _REST_OF_LINE.match(text, at)
    if rest is not None and rest.end() <= first:
        at = rest.end()  # behind a comment in the same line
    outer = _indent_of(text, target.start)
    inner = _indent_of(text, first) if not is_empty else outer + "  "
    lines = _encode(name, value, indent=2).split("\n")
    block = newline + newline.join(inner + line for line in lines)
    closing = newline + outer if is_empty and "\n" not in text[at:first] else ""
    return f"{text[:at]}{block}{'' if is_empty else ','}{closing}{text[at:]}"


def _encode(name: str, value: Any, indent: int | None = None) -> str:
    return f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False, indent=indent)}"


def _indent_of(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _cuts(text: str, target: Value, member: Member) -> Iterator[str]:
    """Ways to take the member out. The object is valid after each of them."""
    members = target.members or []
    place = next(number for number, each in enumerate(members) if each.start == member.start)
    end = member.value.end
    following = _skip(text, end)
    if text[following : following + 1] == ",":
        end = following + 1
        begin = member.start
    else:  # the last: the comma before it goes too, unless it stands alone
        begin = members[place - 1].value.end if place else member.start
    start = begin
    while start > 0 and text[start - 1] in " \t":
        start -= 1
    if text[start - 1 : start] == "\n":
        start -= 2 if text[start - 2 : start] == "\r\n" else 1
        yield text[:start] + text[end:]
        closing = re.compile(r"[ \t\r\n]*(?=\})").match(text, end)
        if closing is not None:
            yield text[:start] + text[closing.end() :]
    yield text[:begin] + text[end:].removeprefix(" ")
    yield text[:begin] + text[end:]


# --- reading --------------------------------------------------------------------------------------------------------------


def read(text: str) -> Value:
    """The places of everything in it; raises CannotEdit with the line of the first mistake."""
    try:
        value, at = _read_value(text, _skip(text, 1 if text.startswith(BOM) else 0), 0)
    except RecursionError:
        raise CannotEdit("it is nested too deeply") from None
    if _skip(text, at) < len(text):
        raise _broken(text, at)
    return value


def _read_value(text: str, at: int, depth: int) -> tuple[Value, int]:
    if depth > _DEEPEST:
        raise CannotEdit("it is nested too deeply")
    if text[at : at + 1] == "{":
        return _read_object(text, at, depth)
    if text[at : at + 1] == "[":
        return _read_list(text, at, depth)
    end = _read_atom(text, at)
    return Value(at, end), end


def _read_atom(text: str, at: int) -> int:
    match = _STRING.match(text, at) or _WORD.match(text, at)
    if match is None:
        raise _broken(text, at)
    try:
        json.loads(match[0])
    except ValueError:
        raise _broken(text, at) from None
    return match.end()


def _read_object(text: str, start: int, depth: int) -> tuple[Value, int]:
    found = Value(start, start, [])
    assert found.members is not None
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise _broken(text, at)
        end = _read_atom(text, at)
        colon = _skip(text, end)
        if text[colon : colon + 1] != ":":
            raise _broken(text, colon)
        value, after = _read_value(text, _skip(text, colon + 1), depth + 1)
        found.members.append(Member(json.loads(text[at:end]), at, value))
        at = _after_item(text, after, "}")
    found.end = at + 1
    return found, at + 1


def _read_list(text: str, start: int, depth: int) -> tuple[Value, int]:
    found = Value(start, start)
    at = _skip(text, start + 1)
    while text[at : at + 1] != "]":
        value, after = _read_value(text, at, depth + 1)
        found.items.append(value)
        at = _after_item(text, after, "]")
    found.end = at + 1
    return found, at + 1


def _after_item(text: str, at: int, closing: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != closing:
        raise _broken(text, at)
    return at


def _skip(text: str, at: int) -> int:
    match = _SKIPPED.match(text, at)
    return at if match is None else match.end()


def _broken(text: str, at: int) -> CannotEdit:
    return CannotEdit(f"line {line_of(text, min(at, len(text)))} is not valid JSON; repair it first")
