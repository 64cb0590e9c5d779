"""What a test of a terminal needs: a listener that remembers, and waiting for a condition with a deadline."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from agent_relay.terminal.backends.tmux_program import find_tmux
from agent_relay.terminal.backends.tmux_server import TmuxServer

DEADLINE_S = 60.0
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/", "LANG": "C.UTF-8"}


class Recorder:
    def __init__(self) -> None:
        self.data = bytearray()
        self.lost = 0
        self.typed = 0

    def output(self, data: bytes) -> None:
        self.data += data

    def output_lost(self) -> None:
        self.lost += 1

    def person_typed(self) -> None:
        self.typed += 1

    async def until(self, wanted: bytes) -> None:
        await eventually(lambda: wanted in self.data, lambda: f"{wanted!r} never came; the end is {bytes(self.data[-300:])!r}")


@contextlib.contextmanager
def own_tmux() -> Iterator[TmuxServer]:
    """A tmux of the test's own, in a short folder, gone afterwards whatever happened."""
    folder = tempfile.mkdtemp(prefix="relay-tmux-")
    server = TmuxServer(find_tmux(), str(Path(folder, "tmux.sock")))
    try:
        yield server
    finally:
        subprocess.run([*server.base, "kill-server"], capture_output=True, check=False)
        shutil.rmtree(folder)


async def eventually(holds: Callable[[], Any], why: Callable[[], str] = str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, why()
        await asyncio.sleep(0.005)


async def eventually_async(holds: Callable[[], Awaitable[Any]]) -> Any:
    deadline = time.monotonic() + DEADLINE_S
    while not (result := await holds()):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
    return result


def is_alive(pid: int) -> bool:
    """Not counting a zombie: it has ended, whoever may have to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-S", "-c", code, *arguments]


# A program in raw mode that writes every byte it gets into a file, and ends after the byte 0x04.
KEEP_BYTES = """
import os, sys, termios, tty
tty.setraw(0, termios.TCSANOW)
with open(sys.argv[1], "wb", buffering=0) as file:
    os.write(1, sys.argv[2].encode() + b"ready")
    while True:
        data = os.read(0, 65536)
        file.write(data)
        if not data or data.endswith(b"\\x04"):
            break
"""


class ScriptedFiles:
    """The script and the record of a scripted agent."""

    def __init__(self, folder: Path, **script: Any) -> None:
        self.script = folder / "script.json"
        self.record = folder / "record.jsonl"
        self.script.write_text(json.dumps(script))
        self.argv = [sys.executable, "-m", "agent_relay.cli.demo.scripted_agent"]
        self.argv += ["--script", str(self.script), "--record", str(self.record)]

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        text = self.record.read_text() if self.record.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()  # the last may be half written
        return [event for event in map(json.loads, lines) if not kinds or event["event"] in kinds]

    def bytes_in(self, mode: str) -> bytes:
        return b"".join(base64.b64decode(event["bytes"]) for event in self.events("input") if event["mode"] == mode)

    async def until(self, kind: str, count: int = 1, **fields: Any) -> None:
        def found() -> list[dict[str, Any]]:
            return [event for event in self.events(kind) if fields.items() <= event.items()]

        await eventually(lambda: len(found()) >= count, lambda: f"{kind} {fields} is not in {self.events()[-10:]}")
