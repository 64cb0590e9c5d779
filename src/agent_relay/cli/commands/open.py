"""`open`: shows the dashboard in the browser, and lets that browser in."""

from __future__ import annotations

import html
import os
import sys
from typing import Annotated

import typer

from agent_relay.cli.failures import USAGE, Failure, not_running
from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.project.http_server import HttpPlace, forget_pages, page_address, wait_for_http_place

_KNOCK_S = 5.0
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
_HERE_ONLY = (
    "The relay listens on this machine only, so a phone cannot reach it. Start it with `agent-relay up --host 0.0.0.0 "
    "--tls-cert … --tls-key …`, or put a tunnel in front of it; see docs/dashboard.md."
)
_FILE = "open.html"


def open_page(
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    qr: Annotated[bool, typer.Option("--qr", help="Show the address as a QR code, for a phone.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Sign out every browser, and open nothing.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Open the dashboard in the browser and sign it in.

    The address contains a code that works once, within a minute. The browser then stays signed in until it is unused for
    30 days or you run `open --forget`. Without a display, as over SSH, the address is only printed.
    """
    if forget and qr:
        raise Failure("--forget and --qr cannot be combined.", USAGE)
    place = find_place(socket, state_dir)
    http = _find_http(place.socket, place.state_dir)
    screen = Screen()
    if forget:
        count = forget_pages(place.state_dir, http)
        if as_json:
            screen.json({"forgotten": count})
        else:
            screen.line(f"{count} browser{'' if count == 1 else 's'} signed out; `agent-relay open` signs one in again.")
        return 0
    base_url = _outward_url(http) if qr else None
    url = page_address(place.state_dir, http, base_url)
    if as_json:
        screen.json({"url": url})
        return 0
    screen.line(url)
    if qr:
        _show_qr(screen, url)
    elif not no_browser and has_display(dict(os.environ)) and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(_write_way(place.state_dir, url))
    return 0


def _find_http(socket: str, state_dir: str) -> HttpPlace:
    from agent_relay.cli.project.daemon_process import Answer, knock

    if knock(socket, _KNOCK_S).answer is not Answer.RELAY:
        raise not_running(socket)
    http = wait_for_http_place(state_dir)
    if http is None or http.url is None:
        why = clean_line(http.reason) if http is not None else "It has not started yet."
        raise Failure(f"The daemon serves no dashboard: {why}")
    return http


def has_display(environ: dict[str, str]) -> bool:
    """Whether a browser would be seen: one in the terminal itself is not what is meant."""
    return sys.platform == "darwin" or any(environ.get(name) for name in _DISPLAYS)


def _write_way(state_dir: str, url: str) -> str:
    """A page of our own that leads there: the arguments of a browser can be read by every user of the machine, and the code with
    them."""
    path = os.path.join(state_dir, _FILE)
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.fchmod(descriptor, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        there = html.escape(url)
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={there}"><a href="{there}">Agent Relay</a>\n')
    return f"file://{path}"


# --- for a phone ----------------------------------------------------------------------------------------------------------


def _outward_url(http: HttpPlace) -> str:
    """As other machines reach it. Raises Failure where they do not."""
    import ipaddress

    host = http.host
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - compared, not bound to
        host = _own_address(host)
    try:
        is_here_only = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here_only = host == "localhost"
    if is_here_only:
        raise Failure(_HERE_ONLY)
    scheme = str(http.url).partition(":")[0]
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{http.port}"


def _own_address(bound: str) -> str:
    """The one that this machine would use to talk to others. Nothing is sent."""
    import socket as sockets

    family, other = (sockets.AF_INET6, "2001:db8::1") if ":" in bound else (sockets.AF_INET, "192.0.2.1")
    with sockets.socket(family, sockets.SOCK_DGRAM) as probe:
        try:
            probe.connect((other, 9))
            return str(probe.getsockname()[0])
        except OSError:
            raise Failure("This machine is not on a network, so a phone cannot reach it.") from None


def _show_qr(screen: Screen, url: str) -> None:
    import io

    import segno

    drawn = io.StringIO()
    segno.make(url, error="l", micro=False).terminal(out=drawn, compact=True, border=2)
    screen.flush()
    sys.stdout.write(drawn.getvalue())
