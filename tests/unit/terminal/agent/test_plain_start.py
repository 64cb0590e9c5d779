"""A start that we changed and that failed at once is told from every other end of a program."""

from __future__ import annotations

import signal
import subprocess
from typing import Any

import pytest

from agent_relay.terminal.agent.plain_start import SHOWN_LINES, SOON_S, FailedStart, announce, find_failed_start, last_lines
from agent_relay.terminal.backends.terminal import ExitStatus
from agent_relay.terminal.doors.launch import Program
from agent_relay.terminal.screen.state import State

FAILED: dict[str, Any] = {
    "status": ExitStatus(2), "after_s": 0.4, "state": State.STARTING, "is_changed": True, "has_doors": False,
    "was_touched": False,
}  # fmt: skip


def find(**more: Any) -> FailedStart | None:
    return find_failed_start(["/usr/bin/codex"], **FAILED | more)


def test_one_that_what_we_add_may_explain() -> None:
    assert find() == FailedStart("/usr/bin/codex", 2, 0.4)
    assert find(after_s=SOON_S) is not None
    assert find(is_changed=False, has_doors=True) is not None
    assert find(status=ExitStatus(0), has_doors=True) is not None  # it was to open a session, and did not
    assert find(status=ExitStatus(128 + signal.SIGSEGV, signal.SIGSEGV)) is not None


@pytest.mark.parametrize(
    "more",
    [
        {"status": ExitStatus(0)},
        {"status": ExitStatus(130)},  # it handles Ctrl-C itself
        {"status": ExitStatus(128 + signal.SIGINT, signal.SIGINT)},
        {"status": ExitStatus(128 + signal.SIGHUP, signal.SIGHUP)},
        {"status": ExitStatus(128 + signal.SIGKILL, signal.SIGKILL)},
        {"after_s": SOON_S + 0.1},
        {"state": State.IDLE},
        {"state": State.DIALOG},  # somebody did not trust the folder
        {"state": State.WORKING},
        {"is_changed": False},
        {"was_touched": True},
    ],
)
def test_every_other_end_is_the_programs_own(more: dict[str, Any]) -> None:
    assert find(**more) is None


def test_what_the_person_is_shown() -> None:
    lines = last_lines(["", "first", *(f"line {number}  " for number in range(SHOWN_LINES - 1)), "a \x1b[31mred\x07 end", "  "])
    assert (len(lines), lines[0], lines[-1]) == (SHOWN_LINES, "line 0", "a \ufffd[31mred\ufffd end")
    text = FailedStart("/usr/bin/codex", 2, 0.44, lines[-1:]).text
    assert text.splitlines() == [
        "agent-relay: codex ended with status 2 0.4 s after it was started with the relay's additions.",
        "Its last lines:",
        "  | a \ufffd[31mred\ufffd end",
        "agent-relay: starting it again without them; messages are typed.",
    ]


def test_the_program_is_run_as_it_is_after_the_announcement() -> None:
    program = Program(("printf", "%s-%s", "$(id)", "a b"), "/", {"PATH": "/usr/bin:/bin"})
    told = announce(program, "It's `said` $(first)\n  | as it is")
    done = subprocess.run(told.argv, env=dict(told.environment), capture_output=True, text=True, check=True)
    assert done.stdout == "It's `said` $(first)\n  | as it is\n$(id)-a b"
