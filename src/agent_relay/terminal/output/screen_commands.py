"""Commands that the screen shows, each told once.

A line that may still be growing is not a command yet: the last line of an answer counts once something follows it or
the turn is over. A reading taken while output was still coming may show a screen half drawn: what it shows counts once
the next reading shows the same. An address that stands there twice counts once it has stayed so for a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from msgspec import Struct

from agent_relay.terminal.output.commands import Command, Found, Spoken, Unfinished, shows_link_twice, sounds_like
from agent_relay.terminal.output.document import Document, DocumentLine
from agent_relay.terminal.output.input_rows import InputRows
from agent_relay.terminal.output.lines import read_lines
from agent_relay.terminal.output.parser import BLOCK_CLOSE, BLOCK_OPEN, DEFAULT_PREFIX, CommandParser, Syntax
from agent_relay.terminal.profiles.profile import Kind, Profile
from agent_relay.terminal.screen.contents import Screen
from agent_relay.terminal.screen.own_text import common_length, echo_key
from agent_relay.terminal.screen.state import ScreenState, State

_ANSWER = frozenset({Kind.AGENT, Kind.TOOL, Kind.STATUS})
PATIENCE_S = 2.0
LINK_S = 1.0  # an address drawn twice was drawn anew after 0.4 s
_AWAITED = 32  # echoes; one that is never shown, because a long paste is shown as a placeholder, is forgotten in time
_HEAD = 32  # characters that tell the beginning of an echo
_JUDGED_LINES = 300  # from the end; an echo is looked for there
PARSED_LINES = 600  # from the end of the document; an answer longer than that was told while it was written


class _Echo(Struct, frozen=True):
    """A message that was typed in, and may be shown from this line on."""

    key: str
    since: int


class ScreenListener:
    """`nonce`: of this run, so that commands with it are surely the agent's. `is_strict`: nothing else is a command."""

    def __init__(
        self, profile: Profile, prefix: str = DEFAULT_PREFIX, *, nonce: str = "", is_strict: bool = False
    ) -> None:  # fmt: skip
        self._profile = profile
        marks = ((BLOCK_OPEN, BLOCK_CLOSE), *profile.rows.block_marks)
        self._syntax = Syntax(
            prefix, marks, profile.rows.close_lines, nonce=nonce, is_strict=is_strict, bullets=profile.rows.bullets
        )
        self._inputs = InputRows(profile.composer)
        self._document = Document()
        self._doubtful: dict[int, Spoken] = {}
        self._unsettled: dict[int, tuple[Spoken, float]] = {}  # since when it is seen so
        self._lost: list[Command] = []
        self._complaints: dict[int, float | None] = {}  # when it was first seen; None: told
        self._echoes: list[_Echo] = []
        self._first_unasked = 0

    def read(self, screen: Screen, sight: ScreenState, t: float, *, is_quiet: bool, is_last: bool = False) -> list[Found]:
        """The commands that this reading completes, in order. `t` in seconds. `is_last`: no other will follow."""
        self._inputs.note(screen, sight)
        said = read_lines(self._profile, screen, sight.conversation_end, self._syntax.spelled, self._inputs)
        self._lost += self._document.merge(
            said, self._profile.rows.default, positions_hold=screen.is_alternate is False, is_quiet=is_quiet
        )
        self._recognise_echoes()
        is_ready = sight.composer is not None or sight.waits_at is not None
        is_over = is_last or sight.dialog is not None or (sight.state is not State.WORKING and is_ready)
        lines = {line.number: line for line in self._document.lines}
        told: list[Found] = []
        doubtful: dict[int, Spoken] = {}
        unsettled: dict[int, tuple[Spoken, float]] = {}
        for item in self._parse(is_over=is_over):
            line = lines[item.place]
            if line.told is not None or line.is_old:
                continue
            if isinstance(item, Unfinished):
                told += self._complain(item, t)
            elif not is_quiet and self._doubtful.get(item.place) != item:
                doubtful[item.place] = item
            elif not is_last and shows_link_twice(item.command) and t - self._seen_since(item, t) < LINK_S:
                unsettled[item.place] = (item, self._seen_since(item, t))
            else:
                line.told = item.command
                told += [] if self._was_told(item.command) else [item]
        self._doubtful, self._unsettled = doubtful, unsettled
        if is_over and is_quiet:
            self._lost.clear()
        return told

    def _seen_since(self, item: Spoken, t: float) -> float:
        known, since = self._unsettled.get(item.place, (None, t))
        return since if known == item else t

    def _was_told(self, command: Command) -> bool:
        """True for a command that vanished a moment ago: a CLI draws an answer anew once it is whole."""
        for lost in self._lost:
            if sounds_like(lost, command):
                self._lost.remove(lost)
                return True
        return False

    def _complain(self, item: Unfinished, t: float) -> list[Found]:
        """An open end is told late: the last strokes may be drawn after the turn is over."""
        since = self._complaints.setdefault(item.place, t)
        if since is None or t - since < PATIENCE_S:
            return []
        self._complaints[item.place] = None
        return [item]

    def fresh_lines(self) -> list[DocumentLine]:
        """The lines that were not there when this was last asked."""
        fresh = [line for line in self._document.lines if line.number >= self._first_unasked and not line.is_old]
        if fresh:
            self._first_unasked = fresh[-1].number + 1
        return fresh

    def shows(self, words: str) -> bool:
        """Whether they stand in it, broken into rows or not."""
        return "".join(words.split()) in "".join(line.key for line in self._document.lines)

    def note_person(self) -> None:
        """A person pressed a key: what they type is not the agent's."""
        self._inputs.note_person()

    def adopt(self) -> None:
        """Takes what is on the screen now as said before we came."""
        self._document.adopt()

    def expect_echo(self, text: str) -> None:
        """This text is about to be typed in: where it shows up, it is nobody's command."""
        key = echo_key(text)
        if key:
            self._echoes.append(_Echo(key, self._document.lines[-1].number if self._document.lines else 0))
            del self._echoes[:-_AWAITED]

    # --- parsing -----------------------------------------------------------------------------------------------------

    def _parse(self, *, is_over: bool) -> list[Found]:
        parser = CommandParser(self._syntax)
        found: list[Found] = []
        lines = self._document.lines[-PARSED_LINES:]
        # A message that waits in the queue is shown below an answer that is still being written.
        growing = max((index for index, line in enumerate(lines) if line.key and line.kind in _ANSWER), default=-1)
        for index, line in enumerate(lines):
            is_said = line.kind is Kind.AGENT and not line.is_echo
            if not is_said or line.begins:
                found += parser.end()
            if not is_said:
                continue
            may_grow = index == growing and not is_over
            items = parser.feed(line.text, line.number, is_code=line.is_code)
            found += [item for item in items if not (may_grow and item.place == line.number)]
        if is_over:
            found += parser.end()
        return found

    # --- echoes ------------------------------------------------------------------------------------------------------

    def _recognise_echoes(self) -> None:
        """Lines of an injected message are the user's, where a CLI does not say so itself. Looked for anew at every reading:
        a line that was half drawn is whole later, and where rows break is the screen's business."""
        if not self._echoes:
            return
        lines = [line for line in self._document.lines[-_JUDGED_LINES:] if line.number >= self._echoes[0].since]
        keys = [echo_key(line.key) for line in lines]
        shown = "".join(keys)
        ends = list(accumulate(len(key) for key in keys))
        for echo in tuple(self._echoes):
            for start in _places(echo.key[:_HEAD], shown):
                size = common_length(echo.key, shown, start)
                for line, key, end in zip(lines, keys, ends, strict=True):
                    line.is_echo |= bool(key) and start < end <= start + size
                if size == len(echo.key) and echo in self._echoes:
                    self._echoes.remove(echo)


def _places(words: str, text: str) -> Iterator[int]:
    start = text.find(words)
    while start >= 0:
        yield start
        start = text.find(words, start + 1)
