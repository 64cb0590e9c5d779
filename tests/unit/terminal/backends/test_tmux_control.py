from __future__ import annotations

import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.backends import tmux_control as control
from agent_relay.terminal.backends.tmux_control import (
    Answer,
    Continued,
    ControlBroken,
    ControlParser,
    Event,
    Exited,
    Notice,
    Output,
    Paused,
    Subscribed,
    command_line,
    escape_argument,
    quote_word,
    unescape_output,
)

# As tmux 3.3a wrote it.
RECORDED = (
    b"%begin 1794734312 268 0\n%end 1794734312 268 0\n%session-changed $0 0\n%window-renamed @0 cat\n"
    b"%begin 1794734312 274 1\n15\n%end 1794734312 274 1\n"
    b"%begin 1794734312 278 1\nparse error: unknown command: bogus\n%error 1794734312 278 1\n"
    b"%layout-change @0 9f9d,50x10,0,0,0 9f9d,50x10,0,0,0 *\n"
    b"%extended-output %0 0 : h\xc3\xa9^[\\010 \\010\n%output %1 a : b\\134\\015\\012\n"
    b"%subscription-changed person $0 - - - : 1794734312\n%pause %0\n%continue %0\n%exit\n%exit too far behind\n"
)
EVENTS: list[Event] = [
    Answer((), is_error=False, is_ours=False),
    Notice(b"session-changed", b"$0 0"),
    Notice(b"window-renamed", b"@0 cat"),
    Answer((b"15",), is_error=False, is_ours=True),
    Answer((b"parse error: unknown command: bogus",), is_error=True, is_ours=True),
    Notice(b"layout-change", b"@0 9f9d,50x10,0,0,0 9f9d,50x10,0,0,0 *"),
    Output(b"%0", b"h\xc3\xa9^[\x08 \x08"),
    Output(b"%1", b"a : b\\\r\n"),
    Subscribed(b"person", b"1794734312"),
    Paused(b"%0"),
    Continued(b"%0"),
    Exited(b""),
    Exited(b"too far behind"),
]


def escape_output(data: bytes) -> bytes:
    """As tmux writes it."""
    return b"".join(b"\\%03o" % byte if byte < 32 or byte == 0x5C else bytes([byte]) for byte in data)


def test_whole() -> None:
    assert ControlParser().feed(RECORDED) == EVENTS


@given(st.lists(st.integers(0, len(RECORDED)), max_size=12))
def test_cut_anywhere(cuts: list[int]) -> None:
    parser = ControlParser()
    edges = [0, *sorted(cuts), len(RECORDED)]
    events = [event for start, end in itertools.pairwise(edges) for event in parser.feed(RECORDED[start:end])]
    assert events == EVENTS


def test_byte_by_byte() -> None:
    parser = ControlParser()
    assert [event for byte in RECORDED for event in parser.feed(bytes([byte]))] == EVENTS


@given(st.binary())
def test_output_survives_its_escapes(data: bytes) -> None:
    assert unescape_output(escape_output(data)) == data
    assert b"\n" not in escape_output(data)
    (event,) = ControlParser().feed(b"%output %3 " + escape_output(data) + b"\n")
    assert event == Output(b"%3", data)


def test_what_looks_like_an_escape_of_an_escape() -> None:
    for data in (b"\\033", b"\\015\\012", b"\\\\033", b"\\134", b"\\"):
        assert unescape_output(escape_output(data)) == data


def test_a_pane_cannot_end_an_answer_by_showing_its_end() -> None:
    parser = ControlParser()
    data = b"%begin 1 7 1\n%end 1 6 1\n%end 1 7 0\n%begin 1 7 1\n%error 2 7 1\n%output %0 x\n%end 1 7 1\n"
    (answer,) = parser.feed(data)
    assert isinstance(answer, Answer)
    assert len(answer.lines) == 5


@pytest.mark.parametrize("data", [b"hello\n", b"%end 1 2 1\n", b"x" * (control.MAX_LINE_BYTES + 1)])
def test_what_is_no_tmux_is_refused(data: bytes) -> None:
    with pytest.raises(ControlBroken):
        ControlParser().feed(data)


@given(st.binary())
def test_nothing_else_is_ever_raised(data: bytes) -> None:
    with contextlib.suppress(ControlBroken):
        ControlParser().feed(data)


def test_the_empty_output_of_both_spellings() -> None:
    assert ControlParser().feed(b"%output %0 \n%extended-output %0 12 : \n") == [Output(b"%0", b""), Output(b"%0", b"")]


def test_words_are_quoted_where_they_must_be() -> None:
    assert command_line(("send-keys", "-t", "%0", "-H", "1b"), ("x", "a b")) == b'send-keys -t "%0" -H 1b ; x "a b"\n'
    assert quote_word("") == '""'
    assert quote_word('$(x)~\n"') == '"\\$(x)\\~\\n\\""'
    with pytest.raises(ValueError, match="NUL"):
        quote_word("a\0b")


@given(st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",))))
def test_a_word_never_leaves_its_line(word: str) -> None:
    assert command_line(("x", word)).count(b"\n") == 1


@pytest.mark.parametrize(
    ("word", "escaped"), [("a", "a"), (";", "\\;"), ("a;", "a\\;"), ("a\\;", "a\\\\;"), ("a;b", "a;b"), ("", "")]
)
def test_a_semicolon_at_the_end_of_an_argument(word: str, escaped: str) -> None:
    assert escape_argument(word) == escaped
