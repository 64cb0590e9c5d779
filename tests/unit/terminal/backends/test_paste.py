from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.backends.paste import END, START, clean_paste, encode_paste


@given(st.text())
def test_nothing_in_a_paste_can_end_it_or_press_a_key(text: str) -> None:
    data = encode_paste(text, bracketed=True)
    assert data.startswith(START)
    assert data.endswith(END)
    body = data[len(START) : -len(END)]
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
