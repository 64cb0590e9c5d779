"""The command that the words of a line mean. An unknown word is never run as a program, even if a program has that name: programs
run only with `wrap` or `-n`, and without either only if they are CLIs that the relay knows by name.
"""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Mapping
from typing import Any

from agent_relay.cli.command_list import COMMANDS
from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.protocol.clis import KNOWN_CLIS

WRAP = "wrap"
_NAME = frozenset({"-n", "--name"})
_EVERYWHERE = {"--json": False}  # options of most commands that `wrap` does not have
_SHOWN = 40


def put_command_first(words: list[str]) -> list[str]:
    """The same words with the command in front, also where it was left out. Raises Failure where there is no such command."""
    if not words or words[0] in COMMANDS:
        return words
    if not words[0].startswith("-"):
        return _as_program(words, words[0])
    of_wrap = _options_of(WRAP)
    end, given = _skip_options(words, of_wrap | _EVERYWHERE)
    if given & _NAME:
        return [WRAP, *words]
    word = next((word for word in words[end:] if word != "--"), None)
    if word is not None and (word in KNOWN_CLIS) and given <= of_wrap.keys():
        return [WRAP, *words]
    for at, name in enumerate(words):
        if name in COMMANDS and _skip_options(words, _options_of(name))[0] == at:
            return [name, *words[:at], *words[at + 1 :]]
    if word is None or word.startswith("-"):  # an option that nobody knows, or nothing after them: the library explains
        return [WRAP, *words] if given - _EVERYWHERE.keys() and word is None else words
    return _as_program(words, word)


def wants_json(words: list[str]) -> bool:
    """Whether --json is ours, and not a wrapped program's."""
    try:
        command = put_command_first(words)[:1]
    except Failure:
        command = []
    return command != [WRAP] and "--json" in (words[: words.index("--")] if "--" in words else words)


def _as_program(words: list[str], word: str) -> list[str]:
    if word in KNOWN_CLIS:
        return [WRAP, *words]
    shown = clean_line(word)[:_SHOWN]
    near = difflib.get_close_matches(word, [*COMMANDS, *KNOWN_CLIS], n=3, cutoff=0.65)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    if shutil.which(word) is not None:
        hint += f" To run the program {shown} under the relay: agent-relay wrap {shown} …"
    raise Failure(f"Unknown command: {shown}.{hint} See: agent-relay --help", USAGE)


def _options_of(command: str) -> dict[str, bool]:
    """Each option, and whether a value follows it."""
    from agent_relay.cli.app import build_command

    parameters: list[Any] = build_command([command]).commands[command].params
    return {option: not parameter.is_flag for parameter in parameters for option in parameter.opts if option.startswith("-")}


def _skip_options(words: list[str], options: Mapping[str, bool]) -> tuple[int, set[str]]:
    """The place where the options at the beginning end, and which they are. An option that is not known ends them, too."""
    given: set[str] = set()
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        word = words[at]
        name = word if word in options else word.partition("=")[0] if word.startswith("--") else word[:2]
        if name not in options:
            break
        given.add(name)
        at += 2 if options[name] and name == word else 1
    return min(at, len(words)), given
