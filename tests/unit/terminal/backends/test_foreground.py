"""Who reads a terminal, told by the system: behind whatever it was started, and whether it waits for a line."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from agent_relay.terminal.backends.foreground import read_ps
from agent_relay.terminal.backends.pty import PtyTerminal
from agent_relay.terminal.backends.terminal import Foreground
from tests.unit.terminal.backends.recorder import ENVIRONMENT, Recorder, eventually_async

WAITING = {
    "read": "sys.stdin.readline()",
    "poll": "p = select.poll(); p.register(0, select.POLLIN); p.poll()",
    "select": "select.select([0], [], [])",
    "epoll": "e = select.epoll(); e.register(0, select.EPOLLIN); e.poll()",
    "thread": "threading.Thread(target=sys.stdin.readline).start(); time.sleep(100)",
}
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells what a process waits for")


def inspected(argv: list[str], wanted: str) -> Foreground:
    async def look() -> Foreground:
        terminal = PtyTerminal(Recorder())
        await terminal.start(argv, cwd="/", environment=ENVIRONMENT)
        try:

            async def found() -> Foreground | None:
                seen = await terminal.foreground()
                is_it = seen is not None and any(wanted in " ".join(each.argv) for each in seen.programs)
                return seen if is_it and seen is not None and seen.is_reading else None

            seen: Foreground = await eventually_async(found)
            return seen
        finally:
            await terminal.stop(0)

    return asyncio.run(look())


@pytest.mark.parametrize("call", WAITING.values(), ids=list(WAITING))
def test_a_program_that_waits_for_a_line_is_seen_to(tmp_path: Path, call: str) -> None:
    program = tmp_path / "agent.py"
    program.write_text(f"import select, sys, threading, time\n{call}\n")
    seen = inspected([sys.executable, str(program)], "agent.py")
    assert (seen.collects_lines, seen.unread) == (True, 0)
    assert [each.is_parent for each in seen.programs] == [False]


def test_a_shell_is_seen_behind_what_started_it() -> None:
    seen = inspected(["sh", "-c", "nice cat; true"], "cat")
    assert [(each.argv[0], each.is_parent) for each in seen.programs] == [("sh", True), ("cat", False)]


def test_a_program_that_works_or_reads_keys_is_no_reader_of_lines(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text("import sys, tty\ntty.setraw(0)\nsys.stdin.read(1)\n")
    assert not inspected([sys.executable, str(program)], "agent.py").collects_lines


def test_the_words_of_ps_are_read() -> None:
    found = read_ps("  12  1 12 13 /bin/bash -l")
    assert found is not None
    assert (found.pid, found.group, found.foreground, found.argv) == (12, 12, 13, ("/bin/bash", "-l"))
    assert read_ps("nonsense") is None
