"""The beginning and the end of a program in a pane, so that nothing of what it writes is lost.

tmux shows a control client only what a pane writes while that client is attached; and when a program ends, tmux closes the
pane at once, also when it has not read or passed on all of its last words. So the program is run by a fixed shell script
that waits for us at both ends. The script gets the program and its arguments as they are; no command line is ever built.
At the end it writes a mark: all that the program wrote comes before it. Faking the mark gains a program nothing: it only
lets the script go on, and that is not there yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_relay.terminal.backends.orphans import keeping_orphans

GATE_OPTION = "@agent-relay-gate"  # the name of the two locks, for whoever takes the program up later
ENDED_OPTION = "@agent-relay-ended"
# It begins with the end of focus reports: when a client leaves a dead pane whose program had asked for them, tmux 3.3a dies,
# and every agent with it. Then a command that no terminal knows: nothing is drawn.
END_MARK = b"\x1b[?1004l\x1b]7717;agent-relay-end\x07"

# Nothing is assigned before the program runs, since a variable of that name in its environment would change. It is run
# by `exec`, as otherwise a program called `test` would be the shell's. What the shell itself says ("Killed") goes nowhere.
_SCRIPT = r"""
launch() { shift 2; exec "$@"; }
pass() { "$0" -u -S "$1" wait-for -L "$2" \; wait-for -U "$2"; }
trap : HUP INT QUIT TERM
exec 3>&2 2>/dev/null
pass "$1" "agent-relay-start-$2"
(launch "$@" 2>&3 3>&-)
code=$?
"$0" -u -S "$1" set-option -t "$TMUX_PANE" @agent-relay-ended 1
printf '\033[?1004l\033]7717;agent-relay-end\007'
pass "$1" "agent-relay-end-$2"
exit "$code"
"""


def launch_command(tmux_path: str, socket: str, gate: str, argv: Sequence[str]) -> tuple[str, ...]:
    return (*keeping_orphans(), "/bin/sh", "-c", _SCRIPT, tmux_path, socket, gate, *argv)


# The script waits for two locks that are taken before it runs. Not for signals (`wait-for -S`): of those a second one, from
# somebody else who listens, takes back the first.


def close_gate(gate: str) -> list[tuple[str, ...]]:
    return [("wait-for", "-L", start_lock(gate)), ("wait-for", "-L", end_lock(gate))]


def start_lock(gate: str) -> str:
    """Held until somebody listens."""
    return f"agent-relay-start-{gate}"


def end_lock(gate: str) -> str:
    """Held until everything was passed on."""
    return f"agent-relay-end-{gate}"


class EndMarkFinder:
    """Takes the mark out of the output, also where it was cut in two."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """The output without the mark, and whether the mark was in it."""
        data = self._kept + data
        before, mark, after = data.partition(END_MARK)
        rest = after if mark else before
        length = next((size for size in range(min(len(END_MARK) - 1, len(rest)), 0, -1) if rest.endswith(END_MARK[:size])), 0)
        self._kept = rest[len(rest) - length :]
        shown = rest[: len(rest) - length]
        return (before + shown if mark else shown), bool(mark)
