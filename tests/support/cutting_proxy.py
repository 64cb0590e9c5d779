"""A proxy on a Unix socket that cuts its connections when told: between a request and its answer, for one."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path


class CuttingProxy:
    """Listens in a folder as the server does in its own. `cut_before_answer` lets the next matching request through to the
    server, waits until its answer is there, and cuts the connection instead of passing it on."""

    def __init__(self, folder: Path, upstream: Path) -> None:
        self.path = folder / ".s.PGSQL.5432"
        self._upstream = str(upstream / ".s.PGSQL.5432")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()
        self._matches: Callable[[bytes], bool] | None = None
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_before_answer(self, matches: Callable[[bytes], bool]) -> None:
        self._matches = matches

    def cut_all(self) -> None:
        for pair in self._pairs:
            _end(*pair)
        self._pairs.clear()

    def close(self) -> None:
        self._listener.close()
        self.path.unlink(missing_ok=True)
        self.cut_all()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(self._upstream)
                except OSError:
                    _end(client, server)
                    continue
                self._pairs.append((client, server))
                threading.Thread(target=self._pass_requests, args=(client, server), daemon=True).start()
                threading.Thread(target=self._pass_answers, args=(client, server), daemon=True).start()

    def _pass_requests(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := client.recv(65_536):
                if self._matches is not None and self._matches(chunk):
                    self._matches = None
                    self._doomed = client
                server.sendall(chunk)
        _end(client, server)

    _doomed: socket.socket | None = None

    def _pass_answers(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := server.recv(65_536):
                if self._doomed is client:
                    if b"Z\0\0\0\5I" not in chunk:  # ready for the next: the transaction is over
                        continue
                    self.cuts += 1
                    self._doomed = None
                    break
                client.sendall(chunk)
        _end(client, server)


def _end(*sockets: socket.socket) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
