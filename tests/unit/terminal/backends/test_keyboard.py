from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.backends.keyboard import PASTE_END, PASTE_START, TypingDetector, clean_paste, encode_key, encode_paste
from agent_relay.terminal.backends.terminal import Key

BY_ITSELF = [
    b"\x1b[?62;22c", b"\x1b[>0;10;1c", b"\x1b[12;40R", b"\x1b[0n", b"\x1b[?2026;2$y", b"\x1b[?1u", b"\x1b[I", b"\x1b[O",
    b"\x1b[8;40;120t",
    b"\x1b[<35;10;20M", b"\x1b[<0;1;1m", b"\x1b[M !!", b"\x1b]11;rgb:0000/0000/0000\x07", b"\x1b]10;rgb:ff/ff/ff\x1b\\",
    b"\x1bP>|xterm(388)\x1b\\", b"\x1b_Gi=1;OK\x1b\\",
]  # fmt: skip
TYPED = [
    b"a",
    b"\r",
    b"\x03",
    b"\x1b[A",
    b"\x1bOA",
    b"\x1b[3~",
    b"\x1b[99;5u",
    b"\x1b[200~hi\x1b[201~",
    "é".encode(),
    b"\x1bx",
    b"\x7f",
    b"\x1b[1;5C",
]


@pytest.mark.parametrize("data", BY_ITSELF)
def test_what_a_terminal_says_by_itself(data: bytes) -> None:
    detector = TypingDetector()
    assert not detector.feed(data)
    assert not detector.is_unsure


@pytest.mark.parametrize("data", TYPED)
def test_what_a_person_types(data: bytes) -> None:
    assert TypingDetector().feed(data)


@given(st.sampled_from(BY_ITSELF), st.data())
def test_an_answer_that_is_cut_is_no_key(data: bytes, draw: st.DataObject) -> None:
    cut = draw.draw(st.integers(1, len(data) - 1))
    detector = TypingDetector()
    assert not detector.feed(data[:cut])
    assert detector.is_unsure
    assert not detector.feed(data[cut:])


def test_keys_between_answers_count() -> None:
    assert TypingDetector().feed(b"\x1b[?62cx\x1b[I")


def test_escape_alone_is_a_key_once_nothing_follows() -> None:
    detector = TypingDetector()
    assert not detector.feed(b"\x1b")
    assert detector.is_unsure
    assert detector.settle()
    assert not detector.settle()


@given(st.lists(st.binary(max_size=20)))
def test_anything_may_come(chunks: list[bytes]) -> None:
    detector = TypingDetector()
    for chunk in chunks:
        detector.feed(chunk)
    detector.settle()
    assert not detector.is_unsure


@pytest.mark.parametrize("key", list(Key))
def test_every_key_has_its_bytes(key: Key) -> None:
    assert encode_key(key, application_cursor=False)
    assert encode_key(key, application_cursor=True)


def test_arrows_have_two_spellings() -> None:
    assert encode_key(Key.UP, application_cursor=False) == b"\x1b[A"
    assert encode_key(Key.UP, application_cursor=True) == b"\x1bOA"


@given(st.text())
def test_nothing_in_a_paste_can_end_it_or_press_a_key(text: str) -> None:
    data = encode_paste(text, bracketed=True)
    assert data.startswith(PASTE_START)
    assert data.endswith(PASTE_END)
    body = data[len(PASTE_START) : -len(PASTE_END)]
    assert not [byte for byte in body if byte < 32 and byte not in b"\t\r"]
    assert b"\x7f" not in body
    assert not [character for character in body.decode() if 0x80 <= ord(character) < 0xA0]
    assert encode_paste(text, bracketed=False) == body


def test_line_breaks_are_one_each() -> None:
    assert clean_paste("a\r\nb\rc\nd") == "a\nb\nc\nd"
    assert encode_paste("a\nb", bracketed=False) == b"a\rb"


def test_what_is_harmless_stays() -> None:
    text = "tab\t é 漢 🙂 \u200d “quoted” $(x) ; #{y}"
    assert clean_paste(text) == text


def test_a_control_leaves_a_trace() -> None:
    assert clean_paste("a\x1b[201~b\x00c\x9bd\ud800") == "a\ufffd[201~b\ufffdc\ufffdd\ufffd"
