"""Processes whose parents have ended stay below us, and are not left dead."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from agent_relay.terminal.backends.orphans import keeping_orphans

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")

DETACH = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
middle = os.getpid()
if os.fork():
    os._exit(0)
while os.getppid() == middle:
    time.sleep(0.001)
print(os.getppid(), flush=True)
"""
WRAPPER = f"""
import asyncio, os, subprocess, sys
from agent_relay.terminal.backends import orphans
orphans._LOOK_S = 0.05
async def main():
    keeping = asyncio.create_task(orphans.keep_orphans())
    await asyncio.sleep(0)
    own = await asyncio.create_subprocess_exec("/bin/sh", "-c", "exit 7")
    said = subprocess.run([sys.executable, "-Ic", {DETACH!r}], capture_output=True, text=True).stdout
    print(int(said) == os.getpid())
    async with asyncio.timeout(120):
        while orphans.dead_children():
            await asyncio.sleep(0.02)
    print(await own.wait())
asyncio.run(main())
"""


def test_a_shell_is_given_what_its_programs_leave_behind() -> None:
    script = f"echo $$; {shlex.quote(sys.executable)} -Ic '{DETACH}' | cat"
    words = [*keeping_orphans(), "/bin/sh", "-c", script]
    given = {"PATH": "/bin:/usr/bin", "ODD": "a=b\udcff"}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=given)
    shell, parent = done.stdout.split()
    assert shell == parent
    shown = subprocess.run([*keeping_orphans(), "/usr/bin/env"], capture_output=True, check=True, env=given).stdout
    assert set(shown.splitlines()) == {os.fsencode(f"{name}={value}") for name, value in given.items()}  # nothing of Python's


def test_a_wrapper_waits_for_those_that_end_and_leaves_its_own_alone() -> None:
    done = subprocess.run([sys.executable, "-c", WRAPPER], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "7"]
