"""The program a CLI runs for its hooks: passes what it is given to the wrapper and prints what comes back.

    python -I -S hook_client.py SOCKET EVENT SECONDS

It stands alone and imports next to nothing, because a CLI waits for it at every turn and every tool. Whatever goes wrong,
it prints nothing and ends with 0: then the CLI does what it does without hooks.
"""

import os
import socket
import sys

MAX_BYTES = 16_777_216


def ask(path: str, event: str, seconds: float) -> bytes:
    with open(f"{path}.token", "rb") as file:
        token = file.read().strip()
    given = sys.stdin.buffer.read(MAX_BYTES)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        connection.connect(path)
        if peer_uid(connection) != os.geteuid():
            return b""  # somebody else listens there, and is told nothing
        connection.sendall(b"%s\n%s\n%d\n%s" % (token, event.encode(), len(given), given))
        answer = b""
        while data := connection.recv(65_536):
            answer += data
    # The last byte says that the answer is whole: half a decision is none.
    return answer[:-1] if answer.endswith(b"\n") else b""


def peer_uid(connection: socket.socket) -> int:
    """The user at the other end, as the kernel knows it: of Linux's struct ucred, and of macOS's struct xucred, the second."""
    if hasattr(socket, "SO_PEERCRED"):
        known = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    else:
        known = connection.getsockopt(0, 1, 76)
    return int.from_bytes(known[4:8], sys.byteorder)


def main() -> None:
    try:
        answer = ask(sys.argv[1], sys.argv[2], float(sys.argv[3]))
        if answer:
            os.write(1, answer)
    except Exception:  # noqa: BLE001, S110 - the CLI goes on as if we were not there
        pass


if __name__ == "__main__":
    main()
