"""The game: the agents count in a circle. Whoever hears a number says the next one to its neighbour, and thanks for it.

Every line is said once, so what has to arrive is known beforehand.
"""

from __future__ import annotations

from agent_relay.cli.demo.agent_script import Script, Turn
from agent_relay.cli.demo.game import Saying, read_line

NAMES = ("Alice", "Bob", "Carol")
OPENING = "Please count to {last}, in a circle."
_COLOURS = ("36", "35", "33")
_THINK_MS, _STROKE_MS = 300, 10


def word(number: int) -> str:
    return f"number {number}!"


def speaker(number: int) -> str:
    return NAMES[(number - 1) % len(NAMES)]


def script_of(name: str, last: int) -> Script:
    turns = [Turn(f"^{OPENING.format(last=last)}$", _THINK_MS, _say(1, last))] if name == speaker(1) else []
    for number in range(1, last):
        if speaker(number + 1) == name:
            thanks = (f"->relay:{speaker(number)} Thanks, I heard {number}.",)
            turns.append(Turn(word(number), _THINK_MS, (*_say(number + 1, last), *thanks)))
    return Script(
        turns=tuple(turns), otherwise=Turn(busy_ms=100, say=("Fine.",)), banner=f"{name}, a scripted agent",
        colour=_COLOURS[NAMES.index(name)], look="demo", titles=False, stroke_ms=_STROKE_MS,
    )  # fmt: skip


def _say(number: int, last: int) -> tuple[str, ...]:
    to = ",".join(name for name in NAMES if name != speaker(number)) if number == last else speaker(number + 1)
    return (f"->relay:{to} {word(number)}",)


def all_sayings(last: int) -> list[Saying]:
    """Everything that is going to be said."""
    lines = [(name, line) for name in NAMES for turn in script_of(name, last).turns for line in turn.say]
    return [saying for name, line in lines if (saying := read_line(name, line)) is not None]
