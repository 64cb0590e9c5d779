"""`dashboard`: says where the dashboard is, and shows it in the browser."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from agent_relay.cli.failures import Failure, not_running
from agent_relay.cli.http_place import wait_for_http_place
from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.safe_text import clean_line
from agent_relay.cli.screen import Screen

_KNOCK_S = 5.0
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def dashboard(
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print where it is.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Open the dashboard in the browser, and print its address.

    Without a screen, as over SSH, it is only printed. Where a token is set (AGENT_RELAY_API_TOKEN), the page asks for it.
    """
    from agent_relay.cli.process import Answer, knock

    place = find_place(socket, state_dir)
    if knock(place.socket, _KNOCK_S).answer is not Answer.RELAY:
        raise not_running(place.socket)
    http = wait_for_http_place(place.state_dir)
    if http is None or http.url is None:
        why = clean_line(http.reason) if http is not None else "It has not started yet."
        raise Failure(f"The daemon serves no dashboard: {why}")
    url = f"{http.url}/"
    screen = Screen()
    if as_json:
        screen.json({"url": url})
    else:
        screen.line(url)
        if not no_browser and has_display(dict(os.environ)) and sys.stdout.isatty():
            import webbrowser

            webbrowser.open(url)
    return 0


def has_display(environ: dict[str, str]) -> bool:
    """Whether a browser would be seen: one in the terminal itself is not what is meant."""
    return sys.platform == "darwin" or any(environ.get(name) for name in _DISPLAYS)
