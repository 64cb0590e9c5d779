"""Starts Codex with an app-server of its own beside it, in the terminal:

    python -I -S server_launcher.py SOCKET LOG WORDS WORDS SERVER... PROGRAM... PLAIN...

`WORDS`: how many SERVER has, and how many PROGRAM. It becomes PROGRAM once the server answers at SOCKET, and PLAIN when it
does not. A child of it keeps the server for as long as PROGRAM lives, whoever started it and whatever becomes of them: it
starts a server anew that ended, and ends the one that is left over. It stands alone and imports next to nothing, because
the person waits for it.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

START_S = 15.0
STOP_S = 5.0
LOOK_S = 0.5
MAX_STARTS = 5  # of a server that ends again and again; Codex says itself that it is gone


def keep(parent: int, path: str, log: str, words: list[str]) -> None:
    """Returns when the program has ended."""
    server = None
    try:
        for _ in range(MAX_STARTS):
            server = start(path, log, words)
            while server.poll() is None:
                if os.getppid() != parent:
                    return
                with contextlib.suppress(subprocess.TimeoutExpired):
                    server.wait(LOOK_S)
    finally:
        if server is not None:
            stop(server)
        remove(path)


def start(path: str, log: str, words: list[str]) -> subprocess.Popen[bytes]:
    remove(path)
    with os.fdopen(os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
        return subprocess.Popen(  # noqa: S603 - the user's own program
            words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )


def stop(server: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError):
            os.killpg(server.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(STOP_S)
            return


def remove(path: str) -> None:
    """The socket that the last one left; Codex makes it a link to where it really is."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def answers(path: str, keeper: int) -> bool:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as connection, contextlib.suppress(OSError):
            connection.connect(path)
            return True
        if os.waitpid(keeper, os.WNOHANG)[0]:
            return False
        time.sleep(0.02)
    return False


def main() -> None:
    path, log, first, second, *rest = sys.argv[1:]
    server, others = rest[: int(first)], rest[int(first) :]
    program, plain = others[: int(second)], others[int(second) :]
    parent = os.getpid()
    keeper = os.fork()
    if not keeper:
        os.setsid()  # what is typed here, and the end of the terminal, is the program's affair
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        try:
            keep(parent, path, log, server)
        finally:
            os._exit(0)
    if answers(path, keeper):
        os.execvp(program[0], program)  # noqa: S606 - the same
    with contextlib.suppress(OSError):
        os.kill(keeper, signal.SIGTERM)
    os.execvp(plain[0], plain)  # noqa: S606 - the same


if __name__ == "__main__":
    main()
