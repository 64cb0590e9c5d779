"""The port that the server listens on. Apart from the rest of it, so that a port that cannot be had costs nothing."""

from __future__ import annotations

import errno
import socket

BACKLOG = 512
FIRST_PORT = 3888
_TRIED = 100  # ports from the first on; more projects than anybody runs at once


class PortUnusable(Exception):  # noqa: N818 - named by the condition
    """The server cannot listen there; the text says why and what to do."""


class PortTaken(PortUnusable):
    """Somebody else listens there."""


def open_free_port(host: str, preferred: int) -> socket.socket:
    """At the port that was preferred, else at the next free one from the first on, else at any."""
    ports = [port for port in (preferred, *range(FIRST_PORT, FIRST_PORT + _TRIED)) if port]
    for port in dict.fromkeys(ports):
        try:
            return open_port(host, port)
        except PortTaken:
            continue
    return open_port(host, 0)


def open_port(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 is a free one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise PortUnusable(f"The host {host} cannot be used ({error}).") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(
                f"Port {port} on {host} is in use; leave out --port to get the next free one, or choose another."
            ) from None
        raise PortUnusable(f"Port {port} on {host} cannot be used ({error.strerror or error}).") from None
    listener.setblocking(False)
    return listener


def make_url(host: str, port: int, scheme: str = "http") -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"{scheme}://{shown}:{port}"
