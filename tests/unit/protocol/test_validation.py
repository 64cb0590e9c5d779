"""msgspec's errors, as people read them; its words are its own, so these are real ones."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from agent_relay.protocol.validation import (
    MISSING,
    describe_mismatch,
    find_unknown_field,
    is_unknown_word,
    split_validation_error,
)


class Inner(Struct, frozen=True, forbid_unknown_fields=True):
    size: int = 0


class Thing(Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1)]
    count: Annotated[int, Meta(ge=1)] = 1
    share: float | None = None
    word: Literal["yes", "no"] = "yes"
    inner: Inner = Inner()
    rows: list[Inner] = []


def fail(**fields: Any) -> tuple[str, str]:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(fields, Thing)
    return split_validation_error(caught.value)


@pytest.mark.parametrize(
    ("fields", "where", "said"),
    [
        ({"name": 1}, "name", "must be text, not a whole number"),
        ({"name": ""}, "name", "must be text of length >= 1"),
        ({"name": "a", "count": 0}, "count", "must be a whole number >= 1"),
        ({"name": "a", "count": "1"}, "count", "must be a whole number, not text"),
        ({"name": "a", "share": []}, "share", "must be a number or null, not a list"),
        ({"name": "a", "inner": True}, "inner", "must be an object, not true or false"),
        ({"name": "a", "inner": {"size": {}}}, "inner.size", "must be a whole number, not an object"),
        ({"name": "a", "rows": [{"size": "x"}]}, "rows", "must be a whole number, not text"),
    ],
)
def test_a_wrong_value_is_placed_and_explained(fields: dict[str, Any], where: str, said: str) -> None:
    text, path = fail(**fields)
    assert (path, describe_mismatch(text)) == (where, said)
    assert find_unknown_field(text) is None
    assert not is_unknown_word(text)


def test_null_is_named_only_where_it_is_wanted() -> None:
    text, _ = fail(name="a", share=[])
    assert describe_mismatch(text, has_null=False) == "must be a number, not a list"


def test_missing_and_unknown_fields_are_named() -> None:
    assert fail() == (MISSING, "name")
    text, path = fail(name="a", inner={"colour": 1})
    assert (find_unknown_field(text), path) == ("colour", "inner")


def test_a_word_that_is_not_allowed_is_told_from_a_wrong_type() -> None:
    text, path = fail(name="a", word="maybe")
    assert (is_unknown_word(text), path) == (True, "word")
    assert describe_mismatch(text) == "is invalid: Invalid enum value 'maybe'"
