"""What is sent, and to whom."""

from __future__ import annotations

import io

import pytest

from agent_relay.cli.commands.send import read_body, read_target
from agent_relay.cli.failures import USAGE, Failure


class Input:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize(
    ("to", "target"),
    [
        ("Bob", "Bob"),
        (" Bob ", "Bob"),
        ("Bob,Carol", ["Bob", "Carol"]),
        ("Bob, Carol,", ["Bob", "Carol"]),
        ("*", "*"),
        ("#dev", "#dev"),
    ],
)
def test_targets(to: str, target: str | list[str]) -> None:
    assert read_target(to) == target


@pytest.mark.parametrize("to", ["", " ", ",", " , "])
def test_nobody_is_no_target(to: str) -> None:
    with pytest.raises(Failure) as failure:
        read_target(to)
    assert failure.value.status == USAGE


@pytest.mark.parametrize(
    ("given", "body"), [(b"a\nb\n", "a\nb"), (b"a\n\n", "a\n"), (b"a\r\n", "a"), ("Grüße".encode(), "Grüße")]
)
def test_standard_input_without_its_last_line_end(monkeypatch: pytest.MonkeyPatch, given: bytes, body: str) -> None:
    monkeypatch.setattr("sys.stdin", Input(given))
    assert read_body("-") == body


@pytest.mark.parametrize("given", [b"", b"\n", b"\xff\xfe"])
def test_nothing_and_what_is_no_text_are_not_sent(monkeypatch: pytest.MonkeyPatch, given: bytes) -> None:
    monkeypatch.setattr("sys.stdin", Input(given))
    with pytest.raises(Failure) as failure:
        read_body("-")
    assert failure.value.status == USAGE


@pytest.mark.parametrize("text", ["", "\udcff"])
def test_an_argument_must_be_text_too(text: str) -> None:
    with pytest.raises(Failure):
        read_body(text)
