from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.header_table import HEADERS, is_identifier, is_one_line
from agent_relay.protocol.headers import HeaderMessage

# Section 9 of the contract, word for word, and the headers of its answers.
CONTRACT = {
    "TO", "KIND", "THREAD", "ID", "SEQ", "SESSION", "CHECKSUM", "REPLY-TO", "PRIORITY", "TTL", "AWAIT", "CORRELATION",
    "REQUIRE-ACK", "TOPIC", "NAME", "CLI", "CWD", "TYPE", "VERSION",
}  # fmt: skip
ANSWERS = {
    "CODE", "CATEGORY", "RETRYABLE", "RETRY-AFTER", "QUEUE-DEPTH", "QUEUE-CAPACITY", "DELAY-MS", "ACCEPTING", "WAITED",
    "CAPABILITIES", "NEGOTIATED-VERSION",
}  # fmt: skip


def test_every_header_of_the_contract_is_in_the_table() -> None:
    assert {header.name for header in HEADERS} == CONTRACT | ANSWERS
    assert len({header.name for header in HEADERS}) == len(HEADERS)


def test_every_field_of_a_message_has_its_header() -> None:
    fields = {field.name for field in dataclasses.fields(HeaderMessage)} - {"body"}
    assert {header.field for header in HEADERS} == fields
    assert all(header.name == header.name.upper() for header in HEADERS)


@given(st.sampled_from(HEADERS), st.text(max_size=40))
def test_a_reader_refuses_with_a_value_error_or_reads_what_can_be_written(header: object, text: str) -> None:
    assert isinstance(header, type(HEADERS[0]))
    try:
        value = header.read(text)
    except ValueError:
        return
    assert header.read(header.write(value)) == value


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("a", True),
        ("two words", True),
        ("über 👨‍👩‍👧 ok", True),
        ("non\u00a0breaking", True),
        ("", False),
        (" a", False),
        ("a ", False),
        ("a\n", False),
        ("a\rb", False),
        ("a\tb", False),
        ("a\x1bb", False),
        ("a\x7fb", False),
        ("a\u2029b", False),
        ("a\udc80", False),
    ],
)
def test_one_line(text: str, good: bool) -> None:
    assert is_one_line(text) is good
    assert is_identifier(text) is good


def test_identifiers_are_bounded() -> None:
    assert is_identifier("x" * 128)
    assert not is_identifier("x" * 129)
