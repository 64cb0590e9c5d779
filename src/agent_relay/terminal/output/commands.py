"""Commands that an agent can give the relay by writing them, as values. `parser` makes them, the wrapper carries them out."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from msgspec import Struct


class SendCommand(Struct, frozen=True, tag="send"):
    """`to` holds names, or one channel (`#dev`), or `*`; nothing where a topic is all that is said."""

    to: tuple[str, ...]
    body: str
    kind: str = "message"
    thread: str | None = None
    data: dict[str, Any] | None = None
    topic: str | None = None

    @property
    def target(self) -> str:
        return ",".join(self.to) or f"the topic {self.topic}"


class SpawnCommand(Struct, frozen=True, tag="spawn"):
    name: str
    cli: str
    task: str = ""


class ReleaseCommand(Struct, frozen=True, tag="release"):
    name: str
    reason: str = ""


class JoinCommand(Struct, frozen=True, tag="join"):
    channel: str


class LeaveCommand(Struct, frozen=True, tag="leave"):
    channel: str


class VoteCommand(Struct, frozen=True, tag="vote"):
    proposal: str  # its id, or the short one
    choice: str
    reason: str = ""


class ResultCommand(Struct, frozen=True, tag="result"):
    """The result of a task, by the task's id."""

    task: str
    body: str


class FileCommand(Struct, frozen=True, tag="file"):
    """Send the message that stands in this file of the agent's outbox."""

    name: str


Command: TypeAlias = (
    SendCommand | SpawnCommand | ReleaseCommand | JoinCommand | LeaveCommand | VoteCommand | ResultCommand | FileCommand
)  # fmt: skip


class Spoken(Struct, frozen=True):
    """A command and where it stands: the places of its first and last line, as the source counts them."""

    command: Command
    place: int
    last_place: int
    is_signed: bool = False  # it carries the nonce of this run, which a text that is only shown cannot know


class Unfinished(Struct, frozen=True):
    """Something that began like a command and is none. Nothing was sent; its author should be told why."""

    to: str
    reason: str  # a sentence
    place: int


Found: TypeAlias = Spoken | Unfinished


_LONGEST_LINK = 2_000
_MARKS = re.compile(r"[\s*_`~\[\]<>()#|│•◦‣\\\u200d-]")  # spaces, and the marks that rendered markdown loses or changes


def sounds_like(one: Command, other: Command) -> bool:
    """The same command, seen through different renderings: what a screen changes does not count."""
    match one, other:
        case SendCommand(), SendCommand():
            return one.target == other.target and one.kind == other.kind and _same_words(one.body, other.body)
        case SpawnCommand(), SpawnCommand():
            return (one.name, one.cli) == (other.name, other.cli) and _same_words(one.task, other.task)
        case VoteCommand(), VoteCommand():
            return (one.proposal, one.choice) == (other.proposal, other.choice) and _same_words(one.reason, other.reason)
        case ResultCommand(), ResultCommand():
            return one.task == other.task and _same_words(one.body, other.body)
        case _:
            return one == other


def words_of(command: Command) -> str:
    """Its text, for telling it from others."""
    match command:
        case SendCommand():
            return f"{command.target} {_MARKS.sub('', command.body)}"
        case ResultCommand():
            return f"result {command.task} {_MARKS.sub('', command.body)}"
        case SpawnCommand() | ReleaseCommand() | JoinCommand() | LeaveCommand() | VoteCommand() | FileCommand():
            return repr(command)


def shows_link_twice(command: Command) -> bool:
    """Whether it holds `ADDRESS (ADDRESS)`: opencode draws a bare address so for a moment after the end of a turn."""
    text = "".join((command.body if isinstance(command, SendCommand | ResultCommand) else repr(command)).split())
    at = text.find("(")
    while at >= 0:
        end = text.find(")", at, at + _LONGEST_LINK)
        link = text[at + 1 : end] if end > at else ""
        if "://" in link and text.endswith(link, 0, at):
            return True
        at = text.find("(", at + 1)
    return False


def _same_words(one: str, other: str) -> bool:
    return _MARKS.sub("", one) == _MARKS.sub("", other)
