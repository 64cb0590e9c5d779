"""The published schema of header files agrees with the reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.header_schema import BODY, make_header_schema
from agent_relay.protocol.header_table import HEADERS
from agent_relay.protocol.headers import HeaderMessage, parse_headers, write_error_answer, write_headers

PUBLISHED = Path(__file__).parents[3] / "docs" / "api" / "header-file.schema.json"
VALIDATOR = Draft202012Validator(make_header_schema())
WHOLE = HeaderMessage(
    to=("Bob", "Carol"), body="two\nlines", kind="message", thread="t", id="msg_" + "0" * 26, seq=3, session="ses_1",
    reply_to="msg_1", priority=9, ttl_ms=90_000, await_ms=1, correlation="c", require_ack=False, topic="code.review",
    name="Bob", cli="claude", cwd="/srv", type="note", version=2, code="INTERNAL_ERROR", category="internal", retryable=True,
    retry_after_ms=0, queue_depth=1, queue_capacity=2, delay_ms=3, accepting=True, waited_ms=86_400_000,
    capabilities=("ack", "events"), negotiated_version=2,
)  # fmt: skip


def read(text: str) -> dict[str, Any]:
    """A file as the object that the schema is of."""
    head, _, body = text.partition("\n\n")
    pairs = (line.partition(":") for line in head.splitlines())
    return {name.upper(): value.strip() for name, _, value in pairs} | {BODY: body}


def test_the_published_file_is_up_to_date() -> None:
    assert json.loads(PUBLISHED.read_text("utf-8")) == make_header_schema(), "write it again: make docs"
    Draft202012Validator.check_schema(make_header_schema())


def test_it_knows_every_header() -> None:
    assert set(make_header_schema()["properties"]) == {header.name for header in HEADERS} | {BODY}


@pytest.mark.parametrize(
    "text",
    [
        write_headers(WHOLE),
        write_headers(HeaderMessage(to=("*",), body="hello")),
        write_headers(HeaderMessage(kind="spawn", name="Bob", cli="claude", body="task")),
        write_headers(HeaderMessage(kind="join", to=("#general",))),
        write_error_answer(RelayError(ErrorCode.INVALID_FORMAT, "no")),
        "TO: Bob\nX-LATER: 1\nREQUIRE-ACK: TRUE\nTTL: 5 m\n\nhi",
    ],
)
def test_what_the_reader_takes_is_valid(text: str) -> None:
    parse_headers(text)
    assert list(VALIDATOR.iter_errors(read(text))) == []


@pytest.mark.parametrize(
    "text",
    [
        "THREAD: x\n\nno recipient",
        "KIND: spawn\nNAME: Bob\n\nno program",
        "KIND: release\n\nnobody",
        "KIND: Message\nTO: Bob\n\nx",
        "TO: Bob\nPRIORITY: 10\n\nx",
        "TO: Bob\nTTL: soon\n\nx",
        "TO: Bob\nAWAIT: 1.5s\n\nx",
        "TO: Bob\nID: msg_1\n\nx",
        "TO: Bob\nREQUIRE-ACK: yes\n\nx",
        "TO: Bob\nSEQ: -1\n\nx",
        "TO: Bob\nSESSION: " + "s" * 129 + "\n\nx",
        "TO:\n\nx",
        "KIND: error\n\nno code",
    ],
)
def test_what_the_reader_refuses_is_refused(text: str) -> None:
    with pytest.raises(RelayError):
        parse_headers(text)
    assert not VALIDATOR.is_valid(read(text))
