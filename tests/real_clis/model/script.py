"""What the scripted model says: a list of turns, the first one that fits what it was just given.

    script = [
        Turn(on_message("clean up"), command="rm -rf build", then="->relay:Carol it is clean"),
        Turn(on_message("count"), say="->relay:Carol counted", drips=True),
        Turn(on_message("hello", sender="Bob"), say="->relay:Bob hello to you"),
    ]

`when` is a regular expression, searched in everything that came since the model's last answer, where CLIs put words of
their own as well. What no turn fits is answered with "Noted." A `command` asks the CLI to run it in a shell, or calls the tool
that it names (`write_file {"content": …}`); `then` is said when its result is there. With `drips` the answer begins with one
word after the other until the test says `release()`: the CLI is busy for as long as that takes.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

PIECE = 12  # characters that are streamed at once: commands are cut in two, as a real model cuts them
DRIP_S = 0.2
MAX_DRIPS = 600  # two minutes; a test that forgot to release fails by its own deadline before


def on_message(words: str, sender: str = r"\w+") -> str:
    """The pattern of a relay message that begins like this."""
    return rf"Relay message from {sender} \[[0-9a-f]{{8}}\]: {re.escape(words)}"


class Turn(NamedTuple):
    when: str
    say: str = ""
    command: str | None = None
    then: str = "The command is done."
    drips: bool = False


class Asked(NamedTuple):
    """One request, as far as the script and the tests need it."""

    given: tuple[str, ...]  # all that the model did not say itself, in order: the whole conversation is in every request
    newest: str  # the part of it since the model's last answer
    has_tool_result: bool
    tools: tuple[str, ...]
    is_aside: bool = False  # the CLI asks for a title, a summary or an estimate, which is no part of the conversation


class Reply(NamedTuple):
    text: str
    command: str | None = None
    drips: bool = False


class Script:
    """The turns of one agent's model, and where it is in them."""

    def __init__(self, turns: Sequence[Turn] = ()) -> None:
        self._turns = list(turns)
        self._then = ""
        self._released = threading.Event()
        self.is_dripping = threading.Event()

    def reply(self, asked: Asked) -> Reply:
        turn = next((turn for turn in self._turns if re.search(turn.when, asked.newest)), None)
        said = []
        if asked.has_tool_result:
            said.append(self._then)
        if turn is not None and turn.say:
            said.append(turn.say)
        command = turn.command if turn is not None else None
        if turn is not None and turn.command is not None:
            self._then = turn.then
        text = "\n\n".join(part for part in said if part)
        return Reply(text or ("I will run a command." if command else "Noted."), command, turn is not None and turn.drips)

    def pieces(self, reply: Reply) -> Iterator[str]:
        """The answer as it is streamed."""
        if reply.drips:
            self.is_dripping.set()
            for number in range(MAX_DRIPS):
                yield f"tick {number}, "  # never the same: some CLIs stop a model that repeats itself
                if self._released.wait(DRIP_S):
                    break
            yield "\n\n"
        for start in range(0, len(reply.text), PIECE):
            yield reply.text[start : start + PIECE]

    def release(self) -> None:
        self._released.set()
