"""The PTY backend with real PTYs: alone, and inside a terminal that a person (here: another PTY) sits at."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from agent_relay.terminal.backends.pty import PtyTerminal
from agent_relay.terminal.backends.terminal import Key, Terminal, TerminalError
from agent_relay.terminal.screen.contents import Screen
from tests.unit.terminal.backends.contract import TerminalContract
from tests.unit.terminal.backends.recorder import ENVIRONMENT, Recorder, ScriptedFiles, eventually, is_alive, python

pytestmark = pytest.mark.terminals

# A wrapper in small: gives the terminal it was started in to a program, and ends with its status.
WRAPPER = """
import asyncio, json, os, sys
from agent_relay.terminal.backends.person_terminal import PersonTerminal
from agent_relay.terminal.backends.pty import PtyTerminal

class Listener:
    typed = 0
    def output(self, data):
        if b"CRASH" in data: asyncio.get_running_loop().call_soon(crash)
    def output_lost(self): pass
    def person_typed(self):
        Listener.typed += 1
        open(sys.argv[1], "w").write(json.dumps(Listener.typed))

def crash():
    sys.stderr.write("crashing\\n"); sys.exit(77)

async def main():
    terminal = PtyTerminal(Listener(), PersonTerminal.find())
    await terminal.start(sys.argv[2:], cwd="/", environment=dict(os.environ))
    status = await terminal.wait()
    await terminal.close()
    return status.code

sys.exit(asyncio.run(main()))
"""
# A program with every mode switched on, that says what it is given.
TUI = """
import os, signal, sys, termios, tty
tty.setraw(0, termios.TCSANOW)
def size(*_): os.write(1, b"<%dx%d>" % tuple(os.get_terminal_size()))
signal.signal(signal.SIGWINCH, size)
os.write(1, b"\\x1b[?1049h\\x1b[?2004h\\x1b[?1003h\\x1b[?1006h\\x1b[?25l\\x1b[>1u")
size()
os.write(1, b"pid=%d." % os.getpid())
while True:
    data = os.read(0, 1024)
    os.write(1, b"got=" + data.hex().encode() + b".")
    if data == b"\\x1a": os.kill(os.getpid(), signal.SIGSTOP); os.write(1, b"AWAKE")
    if data == b"c": os.write(1, b"CRASH")
    if data == b"q": sys.exit(5)
    if data == b"?": os.write(1, b"\\x1b[c\\x1b[6n")
"""
UNDONE = [b"\x1b[?1049l", b"\x1b[?2004l", b"\x1b[?1003l", b"\x1b[?1006l", b"\x1b[?25h"]


class TestPty(TerminalContract):
    def make(self, recorder: Recorder, name: str = "Bob") -> Terminal[Screen]:
        return PtyTerminal(recorder)


class TestPtyOnUvloop(TestPty):
    run_loop = staticmethod(uvloop.run)


class Desk:
    """A person's terminal with a shell in it."""

    def __init__(self, terminal: PtyTerminal, shown: Recorder, folder: Path) -> None:
        self.terminal = terminal
        self.shown = shown
        self.typed_file = folder / "typed"
        self.settings = self.read_settings()

    def read_settings(self) -> list[Any]:
        return termios.tcgetattr(self.terminal._started.child.master)

    async def wrap(self, *argv: str) -> None:
        words = [sys.executable, "-c", WRAPPER, str(self.typed_file), *argv]
        line = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
        script = self.typed_file.with_name("run")
        script.write_text(f"exec {line}\n")
        await self.terminal.write(f"sh {script}; echo rc=$?.\n".encode())

    async def pid_of_program(self) -> int:
        await self.shown.until(b"pid=")
        await eventually(lambda: b"." in bytes(self.shown.data).rpartition(b"pid=")[2])
        return int(bytes(self.shown.data).rpartition(b"pid=")[2].partition(b".")[0])

    async def is_as_before(self) -> None:
        await eventually(lambda: self.read_settings() == self.settings, lambda: "The terminal was not put back.")

    @property
    def typed(self) -> int:
        return int(json.loads(self.typed_file.read_text())) if self.typed_file.exists() else 0


def at_desk(folder: Path, scene: Callable[[Desk], Awaitable[None]]) -> None:
    async def within() -> None:
        shown = Recorder()
        terminal = PtyTerminal(shown)
        environment = {**ENVIRONMENT, "PS1": "$ ", "PYTHONPATH": os.pathsep.join(sys.path)}
        await terminal.start(
            ["bash", "--norc", "--noediting", "-i"], cwd=str(folder), environment=environment, columns=90, rows=25
        )
        try:
            async with asyncio.timeout(120):
                await shown.until(b"$ ")
                await scene(Desk(terminal, shown, folder))
        finally:
            await terminal.stop(0.5)

    asyncio.run(within())


def test_keys_go_in_the_screen_comes_out_and_the_status_is_the_program_s(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        await desk.wrap(*python(TUI))
        await desk.pid_of_program()
        assert b"<90x25>" in desk.shown.data
        assert desk.read_settings() != desk.settings
        await desk.terminal.write(b"\x03")  # raw: a byte for the program, no signal for us
        await desk.shown.until(b"got=03.")
        await desk.terminal.press(Key.UP)
        await desk.shown.until(b"got=1b5b41.")
        await desk.terminal.write("é🙂".encode())
        await desk.shown.until(b"got=c3a9f09f9982.")
        await desk.terminal.write(b"q")
        await desk.shown.until(b"rc=5.")
        await desk.is_as_before()
        assert all(sequence in desk.shown.data for sequence in UNDONE)

    at_desk(tmp_path, scene)


def test_a_new_size_of_the_window_reaches_the_program(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        await desk.wrap(*python(TUI))
        await desk.pid_of_program()
        await desk.terminal.resize(70, 20)
        await desk.shown.until(b"<70x20>")
        await desk.terminal.write(b"q")
        await desk.shown.until(b"rc=5.")

    at_desk(tmp_path, scene)


def test_only_keys_are_a_person_s(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        await desk.wrap(*python(TUI))
        await desk.pid_of_program()
        await desk.terminal.write(b"\x1b[I\x1b[<35;10;10M\x1b[<35;11;10M\x1b[O")
        await desk.shown.until(b"got=1b5b49")
        assert desk.typed == 0
        await desk.terminal.write(b"?")  # the program asks, the terminal answers by itself
        await eventually(lambda: desk.typed == 1)
        await desk.shown.until(b"52.")  # the R that ends the answer
        assert desk.typed == 1
        await desk.terminal.press(Key.ESCAPE)  # nothing follows it, so it was the key
        await eventually(lambda: desk.typed == 2)
        await desk.terminal.write(b"q")
        await desk.shown.until(b"rc=5.")

    at_desk(tmp_path, scene)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL])
def test_the_terminal_is_put_back_whatever_kills_us(tmp_path: Path, number: signal.Signals) -> None:
    async def scene(desk: Desk) -> None:
        await desk.wrap(*python(TUI))
        program = await desk.pid_of_program()
        wrapper = int(Path(f"/proc/{program}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(wrapper, number)
        if number != signal.SIGINT:  # a shell whose program died of that gives up the rest of the line too
            await desk.shown.until(b"rc=%d." % (128 + number))
        await desk.is_as_before()
        await eventually(lambda: all(sequence in desk.shown.data for sequence in UNDONE))
        await eventually(lambda: not is_alive(program))  # nobody is left behind

    at_desk(tmp_path, scene)


def test_the_terminal_is_put_back_when_we_crash(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        await desk.wrap(*python(TUI))
        await desk.pid_of_program()
        await desk.terminal.write(b"c")
        await desk.shown.until(b"rc=77.")
        await desk.is_as_before()
        assert all(sequence in desk.shown.data for sequence in UNDONE)

    at_desk(tmp_path, scene)


def test_a_killed_program_leaves_no_modes_behind(tmp_path: Path) -> None:
    async def scene(desk: Desk) -> None:
        await desk.wrap(*python(TUI))
        os.kill(await desk.pid_of_program(), signal.SIGKILL)
        await desk.shown.until(b"rc=137.")
        await desk.is_as_before()
        assert all(sequence in desk.shown.data for sequence in UNDONE)

    at_desk(tmp_path, scene)


@pytest.mark.parametrize("by_key", [True, False], ids=["the program stops itself", "we are told to stop"])
def test_stopping_and_going_on(tmp_path: Path, by_key: bool) -> None:
    async def scene(desk: Desk) -> None:
        await desk.wrap(*python(TUI))
        program = await desk.pid_of_program()
        if by_key:
            await desk.terminal.write(b"\x1a")
        else:
            os.kill(int(Path(f"/proc/{program}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGTSTP)
        await desk.shown.until(b"Stopped")
        await desk.is_as_before()
        assert b"\x1b[?1049l" in desk.shown.data
        desk.shown.data.clear()
        await desk.terminal.write(b"fg\n")
        await desk.shown.until(b"\x1b[?1049h")  # the terminal is as the program left it
        await desk.shown.until(b"<90x25>")  # and it draws anew
        await desk.terminal.write(b"z")
        await desk.shown.until(b"7a.")
        await desk.terminal.write(b"q")
        await eventually(lambda: not is_alive(program))
        await desk.is_as_before()

    at_desk(tmp_path, scene)


def test_a_paste_is_never_mixed_with_what_a_person_types(tmp_path: Path) -> None:
    """The wrapper's paste and the person's keys share one line; the paste stays whole."""
    files = ScriptedFiles(tmp_path)

    async def scene() -> None:
        recorder = Recorder()
        terminal = PtyTerminal(recorder)
        await terminal.start(files.argv, cwd=str(tmp_path), environment=ENVIRONMENT)
        await recorder.until("› ".encode())
        text = "word " * 4000
        pasting = asyncio.create_task(terminal.paste(text))
        for _ in range(50):
            terminal.person_sent(b"x")
            await asyncio.sleep(0)
        await pasting
        await files.until("pasted")
        assert files.events("pasted")[0]["text"] == text
        await terminal.stop(0.5)

    asyncio.run(scene())


def test_without_a_terminal_nobody_is_there(tmp_path: Path) -> None:
    code = "from agent_relay.terminal.backends.person_terminal import PersonTerminal; print(PersonTerminal.find())"
    for stdin in (subprocess.DEVNULL, subprocess.PIPE):
        done = subprocess.run([sys.executable, "-c", code], stdin=stdin, capture_output=True, text=True, check=True)
        assert done.stdout == "None\n"
    closed = subprocess.run(["sh", "-c", f"{sys.executable} -c '{code}' <&-"], capture_output=True, text=True, check=True)
    assert closed.stdout == "None\n"

    async def scene() -> None:
        terminal = PtyTerminal(Recorder())
        await terminal.start(["cat"], cwd=str(tmp_path), environment=ENVIRONMENT)
        with pytest.raises(TerminalError, match="backend tmux"):
            await terminal.attach()
        assert not (await terminal.person()).is_attached
        await terminal.stop(0.5)

    asyncio.run(scene())


def test_closing_hangs_up(tmp_path: Path) -> None:
    async def scene() -> None:
        recorder = Recorder()
        terminal = PtyTerminal(recorder)
        argv = ["sh", "-c", "trap 'echo hup > hup; exit 1' HUP; echo up; while :; do sleep 0.02; done"]
        await terminal.start(argv, cwd=str(tmp_path), environment=ENVIRONMENT)
        await recorder.until(b"up")
        await terminal.close()
        assert (tmp_path / "hup").exists()
        assert (await terminal.wait()).code == 1

    asyncio.run(scene())
