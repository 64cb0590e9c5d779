"""References in a run file: `{{vars.files}}`, `{{steps.reviews.results.0.value.risk}}`.

A text that is nothing but one reference becomes the value itself, a list for instance; in the middle of a text, whatever is no
text is written as JSON. What is put in is not looked at again (`Template`), so no agent's output can refer to anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agent_relay.patterns.templates import Template
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.results import write_value

ROOTS = ("vars", "steps")
UNFILLED = frozenset({"schema"})  # keys whose values are taken as they are
Path = tuple[str | int, ...]


def references_in(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Every reference, and where it stands."""
    match value:
        case str():
            yield from ((path, slot) for slot in Template(value).slots if _is_reference(slot))
        case dict():
            for key, part in value.items():
                if key not in UNFILLED:
                    yield from references_in(part, (*path, key))
        case list():
            for place, part in enumerate(value):
                yield from references_in(part, (*path, place))


def resolve(value: Any, scope: Mapping[str, Any]) -> Any:
    """The value with all its references replaced. Raises RelayError for one that leads nowhere; a reference to a root that is not
    in the scope stays as it is."""
    match value:
        case str():
            return _resolve_text(value, scope)
        case dict():
            return {key: part if key in UNFILLED else resolve(part, scope) for key, part in value.items()}
        case list():
            return [resolve(part, scope) for part in value]
        case _:
            return value


def _resolve_text(text: str, scope: Mapping[str, Any]) -> Any:
    template = Template(text)
    if not template.slots:
        return text
    known = [slot for slot in template.slots if _is_reference(slot) and slot.partition(".")[0] in scope]
    if len(known) == 1 and text.strip().removeprefix("{{").removesuffix("}}").strip() == known[0]:
        return look_up(known[0], scope)
    return template.put({slot: write_value(look_up(slot, scope)) for slot in known})


def look_up(reference: str, scope: Mapping[str, Any]) -> Any:
    found: Any = scope
    for part in reference.split("."):
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            raise RelayError(
                ErrorCode.INVALID_FORMAT, f"{{{{{reference}}}}} leads nowhere: there is no {part}.", reason="no_such_value",
                reference=reference,
            )  # fmt: skip
    return found


def _is_reference(slot: str) -> bool:
    return slot.partition(".")[0] in ROOTS and "." in slot
