"""Errors of msgspec about a value of the wrong shape, taken apart and said in the words of people who write JSON."""

from __future__ import annotations

import re

import msgspec

MISSING = "is missing"
_PATH = re.compile(r" - at `(?:key in )?\$\.?(?P<path>[^`]*)`$")
_MISSING = re.compile(r"missing required field `(?P<field>[^`]+)`")
_UNKNOWN = re.compile(r"contains unknown field `(?P<field>[^`]*)`")
_ENUM = "Invalid enum value"
_EXPECTED = re.compile(r"Expected `(?P<wanted>[^`]+)`(?P<limit>[^,]*)(?:, got `(?P<given>[^`]+)`)?")
_TYPES = {
    "str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list",
    "object": "an object",
}  # fmt: skip


def split_validation_error(error: msgspec.ValidationError) -> tuple[str, str]:
    """(what is wrong, where): msgspec says both in one sentence. A missing field is named in the second."""
    text = str(error)
    path = ""
    if match := _PATH.search(text):
        path = match["path"].partition("[")[0]
        text = text[: match.start()]
    if match := _MISSING.search(text):
        path = f"{path}.{match['field']}".lstrip(".")
        text = MISSING
    return text, path


def find_unknown_field(text: str) -> str | None:
    """Its name, where the error is that there is no such field."""
    match = _UNKNOWN.search(text)
    return None if match is None else match["field"]


def is_unknown_word(text: str) -> bool:
    """Whether the error is a word that is none of those allowed."""
    return text.startswith(_ENUM)


def describe_mismatch(text: str, *, has_null: bool = True) -> str:
    """Says, after a name, what its value must be. `has_null`: null is named where it is allowed."""
    match = _EXPECTED.fullmatch(text)
    if match is None:
        return f"is invalid: {text.replace('`', '')}"
    wanted = " or ".join(_TYPES.get(each, each) for each in match["wanted"].split(" | ") if has_null or each != "null")
    given = f", not {_TYPES.get(match['given'], match['given'])}" if match["given"] else ""
    return f"must be {wanted}{match['limit']}{given}"
