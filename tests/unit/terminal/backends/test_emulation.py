from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.backends.emulation import MAX_WAITING_BYTES, Emulation, Place, Query, QueryFinder, answer


def emulation(replies: list[bytes] | None, lost: list[int], columns: int = 40, rows: int = 5) -> Emulation:
    return Emulation(columns, rows, reply=None if replies is None else replies.append, lost=lambda: lost.append(1))


def test_a_question_is_answered_from_where_the_cursor_was_then() -> None:
    async def scene() -> None:
        replies: list[bytes] = []
        screen = emulation(replies, [])
        screen.put(b"".join(b"line %d\r\n" % number for number in range(20)) + b"abc\x1b[6n")
        screen.put(b"\x1b[H")
        shown = await screen.read()
        assert replies == [b"\x1b[5;4R"]
        # Answering has read the screen; the lines that had scrolled off by then are told all the same, once.
        assert [line.text for line in shown.lines][:20] == [f"line {number}" for number in range(20)]
        assert len((await screen.read()).lines) == 5

    asyncio.run(scene())


def test_who_has_a_terminal_is_not_answered_by_us() -> None:
    async def scene() -> None:
        screen = emulation(None, [])
        screen.put(b"abc\x1b[6n")
        assert (await screen.read()).visible[0].text == "abc"

    asyncio.run(scene())


def test_a_flood_is_cut_and_said_and_its_end_is_right() -> None:
    async def scene() -> None:
        lost: list[int] = []
        screen = emulation([], lost)
        screen.put(b"\x1b[?1049h" + b"flood\r\n" * (MAX_WAITING_BYTES // 7 + 100) + b"THE END")
        assert lost == [1]
        shown = await screen.read()
        assert shown.visible[-1].text == "THE END"
        assert shown.is_alternate

    asyncio.run(scene())


def test_drawing_lets_others_have_their_turn() -> None:
    async def scene() -> None:
        screen = emulation([], [])
        screen.put(b"x" * 40_000)
        reading = asyncio.create_task(screen.read())
        turns = 0
        while not reading.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 10

    asyncio.run(scene())


# --- queries of the program --------------------------------------------------------------------------------------------


def answers_to(*chunks: bytes) -> bytes:
    finder = QueryFinder()
    parts = [part for chunk in chunks for part in finder.split(chunk)]
    return b"".join(answer(part, columns=100, rows=30, cursor=(4, 9)) for part in parts if isinstance(part, Query))


ASKED = {
    b"\x1b[6n": b"\x1b[5;10R",
    b"\x1b[?6n": b"\x1b[?5;10R",
    b"\x1b[5n": b"\x1b[0n",
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[0c": b"\x1b[?62;22c",
    b"\x1b[>c": b"\x1b[>0;10;1c",
    b"\x1b[?2026$p": b"\x1b[?2026;0$y",
    b"\x1b[18t": b"\x1b[8;30;100t",
    b"\x1b[14t": b"\x1b[4;480;800t",
    b"\x1b]11;?\x07": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
    b"\x1b]10;?\x1b\\": b"\x1b]10;rgb:e5e5/e5e5/e5e5\x1b\\",
}


@pytest.mark.parametrize(("query", "expected"), ASKED.items())
def test_each_question_has_its_answer(query: bytes, expected: bytes) -> None:
    assert answers_to(b"text" + query + b"more") == expected
    assert answers_to(*(bytes([byte]) for byte in query)) == expected


@pytest.mark.parametrize("data", [b"\x1b[?u", b"\x1b[31m", b"\x1b[2J", b"\x1b]0;title\x07", b"\x1b[=c", b"\x1b[?25h", b"plain"])
def test_what_is_no_question_is_not_answered(data: bytes) -> None:
    assert answers_to(data) == b""


def test_what_is_drawn_before_a_question_comes_before_it() -> None:
    parts = QueryFinder().split(b"ab\x1b[6ncd")
    assert parts == [b"ab\x1b[6n", Query("status", b"6", Place.CURSOR), b"cd"]


@given(st.lists(st.binary(max_size=30)))
def test_no_byte_of_the_output_is_lost_for_long(chunks: list[bytes]) -> None:
    finder = QueryFinder()
    parts = [part for chunk in [*chunks, b"end of it"] for part in finder.split(chunk)]
    assert b"".join(part for part in parts if isinstance(part, bytes)) == b"".join(chunks) + b"end of it"
