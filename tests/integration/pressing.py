"""Ctrl-C at every stage of a command: runs it again and again in children of one process, pressed one step later each time.

    python pressing.py TIMES WORDS...

A step is a call or a return of a function of Python, counted from where the command's loop is made. Whoever has gone to sleep
before its step has come is pressed there, by way of another thread: the system interrupts that thread and lets the first one
sleep on, just as it does with a signal that comes right before the first one falls asleep. Prints how each child ended, as
JSON: its exit status, and what it said on standard error.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import select
import signal
import sys
import tempfile
import threading
import time
from types import FrameType
from typing import Any

from agent_relay.cli.main import main

STILL_S = 0.4  # nothing done for so long: it sleeps
MOST_LOOKS = 8  # one that looks after something now and then never sleeps for long, and can be pressed at any time
ENDED_S = 30.0
_WARM = (
    "app", "project.link", "arc.identity", "arc.talk", "wrapper.wrapped_agent", "commands.events", "output.message_view",
)  # fmt: skip


def wait_until_it_sleeps(first: int) -> None:
    clock = time.pthread_getcpuclockid(first)
    before = -1.0
    for _ in range(MOST_LOOKS):
        now = time.clock_gettime(clock)
        if now == before:
            return
        before = now
        time.sleep(STILL_S)


def be_pressed(words: list[str], step: int | None, counted: int) -> int:
    """`step`: None to be told how many there are, into the descriptor `counted`."""
    seen = 0
    first = threading.get_ident()

    def press(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == step:
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGINT)

    def watch() -> None:
        wait_until_it_sleeps(first)
        if step is None:
            os.write(counted, str(seen).encode())
            os._exit(0)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    begin = asyncio.Runner.__init__

    def begin_here(self: asyncio.Runner, **options: Any) -> None:
        threading.Thread(target=watch, daemon=True).start()
        sys.setprofile(press)
        begin(self, **options)

    asyncio.Runner.__init__ = begin_here  # type: ignore[method-assign]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return main(words)


def run_child(words: list[str], step: int | None) -> tuple[int | str, str]:
    """How it ended, and what it said or counted."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as said:
        pid = os.fork()
        if not pid:
            status = 99
            try:
                nowhere = os.open(os.devnull, os.O_RDWR)
                for number, descriptor in enumerate((nowhere, nowhere, said.fileno())):
                    os.dup2(descriptor, number)
                status = be_pressed(words, step, writing)
            finally:
                os._exit(status)
        os.close(writing)
        handle = os.pidfd_open(pid)
        ended = bool(select.select([handle], [], [], ENDED_S)[0])
        if not ended:
            os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.close(handle)
        count = os.read(reading, 100).decode()
        os.close(reading)
        said.seek(0)
        return status if ended else "it went on", count or said.read().decode()


if __name__ == "__main__":
    for name in _WARM:
        importlib.import_module(f"agent_relay.cli.{name}")
    times, words = int(sys.argv[1]), sys.argv[2:]
    _, steps = run_child(words, None)
    stride = max(1, int(steps) // times)
    found = {step: run_child(words, step) for step in [*range(1, int(steps), stride), int(steps) * 10]}
    print(json.dumps(found))
