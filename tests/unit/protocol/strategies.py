"""Values as they come over the wire, for the property tests."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

LARGEST_NUMBER = 2**53 - 1

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-LARGEST_NUMBER, LARGEST_NUMBER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
json_objects = st.dictionaries(st.text(), json_values, max_size=5)
identifiers = st.text(min_size=1, max_size=128)
names = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")
moments = st.integers(0, LARGEST_NUMBER)


@st.composite
def spellings(draw: st.DrawFn, values: st.SearchStrategy[Any] = json_objects) -> tuple[Any, bytes]:
    """A value and one of the ways to write it: escaped or as UTF-8, tight or with spaces."""
    value = draw(values)
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: ")]))
    return value, json.dumps(value, ensure_ascii=draw(st.booleans()), separators=separators).encode()


def nested(levels: int, inner: str = "") -> str:
    """`levels` arrays, one in the other."""
    return "[" * levels + inner + "]" * levels
