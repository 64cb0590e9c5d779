"""Text of an agent → the commands in it, a line at a time.

Theory of operation. A command begins at the beginning of a line, after at most a list bullet, in the author's own
words (see `prose`). The parser is in one of three states: outside, inside a fenced body (`->relay:Bob <<<` … `>>>`),
or inside a JSON block (`[[RELAY]]` … `[[/RELAY]]`). Lines may come one by one or in pieces of any size; what comes
out is the same. `end` says that the text is over: what is still open then is reported, never sent.

Never a command: code, quotations, diffs, `\\->relay:`, the placeholders of our own instructions, and a line the screen
shows as code (`is_code`). A body is carried as it was written; only the line breaks next to `<<<` and `>>>` go.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from agent_relay.protocol.names import BROADCAST, is_channel, is_name, is_topic
from agent_relay.terminal.output.commands import (
    Command,
    FileCommand,
    Found,
    JoinCommand,
    LeaveCommand,
    ReleaseCommand,
    ResultCommand,
    SendCommand,
    SpawnCommand,
    Spoken,
    Unfinished,
    VoteCommand,
)
from agent_relay.terminal.output.prose import Fence, Prose

DEFAULT_PREFIX = "->relay:"
OLDER_PREFIXES = ("@relay:",)
THINKING_PREFIXES = ("->thinking:", "@thinking:")
OPEN, CLOSE = "<<<", ">>>"
BLOCK_OPEN, BLOCK_CLOSE = "[[RELAY]]", "[[/RELAY]]"
TOPIC = "topic:"  # before a topic, which would pass for a name
PLACEHOLDERS = frozenset({"AgentName", "Agent-Name", "AGENT", "NAME", "TARGET", "RECIPIENT", "TO", "ID", "TASK"})
MAX_BODY_CHARACTERS = 1_000_000  # a frame holds 1 MiB; a longer body could not be sent anyway

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_PROPOSAL = re.compile(r"prop_[0-9A-Za-z]{26}|[0-9a-fA-F]{8,64}", re.ASCII)
_CHOICE = re.compile(r"[A-Za-z]{1,20}", re.ASCII)  # anything that may be meant as one; the daemon says what there is
_KIND = re.compile(r"[a-z][a-z0-9_.-]{0,63}", re.ASCII)
_TASK_ID = re.compile(
    r"(?=\D{0,127}\d)[A-Za-z0-9][\w.:-]{0,127}", re.ASCII
)  # the digit tells it from a word to an agent `result`
_NOT_CLOSED = f"The message was opened with {OPEN} but not closed with {CLOSE}."
_BLOCK_NOT_CLOSED = f"The block was opened with {BLOCK_OPEN} but not closed with {BLOCK_CLOSE}."


@lru_cache(maxsize=8)
def lead_of(bullets: str = "") -> re.Pattern[str]:
    """All that may stand before a command: spaces, a list's bullet or number, or one of the marks that a CLI puts there."""
    return re.compile(rf"\s*(?:(?:[-*•◦‣{re.escape(bullets)}]|\d{{1,9}}[.)])\s+)?")


class Syntax(msgspec.Struct, frozen=True):
    """The spelling of commands: the configured prefix, and how a CLI shows the marks it renders."""

    prefix: str = DEFAULT_PREFIX
    block_marks: tuple[tuple[str, str], ...] = ((BLOCK_OPEN, BLOCK_CLOSE),)
    close_lines: tuple[str, ...] = ()  # whole lines, stripped, that stand for a `>>>` on its own
    nonce: str = ""  # of this run of the agent: `->relay-NONCE:` is the prefix that nobody else knows
    is_strict: bool = False  # nothing else is a command
    bullets: str = ""  # marks of the CLI before a line, `>` among them: whoever shows the line knows that it is no quotation

    @property
    def senders(self) -> tuple[tuple[str, str], ...]:
        """(prefix, kind) of everything that sends. A configured prefix replaces the usual spellings."""
        if self.prefix != DEFAULT_PREFIX:
            return ((self.prefix, "message"),)
        usual = tuple((prefix, "message") for prefix in (DEFAULT_PREFIX, *OLDER_PREFIXES))
        return usual + tuple((prefix, "thinking") for prefix in THINKING_PREFIXES)

    @property
    def signed_prefix(self) -> str:
        return f"{self.prefix.removesuffix(':')}-{self.nonce}:" if self.nonce else ""

    @property
    def spelled(self) -> tuple[str, ...]:
        """Every prefix that sends."""
        usual = () if self.is_strict else tuple(prefix for prefix, _ in self.senders)
        return (self.signed_prefix, *usual) if self.nonce else usual

    @property
    def file_prefix(self) -> str:
        return f"{self.prefix.removesuffix(':')}-file:"


class _Open:
    """A fenced body or a block that waits for its end."""

    def __init__(self, head: str, kind: str, place: int, close: str, *, is_signed: bool = False) -> None:
        self.head = head
        self.is_signed = is_signed
        self.kind = kind
        self.place = place
        self.close = close
        self.lines: list[str] = []
        self.places: list[int] = []
        self.size = 0
        self.fence = Fence()

    @property
    def is_block(self) -> bool:
        return self.close != CLOSE


class CommandParser:
    def __init__(self, syntax: Syntax | None = None) -> None:
        self._syntax = syntax or Syntax()
        self._senders = self._syntax.senders
        self._file_prefix = self._syntax.file_prefix
        self._lead = lead_of(self._syntax.bullets)
        self._marks = frozenset(self._syntax.bullets)
        self._prose = Prose()
        self._open: _Open | None = None
        self._partial = ""
        self._next_place = 0

    def feed_text(self, piece: str) -> list[Found]:
        """Text as it arrives, cut anywhere. Lines are numbered from 0."""
        *lines, self._partial = (self._partial + piece).split("\n")
        return [found for line in lines for found in self.feed(line, self._next_place)]

    def feed(self, line: str, place: int, *, is_code: bool = False) -> list[Found]:
        """One whole line without its end. `is_code`: whoever shows it shows it as code."""
        self._next_place = place + 1
        line = line.removesuffix("\r")
        if self._open is not None:
            return self._continue(self._open, line, place)
        lead = self._lead.match(line)
        text = line[lead.end() if lead else 0 :]
        is_marked = line.lstrip()[:1] in self._marks and text.startswith(self._syntax.spelled)
        if not self._prose.owns(text if is_marked else line) or is_code:
            return []
        return self._begin(text, place)

    def end(self) -> list[Found]:
        """The text is over. The parser is as new afterwards, but for the count of lines."""
        found = self.feed(self._partial, self._next_place) if self._partial else []
        self._partial = ""
        pending, self._open = self._open, None
        self._prose = Prose()
        if pending is None:
            return found
        late = self._close_late(pending)
        return found + late if late else [*found, self._unfinished(pending)]

    # --- outside -----------------------------------------------------------------------------------------------------

    def _begin(self, text: str, place: int) -> list[Found]:
        for open_mark, close_mark in self._syntax.block_marks:
            if text.startswith(open_mark):
                self._open = _Open("", "message", place, close_mark)
                return self._continue(self._open, text[len(open_mark) :], place)
        signed = self._syntax.signed_prefix
        if signed and text.startswith(signed):
            return self._begin_send(text[len(signed) :], "message", place, is_signed=True)
        if self._syntax.is_strict:
            return []
        if text.startswith(self._file_prefix):
            name = text[len(self._file_prefix) :].strip()
            return [Spoken(FileCommand(name), place, place)] if _FILE_NAME.fullmatch(name) else []
        for prefix, kind in self._senders:
            if text.startswith(prefix):
                return self._begin_send(text[len(prefix) :], kind, place)
        return []

    def _begin_send(self, text: str, kind: str, place: int, *, is_signed: bool = False) -> list[Found]:
        head, mark, rest = text.partition(OPEN)
        if mark and (head != head.rstrip() or not rest.strip()) and _reads_as_head(head, kind):
            self._open = _Open(head.strip(), kind, place, CLOSE, is_signed=is_signed)
            return self._continue(self._open, rest.lstrip(), place) if rest.strip() else []
        command = _read_inline(text, kind)
        return [] if command is None else [Spoken(command, place, place, is_signed)]

    # --- inside ------------------------------------------------------------------------------------------------------

    def _continue(self, pending: _Open, line: str, place: int) -> list[Found]:
        pending.lines.append(line)
        pending.places.append(place)
        pending.size += len(line) + 1
        if pending.size > MAX_BODY_CHARACTERS:
            self._open = None
            return [Unfinished(pending.head, "The message is too long to be sent.", pending.place)]
        if pending.is_block:
            return self._close(pending, place) if pending.close in line else []
        if pending.fence.takes(line):
            return []
        return self._close(pending, place) if self._closes(line) else []

    def _closes(self, line: str) -> bool:
        stripped = line.rstrip()
        return stripped.endswith(CLOSE) or stripped.strip() in self._syntax.close_lines

    def _close(self, pending: _Open, place: int) -> list[Found]:
        self._open = None
        if pending.is_block:
            return _read_block(pending, place, self._syntax)
        body = "\n".join([*pending.lines[:-1], self._without_close(pending.lines[-1])])
        command = _read_fenced(pending.head, pending.kind, _trim(body))
        if command is None:
            return [Unfinished(pending.head, "The message has no body.", pending.place)]
        return [Spoken(command, pending.place, place, pending.is_signed)]

    def _without_close(self, line: str) -> str:
        stripped = line.rstrip()
        return "" if stripped.strip() in self._syntax.close_lines else stripped.removesuffix(CLOSE)

    def _close_late(self, pending: _Open) -> list[Found]:
        """A code fence in the body that was never closed hid the end: take the first end there is."""
        if pending.is_block or not pending.fence.is_open:
            return []
        for index, line in enumerate(pending.lines):
            if self._closes(line):
                rest = list(zip(pending.lines[index + 1 :], pending.places[index + 1 :], strict=True))
                del pending.lines[index + 1 :]
                found = self._close(pending, pending.places[index])
                for later, place in rest:
                    found += self.feed(later, place)
                return found + self.end()
        return []

    @staticmethod
    def _unfinished(pending: _Open) -> Unfinished:
        return Unfinished(pending.head, _BLOCK_NOT_CLOSED if pending.is_block else _NOT_CLOSED, pending.place)


# --- heads and bodies --------------------------------------------------------------------------------------------------


def read_target(text: str) -> tuple[str, ...] | None:
    """`Bob`, `Bob,Carol`, `#dev`, `*`; a colon after it is forgiven. None: nobody can be called so."""
    text = text.removesuffix(":")
    if text == BROADCAST or is_channel(text):
        return (text,)
    names = tuple(text.split(","))
    return names if all(is_name(name) and name not in PLACEHOLDERS for name in names) else None


def read_topic(text: str) -> str | None:
    """`topic:code.review`."""
    topic = text.removeprefix(TOPIC).removesuffix(":")
    return topic if text.startswith(TOPIC) and is_topic(topic) and topic.isascii() else None


_MEMBERSHIP: dict[str, type[JoinCommand] | type[LeaveCommand]] = {"join": JoinCommand, "leave": LeaveCommand}


def is_task_id(text: str) -> bool:
    """Fit for `result`: an id without a digit could be the first word of a message."""
    return _TASK_ID.fullmatch(text) is not None


def _reads_as_head(head: str, kind: str) -> bool:
    words = head.split()
    if words[:1] == ["spawn"] and kind == "message":
        return len(words) == 3 and is_name(words[1])
    if words[:1] == ["vote"] and kind == "message" and len(words) == 3:
        return _names_proposal(words[1])
    if words[:1] == ["result"] and kind == "message":
        return len(words) == 2 and is_task_id(words[1])
    return len(words) == 1 and (read_target(words[0]) is not None or read_topic(words[0]) is not None)


def _read_inline(text: str, kind: str) -> Command | None:
    target, _, body = text.partition(" ")
    body = body.strip()
    if kind == "message" and target == "spawn":
        words = body.split(maxsplit=2)
        return _spawn(words[0], words[1], _unquote(words[2]) if len(words) > 2 else "") if len(words) > 1 else None
    if kind == "message" and target == "release":
        name, _, reason = body.partition(" ")
        return ReleaseCommand(name, _unquote(reason.strip())) if is_name(name) and name not in PLACEHOLDERS else None
    if kind == "message" and target == "result" and (is_task_id(task := body.partition(" ")[0]) or task in PLACEHOLDERS):
        result = body.partition(" ")[2].strip()
        return ResultCommand(task, result) if result and task not in PLACEHOLDERS else None
    if kind == "message" and target in _MEMBERSHIP and is_channel(body):
        return _MEMBERSHIP[target](body)
    if kind == "message" and target == "vote" and _names_proposal(body):
        return _read_vote(body)
    return _send(target, body, kind) if body else None


def _names_proposal(text: str) -> bool:
    """Else it is a message to an agent called so."""
    first = text.partition(" ")[0]
    return first in PLACEHOLDERS or _PROPOSAL.fullmatch(first.strip("[]")) is not None


def _read_vote(text: str) -> VoteCommand | None:
    """`3f9c2a11 approve and a reason`. The `approve|reject|abstain` of our own instructions is none."""
    proposal, _, rest = text.partition(" ")
    choice, _, reason = rest.strip().partition(" ")
    proposal, choice = proposal.strip("[]"), choice.strip("`'\".,:;").lower()
    if proposal in PLACEHOLDERS or _CHOICE.fullmatch(choice) is None:
        return None
    return VoteCommand(proposal, choice, _unquote(reason.strip()))


def _send(target: str, body: str, kind: str) -> SendCommand | None:
    topic = read_topic(target)
    if topic is not None:
        return SendCommand((), body, kind, topic=topic)
    to = read_target(target)
    return None if to is None else SendCommand(to, body, kind)


def _read_fenced(head: str, kind: str, body: str) -> Command | None:
    words = head.split()
    if len(words) == 3 and words[0] == "vote":
        return _read_vote(f"{words[1]} {words[2]} {body}")
    if len(words) == 3:
        return _spawn(words[1], words[2], body)
    if len(words) == 2:
        return ResultCommand(words[1], body) if body.strip() else None
    return _send(words[0], body, kind) if body.strip() else None


def _spawn(name: str, cli: str, task: str) -> SpawnCommand | None:
    return SpawnCommand(name, cli, task) if is_name(name) and name not in PLACEHOLDERS else None


def _unquote(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1].replace(f"\\{text[0]}", text[0])
    return text


def _trim(body: str) -> str:
    """Without the line breaks next to the marks; the indent of the first line stays."""
    return body.strip("\n").rstrip()


class _Block(msgspec.Struct):
    to: str | list[str] = ""
    topic: str = ""
    body: str = ""
    type: str = "message"
    kind: str | None = None
    thread: str | None = None
    data: dict[str, Any] | None = None
    nonce: str = ""


def _read_block(pending: _Open, place: int, syntax: Syntax) -> list[Found]:
    text = "\n".join(pending.lines).partition(pending.close)[0]
    try:
        block = msgspec.json.decode(text, type=_Block)
    except (msgspec.DecodeError, RecursionError) as error:
        return [Unfinished("", f"The block between {BLOCK_OPEN} and {BLOCK_CLOSE} cannot be read: {error}.", pending.place)]
    named = ",".join(block.to) if isinstance(block.to, list) else block.to
    to = () if block.topic and not named else read_target(named)
    kind = block.kind or block.type
    is_addressed = to is not None and (not block.topic or is_topic(block.topic))
    if to is None or not is_addressed or _KIND.fullmatch(kind) is None or not (block.body or block.data):
        return [Unfinished("", "The block needs `to` (a name) or `topic`, and a `body`.", pending.place)]
    is_signed = bool(syntax.nonce) and block.nonce == syntax.nonce
    if syntax.is_strict and not is_signed:
        return [Unfinished("", "The block needs `nonce`: for this agent, only messages with it are sent.", pending.place)]
    command = SendCommand(to, block.body, kind, block.thread, block.data, block.topic or None)
    return [Spoken(command, pending.place, place, is_signed)]
