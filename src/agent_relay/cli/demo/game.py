"""The game: Alice thinks of a thing, Bob and Carol find out what. The script of each agent, as data.

Every line is said once, so the number of messages is known beforehand; only the order in which two agents speak at the
same time is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from msgspec.structs import replace

from agent_relay.cli.demo.agent_script import Dialog, Script, Turn

PREFIX = "->relay:"
OPENING = "Think of a thing. Bob and Carol will guess it."
DIALOG_QUESTION = "Read notes.txt to answer?"
DIALOG_OPTIONS = ("Yes", "No")
GUESS_NOW = "Then guess now, both of you!"
GUESSES = ("Is it a bath sponge?", "Is it a rubber duck?")

_GUESSING_MS = 1_000  # long enough for the daemon to be killed meanwhile
_THINK_MS, _STROKE_MS = 600, 30
_COLOURS = {"Alice": "36", "Bob": "35", "Carol": "33"}


@dataclass(frozen=True, slots=True)
class Saying:
    sender: str
    to: tuple[str, ...]
    text: str


def _turn(told: str, say: tuple[str, ...], *, asks: bool = False, think_ms: int = 0) -> Turn:
    """`told`: words of what the agent was told. `asks`: a dialog opens before the answer. `think_ms`: at least so long."""
    dialog = Dialog(DIALOG_QUESTION, DIALOG_OPTIONS, keys={}) if asks else None
    return Turn(re.escape(told), busy_ms=think_ms, say=say, dialog=dialog)


GAME: dict[str, tuple[Turn, ...]] = {
    "Alice": (
        _turn(OPENING, ("I take the thing on my desk.", "->relay:Bob,Carol I have it. Bob, ask me first!")),
        _turn("Is it alive?", ("It only looks so.", "->relay:Bob No, but it looks like an animal.")),
        _turn("Does it help people who code?", ("My notes say so.", "->relay:Carol Yes! They tell it their bugs."), asks=True),
        _turn("Does it float?", ("Easy.", "->relay:Bob Yes, it floats.")),
        _turn("Is it yellow?", ("Easy, too.", "->relay:Bob Yes, bright yellow.")),
        _turn("I have an idea!", ("Let us see.", f"->relay:Bob,Carol {GUESS_NOW}")),
        _turn(GUESSES[0], ("Not quite.", "->relay:Bob No, but you were close!")),
        _turn(GUESSES[1], ("That is it!", "->relay:Bob,Carol Carol has it: a rubber duck!")),
    ),
    "Bob": (
        _turn("Bob, ask me first!", ("First things first.", "->relay:Alice Is it alive?")),
        _turn("looks like an animal", ("I tell Carol.", "->relay:Carol Not alive, looks like an animal.")),
        _turn("Ask her more", ("Two come to mind.", "->relay:Alice Does it float?", "->relay:Alice Is it yellow?",
                              "->relay:Carol I asked two more. And you?")),
        _turn(GUESS_NOW, ("Yellow, floats, hm.", f"->relay:Alice {GUESSES[0]}"), think_ms=_GUESSING_MS),
        _turn("Carol has it", ("A duck, of course.", "->relay:Carol Well played!")),
    ),
    "Carol": (
        _turn("Not alive, looks", ("A toy, maybe?", "->relay:Alice Does it help people who code?",
                                  "->relay:Bob Ask her more meanwhile!")),
        _turn("And you?", ("I am nearly sure.", "->relay:Alice I have an idea!")),
        _turn(GUESS_NOW, ("I explain bugs to mine!", f"->relay:Alice {GUESSES[1]}"), think_ms=_GUESSING_MS),
    ),
}  # fmt: skip
NAMES = tuple(GAME)
WHILE_ASKING = 3  # messages to Alice that come while her dialog is open


def read_line(sender: str, line: str) -> Saying | None:
    """The message a line of an answer is; None: only words."""
    if not line.startswith(PREFIX):
        return None
    to, _, text = line.removeprefix(PREFIX).partition(" ")
    return Saying(sender, tuple(to.split(",")), text)


def all_sayings() -> list[Saying]:
    """Everything that is going to be said."""
    lines = [(name, line) for name, turns in GAME.items() for turn in turns for line in turn.say]
    return [saying for name, line in lines if (saying := read_line(name, line)) is not None]


def script_of(name: str, pace: float) -> Script:
    """The script of one agent; `pace` multiplies the time it takes to think and to write."""
    think_ms = round(_THINK_MS * pace)
    return Script(
        turns=tuple(replace(turn, busy_ms=max(think_ms, turn.busy_ms)) for turn in GAME[name]),
        otherwise=Turn(busy_ms=think_ms, say=("Good to know.",)),
        banner=f"{name}, a scripted agent", colour=_COLOURS[name], look="demo", titles=False, stroke_ms=round(_STROKE_MS * pace),
    )  # fmt: skip
