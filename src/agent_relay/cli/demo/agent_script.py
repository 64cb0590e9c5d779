"""Scripts of a scripted agent: how it looks and behaves, and what it says to which input. Read from JSON."""

from __future__ import annotations

import msgspec


class Look(msgspec.Struct, frozen=True):
    """The marks by which a reader of its screen knows it; by default those of no CLI in particular."""

    prompt: str = "› "
    user: str = "> "  # before what was submitted
    agent: str = "• "  # before an answer
    indent: str = ""  # before the further rows of an answer
    frame: str = ""  # a row above and below the composer
    busy: str = "• Working (esc to interrupt)"
    pointer: str = "❯"  # before the option that is selected
    hint: str = "Esc to cancel"
    answered: str = "✔ {option}"  # after a dialog
    titles: tuple[str, str, str] = ("◇ Ready", "✦ Working…", "✋ Action Required")  # idle, busy, asking
    spinner: str = ""  # turns before `busy`, a character a frame
    roomy: bool = False  # a blank row after each line, words kept whole, the draft on one row
    command: str = ""  # lines of an answer that begin with this have the style `command`
    styles: dict[str, str] = {}  # SGR codes for `banner`, `user`, `command`, `busy`, `question`, `hint` and `answered`


LOOKS = {
    "plain": Look(),
    "claude": Look(
        prompt="❯ ",
        user="❯ ",
        agent="● ",
        indent="  ",
        frame="─" * 60,
        busy="✽ Working… (1s)",
        titles=("✳ Ready", "◐ Working", "✳ Asking"),
    ),
    "codex": Look(
        user="› ",
        indent="  ",
        pointer="›",
        hint="Press enter to confirm or esc to cancel",
        titles=("ready", "⠋ working", "[ ! ] Action Required"),
    ),
    "demo": Look(
        busy="Thinking…",
        answered="✔ {question} {option}",
        spinner="⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏",
        roomy=True,
        command="->relay:",
        styles={"user": "2", "busy": "34", "question": "1;33", "hint": "2", "answered": "32"},
    ),
}


class Dialog(msgspec.Struct, frozen=True):
    question: str = "Do you want to proceed?"
    options: tuple[str, ...] = ("Yes", "No")
    keys: dict[str, int] = msgspec.field(default_factory=lambda: {"y": 0, "n": 1})  # a letter answers at once, as in real ones
    say: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)  # by the option chosen; "" when cancelled
    close_ms: int = 0  # after so long it closes by itself, as if cancelled; 0: never


class Turn(msgspec.Struct, frozen=True):
    """An answer: what happens when a submitted text matches `when` (a regular expression, searched for)."""

    when: str = ""
    busy_ms: int = 100
    say: tuple[str, ...] = ()  # `\\1` and the like stand for groups of `when`
    line_ms: int = 0  # between two lines of the answer
    dialog: Dialog | None = None  # asked before the answer
    exit: int | None = None


class Script(msgspec.Struct, frozen=True):
    turns: tuple[Turn, ...] = ()  # the first that matches
    otherwise: Turn | None = None  # where none matches; without it, the text is echoed as `heard: …`
    start: Turn | None = None
    banner: str = ""  # the first line it shows
    colour: str = ""  # an SGR code for the banner and for commands
    at_paste: dict[str, Dialog] = {}  # by the number of a paste, from 1: a dialog that opens when it was taken in
    look: str = "plain"  # a name of `LOOKS`
    alternate: bool = False
    queueing: bool = True  # Enter while busy queues; else it aborts the answer, and Tab queues
    bracketed: bool = True
    titles: bool = True
    stroke_ms: int = 0  # answers are written a few characters at a time, this long apart; 0: a line at once
    redraw_ms: int = 0  # a slow redraw: the screen is cleared, and drawn after this time
    placeholder_from: int = 0  # pastes of so many characters are shown as a placeholder; 0: never
    single_write_limit: int = 0  # an Enter that comes in one read with more text than this is taken as a line break
