"""Resources: every thread has an address that leads back to it, and a message changes what it should."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.mcp.resources import INBOX_URI, Resource, find_changed, read_uri, thread_uri


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_an_address_leads_back_to_its_thread(thread: str) -> None:
    uri = thread_uri(thread)
    assert uri.isascii()
    assert read_uri(uri) == Resource(thread)


@pytest.mark.parametrize("uri", ["", "relay://", "relay://thread/", "file:///etc/passwd", "relay://inbox/../x", "\x1b"])
def test_other_addresses_are_refused(uri: str) -> None:
    with pytest.raises(RelayError, match="There is no resource"):
        read_uri(uri)


@given(st.text())
def test_any_address_is_read_or_refused(uri: str) -> None:
    for each in (uri, f"relay://thread/{uri}"):
        refused: RelayError | None = None
        try:
            read_uri(each)
        except RelayError as error:
            refused = error
        assert refused is None or refused.message.isprintable()


@pytest.mark.parametrize(
    ("to", "thread", "changed"),
    [
        ("Alice", None, [INBOX_URI]),
        ("bob,ALICE", "t 1", [INBOX_URI, "relay://thread/t%201"]),
        ("Bob", None, []),
        ("Bob", "x", ["relay://thread/x"]),
        ("#dev", None, [INBOX_URI]),
        ("*", None, [INBOX_URI]),
        ("", None, [INBOX_URI]),
    ],
)
def test_a_message_changes_what_it_should(to: str, thread: str | None, changed: list[str]) -> None:
    assert find_changed(to, thread, "Alice") == changed
