"""`python -m tests.cluster.demo`: from the first line to the exit status, and nothing is left behind however it ends."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from contextlib import ExitStack
from types import FrameType

from agent_relay.cli.demo.transcript import Transcript
from agent_relay.cli.failures import FAILED, OK, Failure
from agent_relay.cli.output.screen import Screen
from tests.cluster.demo.show import Show
from tests.cluster.machines import Machines

_INTERRUPTED = 130  # as for Ctrl-C anywhere else


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    began, screen = time.monotonic(), Screen()
    cleanup = ExitStack()
    try:
        machines = Machines()
        cleanup.callback(machines.remove)
        verdict, differences = asyncio.run(Show(machines, Transcript(screen, silent=False), cleanup).play())
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Failure as failure:
        screen.line((f"The demonstration could not be finished: {failure}", "bold red"))
        return FAILED
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # cleaning up takes a moment; a second Ctrl-C must not leave half of it
        cleanup.close()
        screen.flush()
    good = verdict.holds and not differences
    end = "Every message arrived once and in order" if good else "The promise was broken"
    screen.line("")
    screen.line((f"{end}, though a NATS leader and a host were killed, in {time.monotonic() - began:.0f} s.", "bold"))
    wrong = f"lost {verdict.lost}, doubled {verdict.doubled + verdict.unexpected}, out of order {verdict.out_of_order}"
    screen.line(f"  delivered {verdict.delivered} of {verdict.expected}; {wrong}")
    for difference in differences:
        screen.line(f"  {difference}")
    screen.flush()
    return OK if good else FAILED


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
