"""The choice of the option that a decision means: by its text, as the profile describes the dialog, and never by a guess."""

from __future__ import annotations

import re

from agent_relay.terminal.doors.door import Decision, DoorError
from agent_relay.terminal.profiles.profile import Dialog, Patterns, compile_pattern
from agent_relay.terminal.screen.dialogs import OpenDialog

_ALLOWS = re.compile(r"(?i)(?:yes|ok|allow|always|approve|accept|trust|continue|proceed)\b")  # the beginning of its words
MAX_TEXT = 60  # characters of an answer of one's own: what is typed must be seen whole in one row
_SAME = {"y": "yes", "n": "no"}


def choose(look: Dialog | None, dialog: OpenDialog, decision: Decision) -> int:
    """The index of the option. Raises DoorError with a sentence where none is meant, or more than one may be."""
    if look is None or not dialog.options:
        raise DoorError("The options of this dialog cannot be told apart. Answer it at the terminal.")
    if dialog.kind == "question" and decision.is_allowed:
        return _find_answer(dialog.options, decision.answer)
    if decision.option:
        if not decision.is_allowed or decision.option not in find_wider(look, dialog):
            raise DoorError(f"`{decision.option}` is not one of its options (any more). Answer it at the terminal.")
        return dialog.options.index(decision.option)
    patterns, wish = (look.approve, "allows it once") if decision.is_allowed else (look.deny, "refuses it")
    return _find_one(dialog.options, patterns, wish)


def word_for(look: Dialog | None, dialog: OpenDialog, decision: Decision) -> str:
    """The word that is typed; empty where the selection is moved instead. Raises DoorError."""
    if dialog.takes_text and decision.is_allowed:
        return _check_text(decision.answer)
    target = choose(look, dialog, decision)
    return dialog.words[target] if dialog.words else ""


def find_wider(look: Dialog | None, dialog: OpenDialog) -> tuple[str, ...]:
    """The options that allow more than this once, such as `Yes, and don't ask again`. They are for a person who has read them:
    each is chosen by its whole text, and only where no other has the same."""
    if look is None or dialog.kind == "question":
        return ()
    try:
        once: int | None = choose(look, dialog, Decision(is_allowed=True))
    except DoorError:
        once = None
    return tuple(
        option
        for index, option in enumerate(dialog.options)
        if index != once
        and _ALLOWS.match(option)
        and dialog.options.count(option) == 1
        and not any(compile_pattern(pattern).search(option) for pattern in (*look.approve, *look.deny))
    )


def can_allow(look: Dialog | None, dialog: OpenDialog) -> bool:
    """Whether an answer from elsewhere can allow it; of a question, whether it can be answered at all."""
    if dialog.kind == "question":
        return bool(look is not None and dialog.options) or dialog.takes_text
    try:
        choose(look, dialog, Decision(is_allowed=True))
    except DoorError:
        return False
    return True


def _check_text(text: str) -> str:
    words = " ".join(text.split())
    if not words:
        raise DoorError("This is a question: answer it with text.")
    if len(words) > MAX_TEXT or not words.isprintable():
        raise DoorError(f"Answers from here can have at most {MAX_TEXT} characters. Answer it at the terminal.")
    return words


def _find_one(options: tuple[str, ...], patterns: Patterns, wish: str) -> int:
    """The patterns stand in the order of preference."""
    for pattern in patterns:
        found = [index for index, option in enumerate(options) if compile_pattern(pattern).search(option)]
        if len(found) == 1:
            return found[0]
        if found:
            raise DoorError(f"More than one option {wish}: {_list(options, found)}. Answer it at the terminal.")
    raise DoorError(f"It is not clear which option {wish}: {_list(options)}. Answer it at the terminal.")


def _find_answer(options: tuple[str, ...], answer: str) -> int:
    wanted = _SAME.get(_fold(answer), _fold(answer))
    if not wanted:
        raise DoorError(f"This is a question: answer it with one of its options: {_list(options)}.")
    folded = [_SAME.get(_fold(option), _fold(option)) for option in options]
    for found in (
        [index for index, option in enumerate(folded) if option == wanted],
        [index for index, option in enumerate(folded) if option.startswith(wanted)],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            raise DoorError(f"{answer!r} matches more than one option: {_list(options, found)}.")
    raise DoorError(f"{answer!r} is not one of the options: {_list(options)}.")


def _fold(text: str) -> str:
    return " ".join(text.split()).casefold()


def _list(options: tuple[str, ...], indexes: list[int] | None = None) -> str:
    chosen = range(len(options)) if indexes is None else indexes
    return ", ".join(f"`{options[index]}`" for index in chosen)
