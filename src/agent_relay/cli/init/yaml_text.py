"""An entry in a YAML file: in a mapping, or in a list, at the top level. Only the lines of that key are looked at.

What is written in a way that this does not know (anchors, tags, several documents) is left alone, with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent_relay.cli.init.editing import BOM, CannotEdit, line_of, newline_of, undo
from agent_relay.cli.init.sections import Section, comment_section

_DOCUMENT = re.compile(r"^(?:---|\.\.\.)(?=\s|$)", re.MULTILINE)
_COMMENT = re.compile(r"(?:^|[ \t])#.*$")
_RUNS_US = re.compile(r"^[ \t]*(?:-[ \t]+)?[\"']?(?:cmd|command|args)[\"']?[ \t]*:.*agent[-_]relay", re.MULTILINE)
_PLAIN = re.compile(r"[^\s\[\]{}&*!|>%@`#\"',:][^\[\]{}#:,\"']*|\"[^\"\\]*\"|'[^']*'")


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of the top level: where its line begins, where the value begins in it, and where the line ends."""

    start: int
    value: int
    end: int  # after its line end
    said: str  # the value in the same line, without a comment


@dataclass(frozen=True, slots=True)
class YamlEntry:
    """The member `name`, with this value, of the mapping `parent`."""

    parent: str
    name: str
    value: dict[str, Any]

    def is_in(self, text: str) -> bool:
        return self._find(text) is not None

    def add(self, text: str) -> str:
        if self.is_in(text):
            return text
        newline, key = newline_of(text), _find_key(text, self.parent)
        if key is None:
            separator = "" if not text.strip(BOM) or text.endswith("\n") else newline
            return f"{text}{separator}{self.parent}:{newline}{self._block('  ', newline)}"
        if key.said.startswith("{"):
            at = text.index("{", key.value) + 1
            rest = text[at:].lstrip()
            return f"{text[:at]}{self._flow}{'' if rest.startswith('}') else ', '}{text[at:]}"
        if key.said:
            raise CannotEdit(f"{self.parent} in line {line_of(text, key.start)} is not a mapping that can be added to")
        indent = _child_indent(text, key.end)
        if indent.endswith("-"):
            raise CannotEdit(f"{self.parent} in line {line_of(text, key.start)} is a list, not a mapping")
        head = text[: key.end] if text[: key.end].endswith("\n") else text + newline
        return head + self._block(indent or "  ", newline) + text[key.end :]

    def remove(self, text: str) -> str:
        found = self._find(text)
        if found is None:
            return text
        start, end = found
        if text[start:end] == self._flow:
            return undo(text, self.add, [text[:start] + text[end:].removeprefix(", "), text[:start] + text[end:]])
        if _RUNS_US.search(text, start, end) is None:
            return text  # an entry of a person's own
        key = _find_key(text, self.parent)
        without = text[:start] + text[end:]
        candidates = [without]
        if key is not None:
            alone = text[: key.start] + text[end:]
            candidates = [alone, alone.removesuffix(newline_of(text)), without, without.removesuffix(newline_of(text))]
            if not self._is_alone(text, key, start, end):
                candidates = candidates[2:]
        return _prefer_exact(text, self, candidates, without)

    def _is_alone(self, text: str, key: _Key, start: int, end: int) -> bool:
        return not text[key.end : start].strip() and not _child_indent(text, end)

    @property
    def _flow(self) -> str:
        return f"{json.dumps(self.name)}: {json.dumps(self.value)}"

    def _block(self, indent: str, newline: str) -> str:
        lines = [f"{self.name}:", *(f"  {name}: {json.dumps(value)}" for name, value in self.value.items())]
        return "".join(f"{indent}{line}{newline}" for line in lines)

    def _find(self, text: str) -> tuple[int, int] | None:
        """The place of our lines, or of our words in a mapping in braces."""
        key = _find_key(text, self.parent)
        if key is None:
            return None
        if key.said.startswith("{"):
            at = text.find(self._flow, key.value)
            return None if at < 0 else (at, at + len(self._flow))
        indent = _child_indent(text, key.end)
        for start, end, line in _lines(text, key.end):
            depth = len(line) - len(line.lstrip(" "))
            if line.strip() and not depth and not line.lstrip().startswith("#"):
                return None
            if line.startswith(indent) and re.fullmatch(rf"[\"']?{re.escape(self.name)}[\"']?\s*:.*", line[len(indent) :]):
                return start, _end_of_block(text, end, len(indent))
        return None


@dataclass(frozen=True, slots=True)
class YamlListEntry:
    """The item with this `name` and value of the list `parent`. `hint`: what to do where the file is not there yet."""

    parent: str
    name: str
    value: dict[str, Any]
    hint: str

    def is_in(self, text: str) -> bool:
        return self._find(text) is not None

    def add(self, text: str) -> str:
        """Raises CannotEdit. A file of nothing but this would not be a whole one."""
        if not text.strip(BOM + " \t\r\n"):
            raise CannotEdit(f"there is nothing in it yet. {self.hint}")
        if self.is_in(text):
            return text
        newline, key = newline_of(text), _find_key(text, self.parent)
        if key is None:
            separator = "" if text.endswith("\n") else newline
            return f"{text}{separator}{self.parent}:{newline}{self._block('  ', newline)}"
        if key.said.startswith("["):
            at = text.index("[", key.value) + 1
            return f"{text[:at]}{self._flow}{'' if text[at:].lstrip().startswith(']') else ', '}{text[at:]}"
        indent = _child_indent(text, key.end)
        if key.said or not (indent.endswith("-") or not indent):
            raise CannotEdit(f"{self.parent} in line {line_of(text, key.start)} is not a list that can be added to")
        head = text[: key.end] if text[: key.end].endswith("\n") else text + newline
        return head + self._block(indent.removesuffix("-") if indent else "  ", newline) + text[key.end :]

    def remove(self, text: str) -> str:
        found = self._find(text)
        if found is None:
            return text
        start, end = found
        without = text[:start] + text[end:]
        if text[start:end] == self._flow:
            return undo(text, self.add, [text[:start] + text[end:].removeprefix(", "), without])
        if _RUNS_US.search(text, start, end) is None:
            return text  # an item of a person's own
        candidates = [without, without.removesuffix(newline_of(text))]
        key = _find_key(text, self.parent)
        if key is not None and key.end == start and not _child_indent(text, end):
            alone = text[: key.start] + text[end:]
            candidates = [alone, alone.removesuffix(newline_of(text)), *candidates]
        return _prefer_exact(text, self, candidates, without)

    @property
    def _flow(self) -> str:
        return json.dumps({"name": self.name, **self.value})

    def _block(self, indent: str, newline: str) -> str:
        lines = [f"{name}: {json.dumps(value)}" for name, value in ({"name": self.name} | self.value).items()]
        return "".join(f"{indent}{'  ' if number else '- '}{line}{newline}" for number, line in enumerate(lines))

    def _find(self, text: str) -> tuple[int, int] | None:
        """The place of our item, in lines or in brackets."""
        key = _find_key(text, self.parent)
        if key is None:
            return None
        if key.said.startswith("["):
            at = text.find(self._flow, key.value)
            return None if at < 0 else (at, at + len(self._flow))
        dash = _child_indent(text, key.end)
        if not dash.endswith("-"):
            return None
        named = re.compile(rf"[\"']?name[\"']?\s*:\s*[\"']?{re.escape(self.name)}[\"']?\s*(?:#.*)?")
        place = after = column = -1
        for start, end, line in _lines(text, key.end):
            depth = len(line) - len(line.lstrip(" "))
            if line.strip() and not line.lstrip().startswith("#"):
                is_item = line.startswith((f"{dash} ", f"{dash}\t")) or line == dash
                if depth < len(dash) - 1 or (depth == len(dash) - 1 and not is_item):
                    return None
                if is_item:
                    place, after, column = start, end, len(line) - len(line[len(dash) :].lstrip())
                if named.fullmatch(line[column:]) and (is_item or depth == column):
                    return place, _end_of_block(text, after, len(dash) - 1)
        return None


@dataclass(frozen=True, slots=True)
class YamlItem:
    """The item `word` of the list `key`; where there is no such key, a section of ours with it."""

    key: str
    word: str

    @property
    def _section(self) -> Section:
        return comment_section(f"{self.key}: [{self.word}]")

    def is_in(self, text: str) -> bool:
        return self._section.is_in(text) or self._find(text) is not None

    def add(self, text: str) -> str:
        if self.is_in(text):
            return text
        newline, key = newline_of(text), _find_key(text, self.key)
        if key is None:
            return self._section.add(text)
        if key.said.startswith("["):
            at = text.index("[", key.value) + 1
            return f"{text[:at]}{self.word}{'' if text[at:].lstrip().startswith(']') else ', '}{text[at:]}"
        if not key.said:
            indent = _child_indent(text, key.end)
            if not indent.endswith("-"):
                raise CannotEdit(f"{self.key} in line {line_of(text, key.start)} is not a list")
            return f"{text[: key.end]}{indent} {self.word}{newline}{text[key.end :]}"
        if _PLAIN.fullmatch(key.said) is None:
            raise CannotEdit(f"{self.key} in line {line_of(text, key.start)} is not a list that can be added to")
        end = key.value + len(key.said)
        return f"{text[: key.value]}[{self.word}, {key.said}]{text[end:]}"

    def remove(self, text: str) -> str:
        if self._section.is_in(text):
            return self._section.remove(text)
        found = self._find(text)
        if found is None:
            return text
        start, end = found
        key = _find_key(text, self.key)
        assert key is not None
        if key.said.startswith("["):
            without = text[:start] + text[end:].removeprefix(", ")
            bare = key.said.removeprefix(f"[{self.word}, ").removesuffix("]")
            as_scalar = text[: key.value] + bare + text[key.value + len(key.said) :]
            return _prefer_exact(text, self, [without, as_scalar], without)
        return text[:start] + text[end:]

    def _find(self, text: str) -> tuple[int, int] | None:
        key = _find_key(text, self.key)
        if key is None:
            return None
        word = re.escape(self.word)
        if key.said.startswith("["):
            match = re.compile(rf"(?<=[\[, ])[\"']?{word}[\"']?(?=\s*[,\]])").search(text, key.value, key.value + len(key.said))
            return None if match is None else match.span()
        if key.said:
            return (key.value, key.end) if key.said.strip("\"'") == self.word else None
        for start, end, line in _lines(text, key.end):
            if re.fullmatch(rf"\s*-\s+[\"']?{word}[\"']?\s*(?:#.*)?", line):
                return start, end
            if line.strip() and not line.lstrip().startswith(("-", "#")):
                return None
        return None


def _prefer_exact(text: str, entry: YamlEntry | YamlListEntry | YamlItem, candidates: list[str], otherwise: str) -> str:
    for candidate in candidates:
        try:
            if entry.add(candidate) == text:
                return candidate
        except CannotEdit:
            continue
    return otherwise


# --- lines ----------------------------------------------------------------------------------------------------------------


def _find_key(text: str, name: str) -> _Key | None:
    body = text.removeprefix(BOM)
    if body.lstrip().startswith(("{", "[")):
        raise CannotEdit("it is one YAML value in braces; write it in lines")
    marks = [match for match in _DOCUMENT.finditer(body) if body[: match.start()].strip()]
    if marks:
        raise CannotEdit(f"it has more than one YAML document (line {line_of(body, marks[0].start())})")
    first = next((line for _, _, line in _lines(body, 0) if line.strip() and not line.lstrip().startswith(("#", "---"))), "")
    if first.startswith(" "):
        raise CannotEdit("its keys are indented; move them to the beginning of their lines first")
    if first and ":" not in first:
        raise CannotEdit("it is not a mapping")
    if any(line.startswith("\t") for line in body.split("\n")):
        raise CannotEdit("a line begins with a tab, which YAML does not allow; repair it first")
    pattern = re.compile(
        rf"^(?:{re.escape(name)}|\"{re.escape(name)}\"|'{re.escape(name)}')[ \t]*:(?=[ \t\r\n]|$)[ \t]*", re.MULTILINE
    )
    found = list(pattern.finditer(text, 1 if text.startswith(BOM) else 0))
    if len(found) > 1:
        raise CannotEdit(f"{name} stands in it twice (line {line_of(text, found[1].start())}); repair it first")
    if not found:
        return None
    end = text.find("\n", found[0].end())
    line = text[found[0].end() : len(text) if end < 0 else end].rstrip("\r")
    said = _COMMENT.sub("", line).rstrip()
    if said.startswith("[") and "]" not in said:
        raise CannotEdit(f"{name} in line {line_of(text, found[0].start())} is a list of several lines in brackets")
    return _Key(found[0].start(), found[0].end(), len(text) if end < 0 else end + 1, said)


def _lines(text: str, at: int) -> Iterator[tuple[int, int, str]]:
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end + 1
        yield at, end, text[at:end].rstrip("\r\n")
        at = end


def _child_indent(text: str, at: int) -> str:
    """Of the first line below the key; with `-` at its end, where that is an item. Empty: the key has nothing below it."""
    for _, _, line in _lines(text, at):
        if line.strip() and not line.lstrip().startswith("#"):
            indent = line[: len(line) - len(line.lstrip(" "))]
            if line.lstrip(" ").startswith("- ") or line.strip() == "-":
                return f"{indent}-"
            return indent
    return ""


def _end_of_block(text: str, at: int, indent: int) -> int:
    for start, end, line in _lines(text, at):
        if not line.strip() or len(line) - len(line.lstrip(" ")) <= indent:
            return start
        at = end
    return at
