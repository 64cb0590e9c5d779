"""The live file: a drawing and what follows, never long, and nothing between the two lost or written twice."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent_relay.ports.watchers import LiveNews, LivePlace
from agent_relay.storage import live_screens
from agent_relay.storage.live_screens import LiveScreenFiles
from agent_relay.terminal.backends.terminal import Drawing
from agent_relay.terminal.recordings.live_screen import _GATHER_S, LIVE_FILE, MAX_BYTES, LiveScreen
from agent_relay.terminal.screen.emulator import Emulator

NAME = "Bob"


class Terminal:
    """An emulation that is asked for drawings; what is written while one is being made comes after it."""

    def __init__(self, columns: int = 20, rows: int = 4) -> None:
        self.size = (columns, rows)
        self.emulator = Emulator(columns, rows)
        self.drawings = 0
        self.while_drawing: list[bytes] = []
        self.live: LiveScreen | None = None

    def write(self, data: bytes) -> None:
        self.emulator.feed(data)
        if self.live is not None:
            self.live.output(data)

    async def draw(self, at: Callable[[], None]) -> Drawing:
        at()
        self.drawings += 1
        drawn = self.emulator.draw().encode()
        for data in self.while_drawing:
            self.write(data)
            await asyncio.sleep(3 * _GATHER_S)  # a slow terminal: what came is due to be written meanwhile
        self.while_drawing.clear()
        return Drawing(*self.size, drawn)


class Viewer:
    """Reads as the daemon does, and shows it."""

    def __init__(self, state_dir: Path) -> None:
        self._files = LiveScreenFiles(str(state_dir))
        self._place: LivePlace | None = None
        self.emulator = Emulator(1, 1)
        self.snapshots = 0
        self.is_over = False

    def look(self) -> list[str]:
        while (news := self._files.read(NAME, self._place)) is not None:
            self._show(news)
        return [line.text for line in self.emulator.read().visible]

    def _show(self, news: LiveNews) -> None:
        self._place = news.place
        if news.size is not None:
            self.snapshots += 1
            self.emulator = Emulator(*news.size)
        self.emulator.feed(news.text.encode())
        self.is_over = self.is_over or news.is_over


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not condition():
            await asyncio.sleep(0.005)


def play(tmp_path: Path, scene: Callable[[Terminal, LiveScreen, Viewer], Awaitable[None]]) -> None:
    async def run() -> None:
        folder = tmp_path / "team" / NAME
        folder.mkdir(parents=True)
        terminal = Terminal()
        live = terminal.live = LiveScreen(str(folder), terminal.draw)
        job = asyncio.create_task(live.run())
        try:
            await scene(terminal, live, Viewer(tmp_path))
        finally:
            job.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await job

    asyncio.run(run())


def test_both_ends_name_the_file_alike() -> None:
    assert live_screens.LIVE_FILE == LIVE_FILE


def test_a_viewer_sees_what_was_there_and_what_follows(tmp_path: Path) -> None:
    async def scene(terminal: Terminal, live: LiveScreen, viewer: Viewer) -> None:
        terminal.emulator.feed(b"before\r\n")
        await until(lambda: viewer.look()[:1] == ["before"])
        terminal.write(b"\x1b[31mafter")
        await until(lambda: viewer.look()[:2] == ["before", "after"])
        assert viewer.snapshots == 1
        live.close()
        viewer.look()
        assert viewer.is_over

    play(tmp_path, scene)


def test_what_is_written_during_a_drawing_comes_once(tmp_path: Path) -> None:
    async def scene(terminal: Terminal, live: LiveScreen, viewer: Viewer) -> None:
        terminal.emulator.feed(b"a")
        terminal.while_drawing = [b"b", b"c"]
        await until(lambda: viewer.look()[0] == "abc")
        assert terminal.drawings == 1

    play(tmp_path, scene)


def test_a_sequence_that_was_cut_by_the_drawing_is_made_whole(tmp_path: Path) -> None:
    async def scene(terminal: Terminal, live: LiveScreen, viewer: Viewer) -> None:
        await until(lambda: viewer.look() != [] and viewer.snapshots == 1)
        terminal.write(b"x\x1b[3")
        live.output_lost()
        await until(lambda: terminal.drawings == 2)
        terminal.write(b"1mred")
        await until(lambda: viewer.look()[0] == "xred")

    play(tmp_path, scene)


def test_a_new_size_is_drawn_anew(tmp_path: Path) -> None:
    async def scene(terminal: Terminal, live: LiveScreen, viewer: Viewer) -> None:
        terminal.write(b"wide")
        await until(lambda: viewer.look()[:1] == ["wide"])
        live.resized(20, 4)
        terminal.size = (30, 5)
        terminal.emulator.resize(30, 5)
        live.resized(30, 5)
        await until(lambda: len(viewer.look()) == 5)
        assert viewer.emulator.columns == 30
        assert viewer.snapshots == 2

    play(tmp_path, scene)


def test_the_file_stays_small_and_a_slow_viewer_sees_the_screen_of_now(tmp_path: Path) -> None:
    async def scene(terminal: Terminal, live: LiveScreen, viewer: Viewer) -> None:
        await until(lambda: viewer.look() != [] and viewer.snapshots == 1)
        path = tmp_path / "team" / NAME / LIVE_FILE
        sizes = []
        for number in range(6):
            terminal.write(b"x" * (MAX_BYTES // 2) + b"\r\n%d" % number)
            await until(lambda: not live._gathered)
            sizes.append(path.stat().st_size)
        terminal.write(b"\x1b[2J\x1b[Hlast")
        other = Viewer(tmp_path)
        await until(lambda: other.look() == ["last", "", "", ""])
        assert viewer.look() == ["last", "", "", ""]
        assert max(sizes) < 2 * MAX_BYTES
        assert terminal.drawings > 1
        assert viewer.snapshots == 2  # whatever lay between is not sent

    play(tmp_path, scene)


def test_nobody_there_is_nothing(tmp_path: Path) -> None:
    assert LiveScreenFiles(str(tmp_path)).read(NAME, None) is None
    (tmp_path / "team" / NAME).mkdir(parents=True)
    (tmp_path / "team" / NAME / LIVE_FILE).write_bytes(b"no recording\n")
    assert LiveScreenFiles(str(tmp_path)).read(NAME, None) is None
