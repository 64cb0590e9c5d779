"""What is sent, to whom, and how long is waited: `--wait` and `--reply`, with a time or without one."""

from __future__ import annotations

import io

import pytest

from agent_relay.cli.commands.send import note_old_name, read_body, read_target, spell_out_waits
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


@pytest.mark.parametrize(
    ("words", "spelled"),
    [
        ("send Bob hi --wait", "send Bob hi --wait=30s"),
        ("send Bob hi --wait 5s", "send Bob hi --wait 5s"),
        ("send Bob --reply hi", "send Bob --reply=30s hi"),
        ("send --wait --json Bob hi", "send --wait=30s --json Bob hi"),
        ("send Bob --wait=5s hi", "send Bob --wait=5s hi"),
        ("send Bob -- --wait", "send Bob -- --wait"),
        ("send Bob hi --await 300", "send Bob hi --await 300"),
    ],
)
def test_a_time_that_was_left_out_is_filled_in(words: str, spelled: str) -> None:
    assert spell_out_waits(words.split()) == spelled.split()


def test_an_old_name_is_noted_where_no_script_reads(capsys: pytest.CaptureFixture[str]) -> None:
    note_old_name("--await", "--reply")
    assert capsys.readouterr() == ("", "note: --await is now called --reply; the old name still works.\n")
