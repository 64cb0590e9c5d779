from __future__ import annotations

import asyncio

from agent_relay.terminal.backends.emulation import MAX_WAITING_BYTES, Emulation


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
