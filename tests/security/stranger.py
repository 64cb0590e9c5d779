"""Another user of this machine: runs Python as a second uid, after the imports and before the attack."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

STRANGER_UID = 65_534  # nobody: there on every system, and owner of nothing

_BECOME = f"""
# The interpreter's own files may not be readable after the change of user, so everything is imported before it.
import encodings.idna, http.client, json, os, socket, struct, sys, threading, time, urllib.error, urllib.request
os.setgroups([])
os.setgid({STRANGER_UID})
os.setuid({STRANGER_UID})
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as a second user")


def run_as_stranger(code: str, *arguments: str, timeout_s: float = 30.0) -> str:
    """What the code printed; fails with what it complained about. `sys.argv[1:]` are the arguments."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", _BECOME + textwrap.dedent(code), *arguments],
        capture_output=True, text=True, timeout=timeout_s, check=False, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def a_stranger_does(code: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The same beside us, until the end of the block; it begins when the code has printed its first line."""
    words = [sys.executable, "-I", "-u", "-c", _BECOME + textwrap.dedent(code), *arguments]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd="/") as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline(), "it ended before it began"
            yield process
        finally:
            process.kill()
