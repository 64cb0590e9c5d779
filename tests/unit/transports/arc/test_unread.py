from __future__ import annotations

import pytest

from agent_relay.transports.arc import unread as module
from agent_relay.transports.arc.unread import Unread


def test_a_pong_says_that_everything_before_its_ping_was_read() -> None:
    unread = Unread()
    assert not unread.should_ask
    unread.gave(3, 300)
    assert unread.should_ask
    first = unread.ask()
    assert not unread.should_ask
    unread.gave(2, 200)
    assert unread.answered(first) == 3
    assert unread.answered(first) == 0
    assert unread.answered(unread.ask()) == 2


def test_who_answers_the_last_of_several_pings_has_read_everything() -> None:
    unread = Unread()
    unread.gave(1, 1)
    first = unread.ask()
    unread.gave(1, 1)
    assert unread.answered(unread.ask()) == 2
    assert unread.answered(first) == 0


@pytest.mark.parametrize("content", [b"", b"0", b"1", b"5", b"02", b"2 ", b"\xff", b"9" * 100])
def test_a_pong_that_answers_nothing_of_ours_says_nothing(content: bytes) -> None:
    unread = Unread()
    unread.gave(2, 2)
    unread.ask()
    unread.gave(3, 3)
    assert unread.answered(content) == 0


def test_pings_without_news_are_answered_too() -> None:
    unread = Unread()
    assert unread.answered(unread.ask()) == 0
    unread.gave(1, 1)
    assert unread.answered(unread.ask()) == 1
    assert unread.answered(unread.ask()) == 0


def test_one_that_does_not_answer_is_not_asked_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_PINGS", 2)
    unread = Unread()
    contents = []
    for _ in range(5):
        unread.gave(1, 1)
        if unread.should_ask:
            contents.append(unread.ask())
    assert contents == [b"1", b"2"]
    assert unread.answered(b"1") == 1
    assert unread.should_ask


@pytest.mark.parametrize("name", ["_MOST", "_MOST_BYTES"])
def test_there_is_a_limit_to_what_was_given_and_not_read(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(module, name, 10)
    unread = Unread()
    unread.gave(9, 9)
    assert not unread.is_too_much
    content = unread.ask()
    unread.gave(1, 1)
    assert unread.is_too_much
    unread.answered(content)
    assert not unread.is_too_much
