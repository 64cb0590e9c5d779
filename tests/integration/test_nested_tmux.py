"""An agent wrapped inside the person's own tmux: theirs is left as it is, and the keys that are named leave the agent running."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.terminal.backends.tmux_program import find_tmux
from tests.integration.stage import _AT_WINDOW, Window, until
from tests.integration.test_projects import PROGRAM
from tests.integration.test_restart_with_agents import Theatre

pytestmark = pytest.mark.terminals
_AGAIN_S = 3.0


class Outer:
    """A person in a tmux of their own."""

    def __init__(self, theatre: Theatre, where: Path, *configuration: str) -> None:
        self.base = [find_tmux().path, "-u", "-S", str(theatre.folder / "outer.sock"), "-f", "/dev/null"]
        self.environ = theatre.environ
        self.window = Window(columns=160)
        words = [word for line in configuration for word in (*line.split(), ";")]
        self.process = subprocess.Popen(
            [sys.executable, "-c", _AT_WINDOW, *self.base, *words, "new-session", "-s", "outer", "/bin/sh"], cwd=where,
            env=self.environ, stdin=self.window.slave, stdout=self.window.slave, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until(lambda: self.ask("list-sessions") != "", "the outer tmux runs")

    def ask(self, *words: str) -> str:
        return subprocess.run([*self.base, *words], env=self.environ, capture_output=True, text=True, check=False).stdout

    def facts(self) -> list[str]:
        """All of it that a program could have changed."""
        asked = (("show-options", "-s"), ("show-options", "-g"), ("show-options", "-gw"), ("show-environment", "-g"))
        listed = ("list-panes", "-a", "-F", "#{session_name} #{window_index} #{pane_index} #{pane_dead}")
        return [self.ask(*words) for words in (*asked, listed, ("list-keys",))]

    @property
    def screen(self) -> str:
        return "".join(self.ask("capture-pane", "-p", "-J", "-t", "outer").splitlines())

    def shows(self, text: str) -> None:
        until(lambda: text in self.screen, text)

    def press_until(self, keys: bytes, text: str) -> None:
        """Keys pressed before the inner tmux reads them are nobody's, as a person sees too."""
        pressed_at = float("-inf")

        def is_shown() -> bool:
            nonlocal pressed_at
            if time.monotonic() - pressed_at > _AGAIN_S:
                self.window.type(keys)
                pressed_at = time.monotonic()
            return text in self.screen

        until(is_shown, text)

    def close(self) -> None:
        self.ask("kill-server")
        self.process.wait(60)
        self.window.close()


@pytest.fixture
def theatre() -> Iterator[Theatre]:
    made = Theatre()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("configuration", "named", "keys"),
    [((), "running: Ctrl-b Ctrl-b d", b"\x02\x02d"), (("set-option -g prefix C-a",), "running: Ctrl-b d", b"\x02d")],
    ids=["the same prefix", "another prefix"],
)
def test_the_keys_that_are_named_leave_the_agent_running(
    theatre: Theatre, configuration: tuple[str, ...], named: str, keys: bytes
) -> None:
    one = theatre.project("one")
    theatre.run(one, "up", "--no-http")
    outer = Outer(theatre, one, *configuration)
    try:
        before = outer.facts()
        outer.window.type(f"{PROGRAM} -n Alice --no-intro cat\r".encode())
        until(lambda: "Alice" in theatre.online(one), "Alice is here")
        outer.shows(f"To leave Alice {named}")
        outer.press_until(keys, "Alice keeps running; to see it again: agent-relay attach Alice")
        outer.shows("To run an agent directly in your pane: --backend pty")  # which was said before it
        assert theatre.online(one) == {"Alice"}
        assert outer.facts() == before
    finally:
        outer.close()
