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
from agent_relay.transports.http.errors import invalid
from agent_relay.transports.http.route import Route

_MOST_PARAMETERS = 100
_WHOLE = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_PATH = re.compile(r" - at `(?:key in )?\$\.?(?P<path>[^`]*)`$")
_MISSING = re.compile(r"missing required field `(?P<field>[^`]+)`")
_UNREADABLE = "The body is not JSON that can be read"


def read_query(route: Route, raw: bytes) -> Any:
    if route.query is None:
        return None
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS, separator="&"
        )
    except ValueError:
        raise invalid("query", "The query cannot be read: it is not UTF-8, or there is too much of it.") from None
    whole = _whole_numbers(route.query)
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise invalid(show(name, 80), f"`{show(name, 80)}` is given twice.")
        found[name] = int(value) if name in whole and _WHOLE.fullmatch(value) else value
    return _explained(lambda: msgspec.convert(found, route.query), "the query")


@cache
def _whole_numbers(kind: type[Struct]) -> frozenset[str]:
    """Which parameters are numbers: in a query everything is text."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return frozenset(field.encode_name for field in info.fields if _is_whole(field.type))


def _is_whole(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.UnionType):
        return any(_is_whole(part) for part in kind.types)
    if isinstance(kind, inspect.Metadata):
        return _is_whole(kind.type)
    return isinstance(kind, inspect.IntType)


def read_body(route: Route, raw: bytes) -> Any:
    kind = route.body
    if kind is None:
        return None
    if not raw:
        if route.needs_body:
            raise invalid("body", "The body is missing; it must be a JSON object.")
        return kind()
    return _explained(lambda: msgspec.convert(_read_json(raw), kind), "the body")


def _read_json(raw: bytes) -> Any:
    """JSON knows no difference between 1 and 1.0, so a field that is a whole number may be written as either."""
    found = msgspec.json.decode(raw)
    if isinstance(found, dict):
        return {name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in found.items()}
    return found


def _explained(convert: Callable[[], Any], what: str) -> Any:
    try:
        return convert()
    except msgspec.ValidationError as error:
        raise _mistyped(error, what) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error) or "it is nested too deeply"
        raise invalid("body", f"{_UNREADABLE}: {reason}.") from None


def _mistyped(error: msgspec.ValidationError, what: str) -> RelayError:
    text = str(error)
    path = ""
    if match := _PATH.search(text):
        path = match["path"].partition("[")[0]
        text = text[: match.start()]
    if match := _MISSING.search(text):
        path = f"{path}.{match['field']}".lstrip(".")
        text = "is missing"
    text = text.replace("`", "")
    if not path:
        return RelayError(ErrorCode.INVALID_FORMAT, f"In {what}: {text}.", field=what.removeprefix("the "))
    return RelayError(ErrorCode.INVALID_FORMAT, f"`{path}`: {text}.", field=path)
