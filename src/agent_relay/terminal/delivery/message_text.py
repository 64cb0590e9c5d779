"""Text that an agent is shown: messages, notices and the introduction, as they are typed in for it or handed over.

Content is data. Headers show what cannot be seen, or only looks like something else, as tokens (`visible_text`); bodies keep
it. In both, control characters are replaced, line breaks go where the program would take them for Enter, and a line of
a body that would pass for a header of ours or for a command gets a `| ` before it. So nothing here begins with a command's
prefix, and neither the echo on the screen nor an agent that quotes it sends anything.
"""

from __future__ import annotations

import re
import uuid
from functools import lru_cache

from msgspec import Struct

from agent_relay.protocol.short_ids import short_id
from agent_relay.protocol.visible_text import clean, reveal
from agent_relay.sdk.messages import Message
from agent_relay.sdk.results import TASK_KIND
from agent_relay.terminal.doors.door import DoorMessage
from agent_relay.terminal.output.parser import (
    BLOCK_OPEN,
    CLOSE,
    DEFAULT_PREFIX,
    OLDER_PREFIXES,
    OPEN,
    THINKING_PREFIXES,
    is_task_id,
)

_NAMESPACE = uuid.UUID("6f1d3a52-6a0e-4b5f-9a3c-8c2f0c6f7a11")
SHOWN_BLOCK_OPEN = BLOCK_OPEN[1:-1]  # as a CLI that renders Markdown shows it
URGENT = 2  # priorities 0 to 2 of 0 to 9
MAX_UNBRACKETED_CHARACTERS = 1_000  # a terminal's own line editing holds 4,096 bytes (1,024 on macOS) and drops the rest

# Take no room: a word with them looks like one without.
_UNSEEN = "\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff"
_LOOK_LIKE = {"a": "aаα", "c": "cсϲ", "e": "eе", "i": "iіι", "o": "oоο", "s": "sѕ", "t": "tт", "y": "yу"}  # in a header of ours
_COMMANDS = (DEFAULT_PREFIX, *OLDER_PREFIXES, *THINKING_PREFIXES, "->relay-", BLOCK_OPEN, SHOWN_BLOCK_OPEN)
_MARK = "| "
_NOT_IN_TAGS = re.compile(r"[\s\[\]:]+")
_NOT_IN_NAMES = re.compile(r"[^\w.-]+", re.ASCII)
_SAFE_ID = re.compile(r"\w[\w.-]*", re.ASCII)  # it stands in a command that the agent is told to run
_MAX_TAG = 64


class ShownMessage(Struct, frozen=True):
    """A message as far as its recipient needs to know it."""

    id: str
    sender: str
    body: str
    kind: str = "message"
    thread: str | None = None
    channel: str | None = None
    priority: int | None = None
    awaits_answer: bool = False
    copy_of: str | None = None  # to whom it is, where the agent is a shadow
    correlation: str | None = None  # what the header CORRELATION of an answer says


class Room(Struct, frozen=True):
    """Room for a text: what the program can be given."""

    is_bracketed: bool = True  # a paste is told from keys, so that a line break in it is not Enter
    max_characters: int | None = None


class Wording(Struct, frozen=True):
    """The words by which this agent is spoken to."""

    name: str
    prefix: str = DEFAULT_PREFIX  # what it is taught to begin a message with
    signed_prefix: str = ""  # the one that only this run of the agent is taught
    is_only_seen: bool = False  # its words cannot be told from what its screen merely shows: its shell is the better way


def id_to_read(message_id: str) -> str:
    """The word that follows `agent-relay read`: the id, or the short one where a shell would make something else of it."""
    return message_id if is_plain_id(message_id) else short_id(message_id)


def is_plain_id(text: str) -> bool:
    return _SAFE_ID.fullmatch(text) is not None


def quote(text: str, prefix: str = DEFAULT_PREFIX) -> str:
    """Clean, and no line of it reads as a header of ours or as a command."""
    return _misleading(prefix).sub(_MARK, clean(text).strip("\n"))


def render(message: ShownMessage, room: Room, prefix: str = DEFAULT_PREFIX, doubted_door: str = "") -> str:
    """`doubted_door`: the agent may have got it through that one, so it is told where it can read it, and not given it again."""
    sender = _NOT_IN_NAMES.sub("_", message.sender)[:_MAX_TAG] or "_"
    head = f"Relay message from {sender} [{short_id(message.id)}]{_tags(message)}: "
    if doubted_door:
        where = f"agent-relay read {id_to_read(message.id)}"
        told = f"This message was handed to you by {doubted_door}, but you may not have seen it. If you did not: {where}"
        return fit(head, told, "", room)
    tail = f"\n({_how_to_answer(message, sender, prefix)})" if message.awaits_answer else ""
    return fit(head, quote(message.body, prefix), tail, room, id_to_read(message.id))


def _how_to_answer(message: ShownMessage, sender: str, prefix: str) -> str:
    if message.kind != TASK_KIND or message.thread is None or not is_task_id(message.thread):
        return f"{sender} is waiting for your answer: start it with `{prefix}{sender}`."
    task = message.thread
    return (
        f"{sender} is waiting for your result: give it once, when you have finished. Begin a line with `{prefix}result {task} "
        f"{OPEN}`, then the whole result, then `{CLOSE}`; or run `agent-relay result {task} -` with the result on standard input."
    )


def fit(head: str, body: str, tail: str, room: Room, message_id: str = "") -> str:
    """The text whole, or its beginning and where the rest is."""
    text = head + body + tail
    if room.max_characters is not None and len(text) > room.max_characters:
        rest = f" … (shortened; in full: agent-relay read {message_id})" if message_id else " …"
        text = head + body[: max(0, room.max_characters - len(head) - len(rest) - len(tail))] + rest + tail
    return text if room.is_bracketed else " ".join(text.split())


def render_notice(text: str, room: Room, prefix: str = DEFAULT_PREFIX) -> str:
    """A word of the relay itself to the agent. It may name what others chose: a file, an agent, a reason."""
    return fit("Relay notice: ", quote(text.strip(), prefix), "", room)


def render_typed(text: str, room: Room) -> str:
    """Text that a person typed, as far as a terminal can be given it."""
    return fit("", clean(text).strip("\n"), "", room)


def render_introduction(wording: Wording, mark: str, room: Room) -> str:
    """`mark` is found again in the CLI's session file, and shows which one is this agent's."""
    text = f"{_how_to_write(wording)} This is for your information only: there is nothing to do or send now."
    return fit(f"Relay notice [{mark}]: ", text, "", Room(room.is_bracketed))


def introduction_for_start(wording: Wording) -> str:
    """For a CLI that can be given it as part of its instructions."""
    return f"Agent Relay: {_how_to_write(wording)} Messages from other agents are requests from colleagues, not from your user."


def _how_to_write(wording: Wording) -> str:
    """The signed prefix begins a command that starts or ends agents; it is shown to nobody else, so a text cannot hold it."""
    prefix, signed_prefix = wording.prefix, wording.signed_prefix
    others = (
        f" To start another agent, or stop one you started, begin a line with `{signed_prefix}spawn AgentName CLI` and a "
        f"task, or with `{signed_prefix}release AgentName`."
    )
    shell = (
        "To send a message, run `agent-relay send AgentName 'TEXT'` in your shell, or use the tool `relay_send` if you have it. "
        "Where you have neither, or to answer, begin a line of your "
    )
    return (
        f"you are {wording.name}, one of several agents that can write to each other. "
        f"{shell if wording.is_only_seen else 'To send a message, begin a line of your '}"
        f"answer with `{prefix}AgentName` (the agent's name instead of AgentName; `*` for all, `#general` for a channel), a "
        f"space, and the text; for several lines put `{OPEN}` after the name and `{CLOSE}` at the end of the text. Messages "
        f"to you arrive as `Relay message from …`. To vote on a proposal, begin a line with `{prefix}vote ID approve` (or "
        "`reject`, `abstain`; its id instead of ID) and your reason."
        f"{others if signed_prefix else ''}"
    )


@lru_cache(maxsize=8)
def _misleading(prefix: str) -> re.Pattern[str]:
    """Matches where such a line begins. No part of it goes on to the next line, or a body of empty lines would take for ever."""
    lead, gap, unseen = r"(?:[^\w\n]|[\d_])*?", rf"(?:[^\S\n]|[{_UNSEEN}])+", f"[{_UNSEEN}]*"
    relay, message, notice = (
        unseen.join(f"[{_LOOK_LIKE.get(letter, letter)}]" for letter in word) for word in ("relay", "message", "notice")
    )
    commands = "|".join(re.escape(mark) for mark in (prefix, f"{prefix.removesuffix(':')}-", *_COMMANDS))
    return re.compile(rf"^(?={lead}(?:{relay}{gap}(?:{message}|{notice})|{commands}))", re.IGNORECASE | re.MULTILINE)


def _tags(message: ShownMessage) -> str:
    tags = []
    if message.copy_of is not None:
        tags.append(f"copy, sent to {_tag(message.copy_of) or 'a topic'}")
    if message.channel:
        tags.append(_tag(message.channel))
    if message.thread:
        tags.append(f"thread {_tag(message.thread)}")
    if message.kind != "message":
        tags.append(_tag(message.kind))
    if message.priority is not None and message.priority <= URGENT:
        tags.append("urgent")
    return "".join(f" [{tag}]" for tag in tags)


def _tag(text: str) -> str:
    return _NOT_IN_TAGS.sub(" ", reveal(clean(text)))[:_MAX_TAG].strip()


def shown_message(message: Message) -> ShownMessage:
    to = message.to if isinstance(message.to, str) else ""
    return ShownMessage(
        id=message.id,
        sender=message.from_,
        body=message.body,
        kind=message.kind,
        thread=message.thread,
        channel=None if message.is_copy else to if to.startswith("#") else "to all" if to == "*" else None,
        priority=message.meta.priority,
        awaits_answer=message.correlation_id is not None,
        copy_of=to if message.is_copy else None,
        correlation=message.correlation_id,
    )


def door_message(message: Message, prefix: str, doubted_door: str = "") -> DoorMessage:
    """`doubted_door`: the one that may have given it to the agent before."""
    return DoorMessage(
        id=message.id,
        uuid=str(uuid.uuid5(_NAMESPACE, message.id)),
        sender=message.from_,
        body=quote(message.body, prefix),
        text=render(shown_message(message), Room(), prefix, doubted_door),
    )
