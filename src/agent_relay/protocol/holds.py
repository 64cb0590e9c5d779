"""Why an agent gets no messages now: one word for each reason, the sentence a person reads, and what to do about it.

The wrapper and the daemon say the word, `Hold`. Whoever shows it to a person asks `describe_hold` for the sentence, so the
command line, the page, the SDK and the notes to senders all say the same. docs/glossary.md has the table, made from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct


class HoldReason(StrEnum):
    OFFLINE = "offline"
    LOOP_GUARD = "loop_guard"
    LOOP_SLOWED = "loop_slowed"
    PAUSED = "paused"
    KEYBOARD = "keyboard"
    DIALOG = "dialog"
    DECISION = "decision"
    PROMPT = "prompt"
    PROGRAM = "program"
    TYPING = "typing"
    SCROLLED_BACK = "scrolled_back"
    DRAFT = "draft"
    NOT_TAKEN = "not_taken"
    STARTING = "starting"
    NOT_READING = "not_reading"
    LEISURE = "leisure"
    WORKING = "working"
    UNACKNOWLEDGED = "unacknowledged"
    OTHER = "other"


class Hold(Struct, frozen=True, omit_defaults=True):
    """As it goes over the wire. A reason of a newer version is shown by its word and its `detail`."""

    reason: str
    detail: str = ""  # what was seen
    by: str = ""  # who paused the agent
    since: int = 0  # milliseconds since 1970
    count: int = 0  # answers in a row
    request: str = ""  # the id of the open permission or question
    kind: str = ""  # `permission` or `question`


class HoldWords(NamedTuple):
    """`text` says what the matter is, `todo` what to do about it (empty: nothing, it ends by itself), `line` both."""

    text: str
    todo: str
    line: str


class _Sentence(NamedTuple):
    text: str
    todo: str = ""
    joint: str = ": "


ShowTime = Callable[[int], str]

_COMMAND = "agent-relay"
_BY_PERSON = "human"  # how the daemon calls somebody it knows no name of
_SHOWN_ID = 8

SENTENCES: dict[HoldReason, _Sentence] = {
    HoldReason.OFFLINE: _Sentence("offline since {since}", "delivered when it comes back", "; "),
    HoldReason.LOOP_GUARD: _Sentence("loop guard: {count} answers in a row", "`{relay} resume {name}`", ", "),
    HoldReason.LOOP_SLOWED: _Sentence(
        "loop guard: {count} answers in a row, messages are slowed", "`{relay} resume {name}`", ", "
    ),
    HoldReason.PAUSED: _Sentence("paused by {by}", "`{relay} resume {name}`"),
    HoldReason.KEYBOARD: _Sentence(
        "somebody is typing in {name}'s terminal on the page", "delivered when they release the keyboard", "; "
    ),
    HoldReason.DIALOG: _Sentence("{name} has a dialog open", "{answer}"),
    HoldReason.DECISION: _Sentence(
        "{name} seems to wait for a decision ({detail})", "look with `{relay} attach {name}`"
    ),
    HoldReason.PROMPT: _Sentence("{name}'s prompt was not recognised", "see `{relay} profile new`"),
    HoldReason.PROGRAM: _Sentence("nothing is typed to {name} because {detail}", "look with `{relay} attach {name}`"),
    HoldReason.TYPING: _Sentence("you are typing in {name}'s terminal", "delivered when you pause", "; "),
    HoldReason.SCROLLED_BACK: _Sentence(
        "{name}'s terminal is scrolled back", "delivered when it shows the bottom again", "; "
    ),
    HoldReason.DRAFT: _Sentence(
        "there is a draft in {name}'s composer", "send or delete it with `{relay} attach {name}`"
    ),
    HoldReason.NOT_TAKEN: _Sentence("{name}'s program is not reading what was typed", "look with `{relay} attach {name}`"),
    HoldReason.STARTING: _Sentence("{name} is starting", "delivered when its prompt appears", "; "),
    HoldReason.NOT_READING: _Sentence("{name} is not reading its messages", "delivered when it does", "; "),
    HoldReason.LEISURE: _Sentence(
        "{name} reads the channel at leisure", "delivered with the next message that wakes it, such as one with @{name}", "; "
    ),
    HoldReason.WORKING: _Sentence("{name} is working", "delivered when it is done", "; "),
    HoldReason.UNACKNOWLEDGED: _Sentence("{name} has it but has not acknowledged it yet"),
    HoldReason.OTHER: _Sentence("{detail}", "look with `{relay} attach {name}`"),
}  # fmt: skip


def describe_hold(hold: Hold, name: str, show_time: ShowTime = str, you: str = "") -> HoldWords:
    """`name` is the agent's, `you` the reader's; `show_time` shows a moment as the reader's clock does. What was seen on a screen
    is part of the sentence: whoever prints it makes it fit for that place."""
    known = hold.reason in HoldReason.__members__.values()
    sentence = SENTENCES[HoldReason(hold.reason) if known else HoldReason.OTHER]
    by = "a person" if hold.by in {"", _BY_PERSON} else "you" if you and hold.by.lower() == you.lower() else hold.by
    values = {
        "name": name, "relay": _COMMAND, "since": show_time(hold.since), "count": hold.count, "by": by,
        "detail": hold.detail or hold.reason.replace("_", " "), "answer": _answer(hold, name),
    }  # fmt: skip
    text, todo = sentence.text.format(**values), sentence.todo.format(**values)
    return HoldWords(text, todo, f"{text}{sentence.joint}{todo}" if todo else text)


def _answer(hold: Hold, name: str) -> str:
    """The way to answer a dialog: by its id where the relay knows what is asked, else at the terminal."""
    id_ = hold.request[:_SHOWN_ID]
    if id_ and hold.kind == "permission":
        return f"approve it with `{_COMMAND} permissions approve {id_}`"
    if id_ and hold.kind == "question":
        return f"answer it with `{_COMMAND} questions answer {id_} TEXT`"
    return f"answer it with `{_COMMAND} attach {name}`"


def read_hold(raw: object) -> Hold | None:
    """The hold in an agent's description; None where there is none."""
    if not isinstance(raw, Mapping):
        return None
    try:
        return msgspec.convert(raw, Hold)
    except msgspec.ValidationError:  # of another version
        return None


def show_hold(agent: Mapping[str, Any], show_time: ShowTime, you: str = "") -> dict[str, Any] | None:
    """The hold of an agent as AGENTS describes it, with its sentences, for programs."""
    hold = read_hold(agent.get("hold"))
    if hold is None:
        return None
    words = describe_hold(hold, str(agent.get("name")), show_time, you)
    return {**msgspec.to_builtins(hold), "text": words.text, "todo": words.todo, "line": words.line}


# --- in a message's trail -----------------------------------------------------------------------------------------------


def encode_waits(hold: Hold) -> str:
    """The detail of a step `waits`."""
    return msgspec.json.encode(hold).decode()


def read_waits(detail: str) -> Hold | None:
    """None for one that an older daemon wrote, which is a sentence already."""
    try:
        return msgspec.json.decode(detail, type=Hold)
    except msgspec.DecodeError:
        return None
