"""An agent in a real terminal that says what it was given, and where the page shows it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
from playwright.sync_api import Locator, Page

from tests.browser.stage import Stage
from tests.integration.stage import until

NAME = "Echo"
# A title, a link and markup that must stay text, and a colour that has no name.
PROGRAM = r"""
import sys, termios
settings = termios.tcgetattr(0)
settings[3] &= ~termios.ECHO
termios.tcsetattr(0, termios.TCSANOW, settings)
sys.stdout.write("\x1b]0;<img src=x onerror=document.title=1>\x07")
sys.stdout.write("\x1b[38;2;10;200;30mgreen\x1b[0m <script>document.title=2</script>\r\n")
sys.stdout.flush()
for line in sys.stdin:
    print("got " + ascii(line.strip()))
    if line == "links\n":
        print("\x1b]8;;javascript:document.title=3\x07script link\x1b]8;;\x07")
        print("\x1b]8;;https://example.org/elsewhere\x07web link\x1b]8;;\x07")
    sys.stdout.flush()
"""


@contextmanager
def open_echo(stage: Stage) -> Iterator[str]:
    """Its name; it is stopped at the end, if it was not before."""
    program = stage.daemon.directory / "echo.py"
    program.write_text(PROGRAM)
    where = ["--socket", stage.daemon.socket, "--state-dir", str(stage.daemon.state_dir)]
    wrap = [sys.executable, "-m", "agent_relay", "wrap", "-n", NAME, "--detach", "--no-intro", *where]
    environ = os.environ | {"AGENT_RELAY_HOME": str(stage.daemon.directory / "home")}
    command = [*wrap, sys.executable, str(program)]
    subprocess.run(command, env=environ, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    yield NAME
    with open_api(stage) as http:
        http.post(f"/agents/{NAME}/stop")
        until(lambda: not http.get(f"/agents/{NAME}").json()["connected"], "it has ended")


def open_api(stage: Stage) -> httpx.Client:
    return httpx.Client(base_url=f"{stage.url}/api/v1", timeout=60, headers=stage.daemon.api_headers)


def is_paused(http: httpx.Client, agent: str) -> Callable[[], bool]:
    return lambda: bool(http.get(f"/agents/{agent}").json()["paused"])


def screen(page: Page, agent: str) -> Locator:
    return page.locator(f"[data-terminal={agent}] .xterm-rows")


def pane(page: Page, agent: str) -> Locator:
    return page.get_by_role("region", name=f"Terminal of {agent}")
