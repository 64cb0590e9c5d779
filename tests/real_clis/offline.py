"""Runs a command where there is no network but loopback: `python -m tests.real_clis.offline COMMAND...`.

A network namespace of its own makes sure that no CLI speaks to anybody but the scripted model, whatever it would like to
do; a process namespace makes sure that nothing a CLI left running outlives the command.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence

_INSIDE = "--inside"
_GET_FLAGS, _SET_FLAGS, _IS_UP = 0x8913, 0x8914, 0x1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP
_NOWHERE = ("192.0.2.1", 9)  # reserved for documentation: nobody has it, and connecting UDP sends nothing


def is_offline() -> bool:
    """No way leads out of here, and loopback is there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_NOWHERE)
        except OSError as error:
            return error.errno == errno.ENETUNREACH
    return False


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = fcntl.ioctl(control, _GET_FLAGS, struct.pack("16sh14x", b"lo", 0))
        (flags,) = struct.unpack_from("h", request, 16)
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh14x", b"lo", flags | _IS_UP))


def _run_inside(words: Sequence[str]) -> int:
    """As the first process of the namespace, which has to collect what others leave behind."""
    _raise_loopback()
    if not is_offline():
        sys.stderr.write("offline: this namespace still has a way out; nothing was run.\n")
        return 1
    child = subprocess.Popen(words)
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            return os.waitstatus_to_exitcode(status) & 0xFF


def _namespace() -> list[str] | None:
    """The command that makes the namespaces; None where that is not permitted."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    words = [unshare, "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.getuid() != 0:
        words.append("--map-root-user")
    is_permitted = subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    return words if is_permitted else None


def main(words: list[str]) -> int:
    if words[:1] == [_INSIDE]:
        return _run_inside(words[1:])
    if not words:
        sys.stderr.write("usage: python -m tests.real_clis.offline COMMAND...\n")
        return 2
    namespace = _namespace()
    if namespace is None:
        sys.stderr.write(
            "offline: a network namespace cannot be made here, so the CLIs are not run. It needs Linux, `unshare` of "
            "util-linux, and either root or unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, or "
            "docker run --privileged).\n"
        )
        return 1
    return subprocess.run([*namespace, sys.executable, "-m", "tests.real_clis.offline", _INSIDE, *words], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
