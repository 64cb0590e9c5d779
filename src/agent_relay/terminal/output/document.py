"""The document of what was said, and where: the memory that makes a redraw, a resize, a scroll or a re-attach say nothing new.

Theory of operation. The document is a list of lines, each with a number of its own. Every reading of the screen is a
window onto it: an overlap with its end, changed here and there, and then perhaps something new. `merge` lays the
reading over the document by the best overlap (as sequences are aligned: what scrolled off at the front costs nothing,
what is new at the end costs nothing, everything else costs). A line that is found again keeps its number; only a line
without counterpart gets a new one. What was seen as the agent's at rest stays its own, whatever stands above it later: some
CLIs pin the prompt above a long answer. A command belongs to the number of its first line, so it is told once, and the same
words said again stand in a new line and are told again.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agent_relay.terminal.output.commands import Command
from agent_relay.terminal.output.lines import SaidLine
from agent_relay.terminal.profiles.profile import Kind

MAX_LINES = 2_000  # remembered; more than any screen with what scrolled off between two readings
MERGED_LINES = 800  # of one reading, from its end: what is looked at for commands, and a tall screen. A flood shows more, and
# to lay all of that over what is known takes more memory and time than anybody has
ALIGNED_LINES = 400  # from the end, that a reading is laid over
_GAP = 0.35  # a line that only one side has, between two that both have
_HIDDEN = 0.12  # a line of the document below the reading: the person has scrolled up
_BLANK = 0.05
_IN_THE_MAKING = 3


class DocumentLine(Struct):
    number: int
    kind: Kind
    text: str
    key: str  # the text without spaces: a line wrapped elsewhere is still the same
    is_code: bool
    begins: bool
    position: int
    told: Command | None = None  # what was told of the command that begins here
    is_old: bool = False  # was there before we came
    is_settled: bool = False  # seen in a reading after a pause
    is_echo: bool = False  # what was typed in for the agent, shown where its own words stand


class Document:
    def __init__(self) -> None:
        self.lines: list[DocumentLine] = []
        self._next_number = 0

    def merge(
        self, said: Sequence[SaidLine], default: Kind = Kind.OTHER, *, positions_hold: bool = False, is_quiet: bool = True
    ) -> list[Command]:
        """Takes in a reading of the screen. `default` is whose a line is when nothing tells; `positions_hold`: a line
        that is still there has kept its position, as on a normal screen and not on an alternate one.

        Returns what had been told of lines that are gone: drawn anew they look like others, and are not."""
        if not said:
            return []
        said = said[-MERGED_LINES:]
        keys = ["".join(line.text.split()) for line in said]
        base = max(len(self.lines) - max(ALIGNED_LINES, len(said)), 0)
        known = [line.key for line in self.lines[base:]]
        placed = {line.position: at for at, line in enumerate(self.lines[base:])} if positions_hold else {}
        pairs = _quick_overlap(known, keys, placed.get(said[0].position))
        if pairs is None:
            skipped = max(len(known) - 2 * len(keys) - 40, 0)
            pairs = [(skipped + at, index) for at, index in _align(known[skipped:], keys)]
        vanished = self._lay(base, said, keys, pairs, default, is_quiet=is_quiet)
        del self.lines[: max(len(self.lines) - MAX_LINES, 0)]
        return vanished

    def adopt(self) -> None:
        """Everything in it is old: nothing of it will be told."""
        for line in self.lines:
            line.is_old = True

    def _lay(
        self, base: int, said: Sequence[SaidLine], keys: list[str], pairs: list[tuple[int, int]], default: Kind, *, is_quiet: bool
    ) -> list[Command]:
        counterpart = {index: base + at for at, index in pairs}
        first = base + pairs[0][0] if pairs else len(self.lines)
        last = base + pairs[-1][0] if pairs else len(self.lines) - 1
        # Below the reading there may be lines it does not show; they are gone only if something else stands there now.
        hidden = [] if pairs and pairs[-1][1] < len(said) - 1 else self.lines[last + 1 :]
        before = self.lines[first - 1].kind if 0 < first <= len(self.lines) else default
        laid: list[DocumentLine] = []
        for index, line in enumerate(said):
            at = counterpart.get(index)
            goes_on = line.kind is Kind.USER and not line.begins and before is Kind.AGENT
            if at is None:
                laid.append(self._add(line, keys[index], before if line.kind is Kind.UNKNOWN or goes_on else line.kind))
            else:
                laid.append(_renew(self.lines[at], line, keys[index], stays=goes_on))
            laid[-1].is_settled |= is_quiet
            before = laid[-1].kind
        kept = {line.number for line in (*laid, *hidden)}
        vanished = [line.told for line in self.lines[first:] if line.told is not None and line.number not in kept]
        self.lines[first:] = [*laid, *hidden]
        return vanished

    def _add(self, line: SaidLine, key: str, kind: Kind) -> DocumentLine:
        number, self._next_number = self._next_number, self._next_number + 1
        return DocumentLine(number, kind, line.text, key, line.is_code, line.begins, line.position)


def _renew(known: DocumentLine, line: SaidLine, key: str, *, stays: bool = False) -> DocumentLine:
    """`stays`: it goes on what stands above it, and that is the agent's."""
    was_settled = known.is_settled and known.kind is Kind.AGENT and bool(known.key)
    is_pinned_above = line.kind is Kind.USER and not line.begins and (stays or was_settled)
    if line.kind is not Kind.UNKNOWN and not is_pinned_above:
        known.kind, known.begins = line.kind, line.begins
    known.text, known.key, known.position = line.text, key, line.position
    known.is_code = known.is_code or line.is_code
    return known


def _quick_overlap(known: list[str], keys: list[str], placed: int | None) -> list[tuple[int, int]] | None:
    """The overlap where nothing has changed but the last lines, which may have been in the making; None: look harder.

    `placed` is the line that stands where the reading begins, when positions can be trusted: of two overlaps that read
    the same, only it can tell which one is meant.
    """
    if placed is not None:
        for cut in range(min(_IN_THE_MAKING, len(known) - placed - 1) + 1):
            pairs = _overlap_at(known, keys, placed, len(known) - cut)
            if pairs:
                return pairs
    best: list[tuple[int, int]] = []
    for cut in range(min(_IN_THE_MAKING, len(known)) + 1):
        end = len(known) - cut
        for start in range(max(end - len(keys), 0), end):
            pairs = _overlap_at(known, keys, start, end)
            if pairs:
                best = pairs if len(pairs) > len(best) else best
                break
    # A short overlap may be chance; the careful way weighs it against all others.
    return best if 2 * len(best) >= len(keys) else None


def _overlap_at(known: list[str], keys: list[str], start: int, end: int) -> list[tuple[int, int]]:
    if known[start] != keys[0] or known[start:end] != keys[: end - start] or not any(known[start:end]):
        return []
    pairs = [(at, at - start) for at in range(start, end)]
    if end < len(known) and end - start < len(keys) and _worth(known[end], keys[end - start]):
        pairs.append((end, end - start))
    return pairs


def _align(known: list[str], keys: list[str]) -> list[tuple[int, int]]:
    """Pairs of (index in known, index in keys) of the best overlap; empty when none is worth anything."""
    rows, columns = len(known), len(keys)
    if not rows:
        return []
    score = [[0.0] * (columns + 1)]
    score[0] = [-_GAP * index for index in range(columns + 1)]
    for row in range(1, rows + 1):
        mine, above = known[row - 1], score[-1]
        current = [0.0] * (columns + 1)
        for column in range(1, columns + 1):
            best = max(above[column], current[column - 1]) - _GAP
            worth = _worth(mine, keys[column - 1])
            if worth and above[column - 1] + worth > best:
                best = above[column - 1] + worth
            current[column] = best
        score.append(current)
    return _trace(known, keys, score)


def _trace(known: list[str], keys: list[str], score: list[list[float]]) -> list[tuple[int, int]]:
    rows = len(known)
    best, row, column = 0.0, 0, 0
    for end in range(rows, 0, -1):
        reached = max(score[end]) - _HIDDEN * (rows - end)
        if reached > best:
            best, row, column = reached, end, score[end].index(max(score[end]))
    if best <= 0:
        return []
    pairs: list[tuple[int, int]] = []
    while row and column:
        worth = _worth(known[row - 1], keys[column - 1])
        if worth and score[row][column] == score[row - 1][column - 1] + worth:
            row, column = row - 1, column - 1
            pairs.append((row, column))
        elif score[row][column] == score[row - 1][column] - _GAP:
            row -= 1
        else:
            column -= 1
    return pairs[::-1]


def _worth(mine: str, other: str) -> float:
    """The weight of two lines being the same. One that has grown, as a line being written does, counts too."""
    if mine == other:
        return min(0.5 + len(mine) / 40, 1.5) if mine else _BLANK
    if len(mine) > 3 and len(other) > 3 and (other.startswith(mine) or mine.startswith(other)):
        return 0.6
    return 0.0
