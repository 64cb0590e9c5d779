"""From the bytes of a request to the structs its route asks for, or to an error that names the field."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct, inspect

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import show
from agent_relay.protocol.validation import (
    MISSING,
    describe_mismatch,
    find_unknown_field,
    is_unknown_word,
    split_validation_error,
)
from agent_relay.transports.http.errors import invalid
from agent_relay.transports.http.route import Route

_MOST_PARAMETERS = 100
_WHOLE = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_PATTERN = "matching regex"  # as msgspec says it
_UNREADABLE = "The body is not valid JSON"


def read_query(route: Route, raw: bytes) -> Any:
    """Raises RelayError, also for a parameter that the route does not know: ignored, it would seem to have chosen something."""
    if route.query is None and (
        route.is_open or not raw
    ):  # what asks for no token is asked by machines that add all kinds of things
        return None
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS, separator="&"
        )
    except ValueError:
        raise invalid("query", "The query is not UTF-8, or too long.") from None
    are_whole = {} if route.query is None else _parameters(route.query)
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name not in are_whole:
            known = f"this route takes {', '.join(are_whole) or 'none'}"
            raise invalid(name, f"Unknown query parameter {show(name, 80)}; {known}.")
        if name in found:
            raise invalid(name, f"`{name}` was given twice.")
        found[name] = int(value) if are_whole[name] and _WHOLE.fullmatch(value) else value
    kind = route.query
    return None if kind is None else _explained(lambda: msgspec.convert(found, kind), "the query", kind)


@cache
def _parameters(kind: type[Struct]) -> dict[str, bool]:
    """The parameters there are, and whether each is a whole number: in a query everything is text."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: _is_whole(field.type) for field in info.fields}


def _is_whole(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.UnionType):
        return any(_is_whole(part) for part in kind.types)
    if isinstance(kind, inspect.Metadata):
        return _is_whole(kind.type)
    return isinstance(kind, inspect.IntType)


def read_body(route: Route, raw: bytes) -> Any:
    kind = route.body
    if kind is None:
        _refuse_body(raw)
        return None
    if not raw:
        if route.needs_body:
            raise invalid("body", "The body is missing; it must be a JSON object.")
        return kind()
    return _explained(lambda: msgspec.convert(_read_json(raw), kind), "the body", kind)


def _refuse_body(raw: bytes) -> None:
    """Of a route that takes none; an empty object says nothing and does no harm."""
    found = _explained(lambda: _read_json(raw), "the body", Struct) if raw.strip() else {}
    if found != {}:
        field = next(iter(found)) if isinstance(found, dict) else "body"
        raise invalid(field, f"There is no field {show(field, 80)} here; this takes no body.")


def _read_json(raw: bytes) -> Any:
    """JSON knows no difference between 1 and 1.0, so a field that is a whole number may be written as either."""
    found = msgspec.json.decode(raw)
    if isinstance(found, dict):
        return {name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in found.items()}
    return found


# --- what is wrong, in a sentence ------------------------------------------------------------------------------------------


def _explained(convert: Callable[[], Any], what: str, kind: type[Struct]) -> Any:
    try:
        return convert()
    except msgspec.ValidationError as error:
        raise _mistyped(error, what, kind) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error) or "it is nested too deeply"
        raise invalid("body", f"{_UNREADABLE}: {reason}.") from None


def _mistyped(error: msgspec.ValidationError, what: str, kind: type[Struct]) -> RelayError:
    text, path = split_validation_error(error)
    if text == MISSING:
        return RelayError(ErrorCode.INVALID_FORMAT, f"`{path}` is missing.", field=path)
    if (unknown := find_unknown_field(text)) is not None:
        path = f"{path}.{unknown}".lstrip(".")
        known = ", ".join(_parameters(kind))
        return RelayError(
            ErrorCode.INVALID_FORMAT, f"There is no field {show(path, 80)} here; known fields: {known}.", field=path
        )
    said = _sentence(text, kind, path)
    if not path:
        return RelayError(ErrorCode.INVALID_FORMAT, f"In {what}: it {said}.", field=what.removeprefix("the "))
    return RelayError(ErrorCode.INVALID_FORMAT, f"`{path}` {said}.", field=path)


def _sentence(text: str, kind: type[Struct], path: str) -> str:
    """The error of msgspec in the words of people who write JSON; of a pattern, what it is for."""
    if _PATTERN in text:
        about = _described(kind, path, "description")
        return f"has an invalid format{': ' if about else ''}{str(about).rstrip('.')}"
    if is_unknown_word(text) and (words := _described(kind, path, "enum")):
        return f"must be one of {', '.join(words)}"
    return describe_mismatch(text)


def _described(kind: type[Struct], path: str, key: str) -> Any:
    """The schema's word on that field; empty where it has none."""
    found = msgspec.json.schema_components([kind])[1][kind.__name__]["properties"].get(path, {})
    return next((each[key] for each in [found, *found.get("anyOf", [])] if key in each), "")
