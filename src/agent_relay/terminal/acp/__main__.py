"""`python -m agent_relay.terminal.acp --folder=… --socket=… --title=… -- AGENT…`: the console, in its terminal."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
import termios
import tty

from agent_relay.terminal.acp.console import Console, Options
from agent_relay.terminal.acp.line_input import BRACKETED_PASTE_OFF, BRACKETED_PASTE_ON
from agent_relay.terminal.backends.orphans import keep_orphans

_READ_BYTES = 65_536
_COLUMNS = 80


def main() -> int:
    parser = argparse.ArgumentParser(prog="agent_relay.terminal.acp", add_help=False)
    for name in ("--folder", "--socket", "--title"):
        parser.add_argument(name, required=True)
    parser.add_argument("words", nargs="+")
    given = parser.parse_args()
    logging.disable()  # the package logs what it cannot read, and so what was said
    before = termios.tcgetattr(0) if os.isatty(0) else None
    try:
        if before is not None:
            tty.setraw(0, termios.TCSANOW)
            _write(BRACKETED_PASTE_ON)
        return asyncio.run(_run(Options(given.folder, given.socket, given.title, given.words, os.getcwd())))
    finally:
        if before is not None:
            with contextlib.suppress(OSError, termios.error):
                _write(BRACKETED_PASTE_OFF)
                termios.tcsetattr(0, termios.TCSANOW, before)


async def _run(options: Options) -> int:
    console = Console(options, _write, lambda: shutil.get_terminal_size((_COLUMNS, 1)).columns)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, console.end)
    loop.add_signal_handler(signal.SIGHUP, console.hang_up)
    loop.add_signal_handler(signal.SIGWINCH, console.resized)

    def read() -> None:
        try:
            data = os.read(0, _READ_BYTES)
        except OSError:
            data = b""
        if data:
            console.typed(data)
        else:
            loop.remove_reader(0)
            console.hang_up()

    loop.add_reader(0, read)
    keeping = asyncio.create_task(keep_orphans())
    try:
        return await console.run()
    finally:
        keeping.cancel()


def _write(text: str) -> None:
    data = text.encode("utf-8", "replace")
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(main())
