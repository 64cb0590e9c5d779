"""Codex whose person trusts the relay's hooks: how that is said, and one that has nothing but them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.real_clis.clis import CLIS, Launch
from tests.real_clis.harness import Agent, Lab, until
from tests.real_clis.model.script import Turn

UNSERVED = "--no-daemon"  # no app-server: the hooks are of use
REVIEW, READY = "Hooks need review", "Ask Codex"
TRUST, PASS_OVER = "Trust all and continue", "Continue without trusting"
_KEY_S = 2.0
_QUEUELESS = '#!/bin/sh\nif [ "$1" = queue ]; then exit 2; fi\nexec codex "$@"\n'


def choose(option: str, screen: Callable[[], str], press: Callable[[str], None]) -> None:
    """As a person does it: one key, a look, and Enter when the selection is there. Codex throws away what is pressed while it
    begins, and ends when that goes on and on: a key that was lost is pressed again after a while."""

    def is_answered() -> bool:
        before = _selected(screen())
        if before:
            press("Enter" if before.startswith(option) else "Down")
            with contextlib.suppress(AssertionError):
                until(lambda: _selected(screen()) != before, "the key is taken", deadline_s=_KEY_S)
        return READY in screen()

    until(lambda: _selected(screen()), "Codex asks", screen)
    until(is_answered, "it is answered", screen)


def _selected(screen: str) -> str:
    """The option that is selected; none when Codex does not ask (any more)."""
    found = re.search(r"^› \d\. (.+)$", screen, re.MULTILINE) if REVIEW in screen else None
    return found[1] if found else ""


def start_trusting(lab: Lab, name: str, turns: Sequence[Turn] = ()) -> Agent:
    agent = lab.start("codex", name, turns, "--codex-hooks", doors=True, flags=[UNSERVED])
    choose(TRUST, lambda: agent.screen, agent.press)
    return agent


def start_queueless(lab: Lab, name: str, turns: Sequence[Turn] = ()) -> Agent:
    """In a home where the person has trusted the hooks before; `codex queue` does not work there."""
    other = f"Trusting{name}"
    start_trusting(lab, other)
    settings = (lab.folder / f"home-{other}" / ".codex" / "config.toml").read_text()
    program = lab.folder / "queueless" / "codex"
    program.parent.mkdir()
    program.write_text(_QUEUELESS)
    program.chmod(0o755)
    real = CLIS["codex"]

    def prepare(home: Path, project: Path, url: str) -> Launch:
        launch = real.prepare(home, project, url)
        with (home / ".codex" / "config.toml").open("a") as file:
            file.write(f"\n{settings[settings.index('[hooks.state]') :]}")
        return Launch([str(program), *launch.argv[1:]], launch.environment)

    CLIS["codex"] = real._replace(prepare=prepare)
    try:
        return lab.start("codex", name, turns, doors=True, flags=[UNSERVED])
    finally:
        CLIS["codex"] = real
