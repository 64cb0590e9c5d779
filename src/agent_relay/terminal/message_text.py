"""What an agent is shown: messages, notices and the introduction, as the text that is typed in for it.

Content is data. Control characters are replaced, line breaks go where the program would take them for Enter, and no line
of a body can look like a header of ours. Nothing here begins with a command's prefix, so that neither the echo on the
screen nor an agent that quotes it sends anything.
"""

from __future__ import annotations

import hashlib
import re

from msgspec import Struct

from agent_relay.terminal.parser import CLOSE, DEFAULT_PREFIX, OPEN

SHORT_ID = 8
URGENT = 2  # priorities 0 to 2 of 0 to 9
MAX_UNBRACKETED_CHARACTERS = 1_000  # a terminal's own line editing holds 4,096 bytes (1,024 on macOS) and drops the rest

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
_LINE_BREAKS = re.compile("\r\n|[\r\u0085\u2028\u2029\x0b\x0c]")
_HEADER = re.compile(r"^(?=[\W_]*Relay\s+(?:message|notice)\b)", re.IGNORECASE | re.MULTILINE)
_NOT_IN_TAGS = re.compile(r"[\s\[\]:]+")


class Shown(Struct, frozen=True):
    """A message as far as its recipient needs to know it."""

    id: str
    sender: str
    body: str
    kind: str = "message"
    thread: str | None = None
    channel: str | None = None
    priority: int | None = None
    awaits_answer: bool = False


class Room(Struct, frozen=True):
    """What the program can be given."""

    is_bracketed: bool = True  # a paste is told from keys, so that a line break in it is not Enter
    max_characters: int | None = None


PLAIN = Room(is_bracketed=False, max_characters=MAX_UNBRACKETED_CHARACTERS)


def short_id(message_id: str) -> str:
    """Eight digits that tell messages apart; any eight characters of the ids themselves many messages have in common."""
    return hashlib.sha256(message_id.encode("utf-8", "replace")).hexdigest()[:SHORT_ID]


def clean(text: str) -> str:
    """Without anything that steers a terminal; what was replaced is seen to have been there."""
    return _CONTROLS.sub("\ufffd", _LINE_BREAKS.sub("\n", text))


def render(message: Shown, room: Room, prefix: str = DEFAULT_PREFIX) -> str:
    body = _HEADER.sub("| ", clean(message.body).strip("\n"))
    head = f"Relay message from {message.sender} [{short_id(message.id)}]{_tags(message)}: "
    asks = f"\n({message.sender} waits for your answer: begin it with `{prefix}{message.sender}`.)"
    tail = asks if message.awaits_answer else ""
    return fit(head, body, tail, room, message.id)


def fit(head: str, body: str, tail: str, room: Room, message_id: str = "") -> str:
    """The text whole, or its beginning and where the rest is."""
    text = head + body + tail
    if room.max_characters is not None and len(text) > room.max_characters:
        rest = f" … (shortened; the whole: agent-relay read {message_id})" if message_id else " …"
        text = head + body[: max(0, room.max_characters - len(head) - len(rest) - len(tail))] + rest + tail
    return text if room.is_bracketed else " ".join(text.split())


def render_notice(text: str, room: Room) -> str:
    """A word of the relay itself to the agent."""
    return fit("Relay notice: ", clean(text).strip(), "", room)


def render_introduction(name: str, mark: str, room: Room, prefix: str = DEFAULT_PREFIX) -> str:
    """`mark` is found again in the CLI's session file, and shows which one is this agent's."""
    text = (
        f"you are {name}, one of several agents that can write to each other. To send a message, begin a line of your "
        f"answer with `{prefix}AgentName` (the agent's name instead of AgentName; `*` for all), a space, and the text; for "
        f"several lines put `{OPEN}` after the name and `{CLOSE}` at the end of the text. What others write to you comes as "
        f"`Relay message from …`. This is only for your information: nothing has to be done or sent now."
    )
    return fit(f"Relay notice [{mark}]: ", text, "", Room(room.is_bracketed))


def _tags(message: Shown) -> str:
    tags = []
    if message.channel:
        tags.append(message.channel)
    if message.thread:
        tags.append(f"thread {_NOT_IN_TAGS.sub(' ', clean(message.thread))[:64]}")
    if message.kind != "message":
        tags.append(message.kind)
    if message.priority is not None and message.priority <= URGENT:
        tags.append("urgent")
    return "".join(f" [{tag}]" for tag in tags)
