"""A table in a TOML file, or one of a list of tables: a section of ours at its end. Tables may stand in any order, so nothing
else has to change.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from agent_relay.cli.init.editing import BOM, CannotEdit
from agent_relay.cli.init.sections import Section, comment_section


@dataclass(frozen=True, slots=True)
class TomlEntry:
    """The table `parent.name`, of these lines."""

    parent: str
    name: str
    lines: str

    @property
    def _section(self) -> Section:
        return comment_section(f"[{self.parent}.{self.name}]\n{self.lines}")

    def is_in(self, text: str) -> bool:
        return self._section.is_in(text)

    def add(self, text: str) -> str:
        """Raises CannotEdit. Where a person has such a table of their own, nothing is changed."""
        if self.is_in(text):
            return text
        parent = _read(text, "repair it first").get(self.parent, {})
        if not isinstance(parent, dict):
            raise CannotEdit(f"{self.parent} is not a table")
        if self.name in parent:
            return text
        added = self._section.add(text)
        _read(added, f"it has {self.parent} as an inline table, which cannot be extended; write it as [{self.parent}.NAME]")
        return added

    def remove(self, text: str) -> str:
        return self._section.remove(text)


@dataclass(frozen=True, slots=True)
class TomlItem:
    """The table with this `name`, and these lines, of the list of tables `parent`."""

    parent: str
    name: str
    lines: str

    @property
    def _section(self) -> Section:
        return comment_section(f'[[{self.parent}]]\nname = "{self.name}"\n{self.lines}')

    def is_in(self, text: str) -> bool:
        return self._section.is_in(text)

    def add(self, text: str) -> str:
        """Raises CannotEdit. Where a person has such a table of their own, nothing is changed."""
        if self.is_in(text):
            return text
        tables = _read(text, "repair it first").get(self.parent, [])
        if not isinstance(tables, list):
            raise CannotEdit(f"{self.parent} is not a list of tables")
        if any(isinstance(table, dict) and table.get("name") == self.name for table in tables):
            return text
        added = self._section.add(text)
        _read(added, f"it has {self.parent} as a list in brackets, which cannot be extended; write it as [[{self.parent}]]")
        return added

    def remove(self, text: str) -> str:
        return self._section.remove(text)


def _read(text: str, hint: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix(BOM))
    except tomllib.TOMLDecodeError as error:
        raise CannotEdit(f"it is not valid TOML ({error}); {hint}") from None
