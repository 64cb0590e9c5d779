"""What the owner has seen and put aside: kept, the later mark of two, and never without end."""

from __future__ import annotations

import pytest

from agent_relay.protocol.errors import RelayError
from agent_relay.transports.http.marks import MOST_MARKS, Mark, Marks


class Shelf:
    def __init__(self) -> None:
        self.content = b""
        self.is_broken = False

    def load(self) -> bytes:
        return self.content

    def save(self, content: bytes) -> None:
        if self.is_broken:
            raise OSError(28, "No space left on device")
        self.content = content


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def open_marks(shelf: Shelf) -> Marks:
    return Marks(shelf, lambda: 1_000)


def test_they_are_kept(shelf: Shelf) -> None:
    marks = open_marks(shelf)
    before = marks.version
    marks.change({"seen:channel:#build": Mark(5), "later:per_1": Mark(6, until=90)}, [])
    assert marks.version > before
    assert open_marks(shelf).all() == {"seen:channel:#build": Mark(5), "later:per_1": Mark(6, until=90)}
    marks.change({}, ["later:per_1", "nothing"])
    assert open_marks(shelf).all() == {"seen:channel:#build": Mark(5)}


def test_of_two_the_later_counts_whichever_browser_says_it_first(shelf: Shelf) -> None:
    marks = open_marks(shelf)
    marks.change({"seen:all:": Mark(5)}, [])
    version = marks.version
    marks.change({"seen:all:": Mark(4)}, [])
    assert (marks.all(), marks.version) == ({"seen:all:": Mark(5)}, version)


def test_the_oldest_are_forgotten(shelf: Shelf) -> None:
    marks = open_marks(shelf)
    marks.change({f"done:{number}": Mark(number) for number in range(MOST_MARKS + 2)}, [])
    assert len(marks.all()) == MOST_MARKS
    assert "done:1" not in marks.all()
    assert f"done:{MOST_MARKS + 1}" in marks.all()


def test_what_cannot_be_saved_is_refused_and_nothing_has_changed(shelf: Shelf) -> None:
    marks = open_marks(shelf)
    marks.change({"done:1": Mark(1)}, [])
    version = marks.version
    shelf.is_broken = True
    with pytest.raises(RelayError, match="No space left"):
        marks.change({"done:2": Mark(2)}, [])
    assert (marks.all(), marks.version) == ({"done:1": Mark(1)}, version)


@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff", b'{"a":{"at":"x"}}'])
def test_unreadable_ones_are_as_good_as_none(shelf: Shelf, content: bytes) -> None:
    shelf.content = content
    assert open_marks(shelf).all() == {}
