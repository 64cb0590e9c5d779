"""A profile proposed from a recording: where the program waited, what its prompt looks like, and what shows while it works.

The recording is played into an emulation and looked at every quarter of a second. The program waited where whoever recorded
it marked so (`WAITS`), or where nothing came for a while. The prompt is what stands before the cursor at most of these
moments; marks of work are rows that were there at other moments, and at none of these.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_relay.terminal.recordings.asciicast import Cast
from agent_relay.terminal.screen.contents import Screen
from agent_relay.terminal.screen.emulator import Emulator

WAITS = "waits for input"  # a mark in a recording: the program was seen to wait for its terminal
EXPECT = "expect "  # a mark in a recording: `expect idle`, `expect working`; `profile test` holds the profile to it
LOOK_S = 0.25
QUIET_S = 1.0  # without marks: nothing came for so long
_MAX_BUSY = 3
_LONGEST = 60  # columns of a prompt; what is longer is text
_MARKS = re.compile(r"[\u2800-\u28ff◐◓◑◒✻✽✶✢·|/\\-]")
_WORK = re.compile(
    r"(?i:\.\.\.|…|\b(?:esc|ctrl[+-]c)\b|\b(?:thinking|working|generating|running|loading|processing|waiting)\b)|[\u2800-\u28ff◐◓◑◒]"
)


class Moment(Struct, frozen=True):
    t: float
    screen: Screen
    is_waiting: bool


class Proposal(Struct):
    prompt: str = ""  # an expression for the row; empty: none was found
    shown: str = ""  # that prompt as it was on the screen
    busy: list[str] = []
    idle_at: list[float] = []  # moments that were taken for idle
    busy_at: list[float] = []
    last: Screen | None = None


def propose(cast: Cast, prompt: str = "") -> Proposal:
    """`prompt`: an expression for its row, where the person knows it."""
    moments = list(look_through(cast))
    found = Proposal(last=moments[-1].screen if moments else None)
    waiting = [moment for moment in moments if moment.is_waiting]
    counted = Counter(shown for moment in waiting if (shown := _prompt_at(moment.screen)))
    if not counted and not prompt:
        return found
    # The prompt of the last moment, where it was there before as well; else the one that was seen most.
    last = _prompt_at(waiting[-1].screen) if waiting else ""
    found.shown = last if counted[last] > 1 else counted.most_common(1)[0][0] if counted else ""
    found.prompt = prompt or expression_for(found.shown, waiting)
    row = re.compile(found.prompt)
    found.idle_at = [moment.t for moment in waiting if row.search(_cursor_row(moment.screen))]
    _find_busy(found, moments, row)
    return found


def look_through(cast: Cast) -> Iterator[Moment]:
    """The screen at each look, with whether the program waited then."""
    emulator = Emulator(cast.header.width, cast.header.height)
    is_marked = any(event.kind == "m" and event.data == WAITS for event in cast.events)
    end = cast.events[-1].t if cast.events else 0.0
    waits, output_t, t, at = False, 0.0, 0.0, 0
    while t <= end + QUIET_S:
        t += LOOK_S
        while at < len(cast.events) and cast.events[at].t <= t:
            event = cast.events[at]
            at += 1
            if event.kind == "o":
                emulator.feed(event.data.encode("utf-8", "replace"))
                waits, output_t = False, event.t
            elif event.kind == "r" and (size := re.fullmatch(r"(\d{1,4})x(\d{1,4})", event.data)):
                emulator.resize(int(size[1]), int(size[2]))
            elif event.kind == "m" and event.data == WAITS:
                waits = True
        yield Moment(t, emulator.read(), waits or (not is_marked and t - output_t >= QUIET_S))


def expression_for(prompt: str, moments: Sequence[Moment] = ()) -> str:
    """Numbers in it may change. A box around it ends the row; else what is typed does."""
    head = re.sub(r"\d+", r"\\d+", re.escape(prompt).replace(r"\ ", " "))
    in_box = any(_cursor_row(moment.screen)[-1:] in {"│", "┃", "║"} for moment in moments) and prompt[:1] in {"│", "┃", "║"}
    return f"^{head}(?:\\s(?P<draft>.*?))?\\s*[│┃║]$" if in_box else f"^{head}(?:\\s(?P<draft>.*))?$"


def _find_busy(found: Proposal, moments: list[Moment], prompt: re.Pattern[str]) -> None:
    idle = {row for moment in moments if prompt.search(_cursor_row(moment.screen)) for row in _rows(moment.screen)}
    shapes: Counter[str] = Counter()
    for moment in moments:
        if moment.is_waiting or prompt.search(_cursor_row(moment.screen)):
            continue
        rows = [row for row in _rows(moment.screen)[-16:] if row not in idle and _WORK.search(row)]
        shapes.update({_shape_of(row) for row in rows})
        if rows:
            found.busy_at.append(moment.t)
    for shape, _ in shapes.most_common(_MAX_BUSY):
        if not any(re.search(shape, row) for row in idle):
            found.busy.append(shape)
    marks = [re.compile(shape) for shape in found.busy]
    by_time = {moment.t: moment.screen for moment in moments}
    found.busy_at = [t for t in found.busy_at if any(mark.search(row) for mark in marks for row in _rows(by_time[t]))]


def _shape_of(row: str) -> str:
    """A pattern for what stays of a row that moves: a spinner turns, numbers count, and what follows them is anybody's."""
    words = re.split(r"\d", row.strip(), maxsplit=1)[0].strip()[:_LONGEST]
    head, rest = (words[:1], words[1:]) if _MARKS.match(words) else ("", words)
    turning = r"[\u2800-\u28ff◐◓◑◒✻✽✶✢·|/\\-]" if head else ""
    return rf"^\s{{0,20}}{turning}{re.escape(rest).replace(chr(92) + ' ', ' ')}"


def _prompt_at(screen: Screen) -> str:
    """Text that stands before the cursor."""
    if screen.cursor is None:
        return ""
    found = _cursor_row(screen)[: screen.cursor.column].strip()
    return found if len(found) <= _LONGEST else ""


def _cursor_row(screen: Screen) -> str:
    position = screen.cursor.position if screen.cursor is not None else -1
    return next((line.text for line in screen.visible if line.position == position), "")


def _rows(screen: Screen) -> list[str]:
    return [line.text for line in screen.visible if line.text]
