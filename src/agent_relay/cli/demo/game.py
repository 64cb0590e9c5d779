"""The game: Alice thinks of a thing, Bob and Carol find out what. Who answers what to which words, as data.

Every line is said once, so the number of messages is known beforehand; only the order in which two agents speak at the
same time is not.
"""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "->relay:"
OPENING = "Think of a thing. Bob and Carol will guess it."
DIALOG_QUESTION = "Read notes.txt to answer?"
DIALOG_OPTIONS = ("Yes", "No")
GUESS_NOW = "Then guess now, both of you!"
GUESSES = ("Is it a bath sponge?", "Is it a rubber duck?")

GUESSING_S = 1.0  # long enough for the daemon to be killed meanwhile


@dataclass(frozen=True, slots=True)
class Turn:
    when: str  # words of what the agent was told
    say: tuple[str, ...]
    asks: bool = False  # a dialog opens by itself before the answer
    think_s: float = 0.0  # at least


@dataclass(frozen=True, slots=True)
class Saying:
    sender: str
    to: tuple[str, ...]
    text: str


GAME: dict[str, tuple[Turn, ...]] = {
    "Alice": (
        Turn(OPENING, ("I take the thing on my desk.", "->relay:Bob,Carol I have it. Bob, ask me first!")),
        Turn("Is it alive?", ("It only looks so.", "->relay:Bob No, but it looks like an animal.")),
        Turn("Does it help people who code?", ("My notes say so.", "->relay:Carol Yes! They tell it their bugs."), asks=True),
        Turn("Does it float?", ("Easy.", "->relay:Bob Yes, it floats.")),
        Turn("Is it yellow?", ("Easy, too.", "->relay:Bob Yes, bright yellow.")),
        Turn("I have an idea!", ("Let us see.", f"->relay:Bob,Carol {GUESS_NOW}")),
        Turn(GUESSES[0], ("Not quite.", "->relay:Bob No, but you were close!")),
        Turn(GUESSES[1], ("That is it!", "->relay:Bob,Carol Carol has it: a rubber duck!")),
    ),
    "Bob": (
        Turn("Bob, ask me first!", ("First things first.", "->relay:Alice Is it alive?")),
        Turn("looks like an animal", ("I tell Carol.", "->relay:Carol Not alive, looks like an animal.")),
        Turn("Ask her more", ("Two come to mind.", "->relay:Alice Does it float?", "->relay:Alice Is it yellow?",
                              "->relay:Carol I asked two more. And you?")),
        Turn(GUESS_NOW, ("Yellow, floats, hm.", f"->relay:Alice {GUESSES[0]}"), think_s=GUESSING_S),
        Turn("Carol has it", ("A duck, of course.", "->relay:Carol Well played!")),
    ),
    "Carol": (
        Turn("Not alive, looks", ("A toy, maybe?", "->relay:Alice Does it help people who code?",
                                  "->relay:Bob Ask her more meanwhile!")),
        Turn("And you?", ("I am nearly sure.", "->relay:Alice I have an idea!")),
        Turn(GUESS_NOW, ("I explain bugs to mine!", f"->relay:Alice {GUESSES[1]}"), think_s=GUESSING_S),
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


def find_turn(name: str, told: str) -> Turn | None:
    return next((turn for turn in GAME[name] if turn.when in told), None)
