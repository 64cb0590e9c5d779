"""Templates: texts with slots such as `{{item}}`, filled in one go, so that what is put in is not looked at again."""

from __future__ import annotations

import re
from collections.abc import Mapping

_SLOT = re.compile(r"\{\{\s*([\w.-]+)\s*\}\}", re.ASCII)


class Template(str):
    """A text some of whose slots are filled. What was put in stays as it is when the others are filled."""

    __slots__ = ("_parts",)
    _parts: tuple[str, ...]  # text, slot, text, slot, …, text; a slot as its name

    def __new__(cls, text: str) -> Template:
        if isinstance(text, Template):
            return text
        return cls._of(tuple(_SLOT.split(text)), text)

    @classmethod
    def _of(cls, parts: tuple[str, ...], text: str | None = None) -> Template:
        shown = "".join(part if place % 2 == 0 else f"{{{{{part}}}}}" for place, part in enumerate(parts))
        made = super().__new__(cls, shown if text is None else text)
        made._parts = parts
        return made

    def followed_by(self, text: str) -> Template:
        first, *after = _SLOT.split(text)
        *before, last = self._parts
        return self._of((*before, last + first, *after))

    @property
    def slots(self) -> tuple[str, ...]:
        return self._parts[1::2]

    def put(self, values: Mapping[str, str]) -> Template:
        """Fills the slots that are named; the others stay."""
        filled = [self._parts[0]]
        for slot, after in zip(self._parts[1::2], self._parts[2::2], strict=True):
            if slot in values:
                filled[-1] += values[slot] + after
            else:
                filled += [slot, after]
        return self._of(tuple(filled))


def fill(template: str, **values: str) -> str:
    """The text with `{{name}}` replaced; a slot without a value stays as it is."""
    return str.__str__(Template(template).put(values))
