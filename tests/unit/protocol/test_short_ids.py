"""Short ids."""

from __future__ import annotations

import pytest

from agent_relay.protocol.short_ids import long_id, read_short_id, short_id, stands_for

ID = "msg_01KA2V8Z5T7Q4M9C3XKJ0000A1"


def test_more_digits_stand_for_the_same() -> None:
    assert long_id(ID).startswith(short_id(ID))
    assert all(stands_for(long_id(ID)[:digits], ID) for digits in (8, 12, 64))
    assert not stands_for(short_id(ID), ID + "x")


@pytest.mark.parametrize("text", ["3f9c2a11", "[3f9c2a11]", " 3F9C2A11 "])
def test_it_is_read_with_or_without_brackets(text: str) -> None:
    assert read_short_id(text) == "3f9c2a11"


@pytest.mark.parametrize("text", ["", "3f9c2a1", "msg_3f9c2a11", "3f9c2a1g", "a" * 65, ID])
def test_anything_else_is_none(text: str) -> None:
    assert read_short_id(text) is None
