"""Standard input that is no terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.cli.wrapper.piped_input import MAX_BYTES, follow, has_input, is_piped, read_texts


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


def test_what_may_hold_a_text(pipe: tuple[int, int], tmp_path: Path) -> None:
    assert is_piped(pipe[0])
    assert not has_input(pipe[0])
    os.write(pipe[1], b"x")
    assert has_input(pipe[0])
    (tmp_path / "file").write_text("x")
    for path, is_it in ((os.devnull, False), (str(tmp_path / "file"), True)):
        with open(path, "rb") as file:
            assert (is_piped(file.fileno()), has_input(file.fileno())) == (is_it, is_it)
    assert not is_piped(999)


def test_lines_that_come_together_are_one_text(pipe: tuple[int, int]) -> None:
    os.write(pipe[1], b"one\ntwo\n")
    texts = read_texts(pipe[0])
    assert next(texts) == (b"one\ntwo\n", False)  # the writer is still there
    os.write(pipe[1], b"three\n")
    os.close(pipe[1])
    assert list(texts) == [(b"three\n", False)]


def test_too_much_is_cut_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * (MAX_BYTES + 5))
    with (tmp_path / "file").open("rb") as file:
        assert [(len(data), is_cut) for data, is_cut in read_texts(file.fileno())] == [(MAX_BYTES, True)]


def test_each_text_is_given_to_the_loop(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"hi there\n")
    said: list[str] = []

    async def take() -> str:
        given: asyncio.Queue[str] = asyncio.Queue()
        with (tmp_path / "file").open("rb") as file:
            follow(given.put_nowait, said.append, file.fileno())
            async with asyncio.timeout(120):
                return await given.get()

    assert asyncio.run(take()) == "hi there"
    assert said == []
