"""`--debug` shows the outline of a frame and nothing that was said in it."""

from __future__ import annotations

import logging

import pytest

from agent_relay.transports.trace import trace


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        (b'{"type":"SEND","id":"i1","to":"Bob","payload":{"body":"SECRET"}}', ("SEND", "i1", "Bob")),
        (b'{"type":"SEND","id":"i1","to":["A","B"],"payload":{"body":"SECRET"}}', ("SEND", "i1", ["A", "B"])),
        (b'{"type":"HELLO","id":"i1","payload":{"session":{"resume_token":"SECRET"}}}', ("HELLO", "i1", None)),
        (b'{"type":5,"id":"SECRET"}', ("?", "?", None)),
        (b"SECRET", ("?", "?", None)),
        (b"\xffSECRET", ("?", "?", None)),
        (b'{"x":' + b"[" * 5_000 + b"]" * 5_000 + b"}", ("?", "?", None)),
    ],
)
def test_the_outline_and_nothing_else(caplog: pytest.LogCaptureFixture, frame: bytes, shown: tuple[object, ...]) -> None:
    with caplog.at_level(logging.DEBUG, "agent_relay"):
        trace("heard", [frame])
    (record,) = caplog.records
    fields = record.relay_fields  # type: ignore[attr-defined]
    assert (fields["type"], fields["id"], fields["to"]) == shown
    assert fields["bytes"] == len(frame)
    assert "SECRET" not in repr(fields) + record.getMessage()
