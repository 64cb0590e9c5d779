"""Files as values with lines, and what is refused of YAML."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.patterns.run import document
from agent_relay.patterns.run.document import MAX_BYTES, RunFileError, read_document
from agent_relay.protocol.errors import RelayError


def test_every_value_knows_its_line() -> None:
    found = read_document("a: 1\nb:\n  - x\n  - c: |\n      text\n      more\n", "f.yaml")
    assert found.value == {"a": 1, "b": ["x", {"c": "text\nmore\n"}]}
    places: list[tuple[str | int, ...]] = [("a",), ("b",), ("b", 0), ("b", 1, "c"), ("b", 1, "no", "such"), ("no",)]
    assert [found.line_of(place) for place in places] == [1, 2, 3, 4, 4, 1]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[yes, no, on, off, true, False]", ["yes", "no", "on", "off", True, False]),
        ("[1, 0x10, 1.5, ~, null, 2026-11-18, '1']", [1, 16, 1.5, None, None, "2026-11-18", "1"]),
        ("on: 1", {"on": 1}),
        ("a: &x {k: 1, l: 2}\nb:\n  <<: *x\n  l: 3", {"a": {"k": 1, "l": 2}, "b": {"k": 1, "l": 3}}),
        ("", None),
        ("# nothing", None),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert read_document(text, "f").value == value


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a: 1\nb: [", 2, "not valid YAML"),
        ("a: 1\n\tb: 2", 2, "not valid YAML"),
        ("a: 1\nb: !!python/object:os.system x", 2, "Tags such as"),
        ("a: !secret x", 1, "Tags such as !secret"),
        ("a: !!set {x}", 1, "Tags such as"),
        ("a: 1\nb: 2\na: 3", 3, "The key a is there twice"),
        ("? [a]\n: 1", 1, "A key must be a text"),
        ("a: 1\n---\nb: 2", 2, "not valid YAML"),
        ("a: *nothing", 1, "undefined alias"),
        ("a: \x00", 1, "not valid YAML"),
        ("x" * (MAX_BYTES + 1), 1, "larger than"),
        ("[" * 5_000, 1, "nested too deeply|not valid YAML"),
    ],
)
def test_what_is_refused(text: str, line: int, reason: str) -> None:
    with pytest.raises(RunFileError, match=reason) as refused:
        read_document(text, "f.yaml")
    assert refused.value.line == line
    assert refused.value.message.startswith(f"f.yaml, line {line}: ")


def test_a_small_file_cannot_stand_for_an_enormous_one() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(RunFileError, match="more than 20,000 values"):
        read_document("\n".join(lines), "f")


@given(st.text(max_size=200))
def test_whatever_stands_in_a_file_is_a_value_or_a_mistake_with_a_line(text: str) -> None:
    line = 1
    try:
        read_document(text, "f")
    except RunFileError as error:
        line = error.line
    assert line >= 1


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_import(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(document, "import_module", no_import)
    with pytest.raises(RelayError, match=r"needs the package PyYAML: pip install 'agent-relay\[run\]'"):
        read_document("a: 1", "f")
