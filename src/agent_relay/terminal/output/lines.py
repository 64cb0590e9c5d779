"""Rows of a screen → lines as they were written: whose they are, without bullets and margins, with wraps undone.

A row that the terminal broke goes on in the next one, letter by letter. But a CLI breaks long lines itself and indents what
follows, so the terminal does not know that two rows are one line. They are joined when the first word of the next row would
not have fitted; a row that had room was ended by its author.
"""

from __future__ import annotations

import re

from msgspec import Struct
from wcwidth import wcswidth

from agent_relay.terminal.output.input_rows import InputRows
from agent_relay.terminal.output.parser import OPEN, lead_of
from agent_relay.terminal.profiles.profile import CodeInk, Kind, Profile, compile_pattern
from agent_relay.terminal.screen.contents import Line, Screen

_CUT_AFTER = "/-=&?"  # where some CLIs cut an address that is too long for a row
_QUOTED = re.compile(r"\s*>(?!>>)")
_ENDS = 1_000  # characters; a row has fewer
_LIST_ITEM = re.compile(r" *(?:[-*•]|\d{1,9}[.)]) ")


class SaidLine(Struct):
    kind: Kind
    text: str
    position: int
    is_code: bool = False
    begins: bool = False  # the first line of something new: a bullet, another speaker


class _Row(Struct):
    kind: Kind
    text: str
    width: int  # columns the whole row takes
    position: int
    is_code: bool
    begins: bool
    is_wrapped: bool = False


def read_lines(
    profile: Profile, screen: Screen, end: int | None, prefixes: tuple[str, ...] = (), inputs: InputRows | None = None
) -> list[SaidLine]:
    """The conversation on this screen, up to the position `end`. `prefixes`: what a command begins with. `inputs`: which rows
    somebody typed."""
    known = inputs if inputs is not None and inputs.is_known else None
    rows = _classify(profile, [line for line in screen.lines if end is None or line.position < end], prefixes, known)
    limit = screen.columns - profile.rows.right_margin
    said: list[SaidLine] = []
    last: _Row | None = None
    lead = lead_of(profile.rows.bullets)
    broken = {row.kind for row in rows if row.is_wrapped}  # whoever leaves that to the terminal does not do it itself
    for row in rows:
        if last is not None and said and last.is_wrapped:
            said[-1].text += " " * max(screen.columns - last.width, 0) + row.text
        elif last is not None and said and row.kind not in broken and _continues(row, last, limit, said[-1].text, prefixes, lead):
            said[-1].text += _glue(last, row, limit) + row.text.lstrip()
        else:
            said.append(SaidLine(row.kind, row.text, row.position, row.is_code, row.begins))
        last = row
    return _trim(said)


def _classify(profile: Profile, lines: list[Line], prefixes: tuple[str, ...], inputs: InputRows | None) -> list[_Row]:
    patterns = profile.compiled
    layout = profile.rows
    margin = " " * layout.indent
    edge = compile_pattern(layout.edge) if layout.edge else None
    kind = Kind.UNKNOWN
    rows: list[_Row] = []
    is_wrapped = False  # the row before
    for index, line in enumerate(lines):
        text = line.text if edge is None else edge.sub("", line.text)
        if is_wrapped and rows:
            is_wrapped = line.is_wrapped
            rows.append(_Row(kind, text, _columns(text), line.position, rows[-1].is_code, False, is_wrapped))
            continue
        is_wrapped = line.is_wrapped
        if not text:
            kind = layout.default if kind is Kind.TOOL and layout.blank_ends_tool else kind
            rows.append(_Row(kind, "", 0, line.position, False, False))
            continue
        if patterns["volatile"].search(text) and not patterns["status"].search(text):
            is_wrapped = False
            continue
        begins = True
        rest = text
        if inputs is not None and profile.rows.bullets and inputs.holds(line.position, text):
            kind = Kind.USER
        elif (match := patterns["user"].search(text)) and not _is_bulleted(profile, lines, index, prefixes, inputs):
            kind, rest = Kind.USER, text[match.end() :]
        elif patterns["status"].search(text):
            kind = Kind.STATUS
        elif patterns["tool"].search(text):
            kind = Kind.TOOL
        elif match := patterns["agent"].search(text):
            # A margin alone is no beginning: every row of such a CLI has it.
            begins = bool(match[0].strip()) or kind is not Kind.AGENT
            kind, rest = Kind.AGENT, text[match.end() :]
        elif patterns["other"].search(text):
            kind = Kind.OTHER
        elif margin and not text.startswith(margin):
            begins, kind = kind is not layout.default, layout.default
        else:
            begins = False
            if not margin and kind not in {Kind.AGENT, Kind.TOOL, Kind.UNKNOWN}:
                # Without margins a speaker goes on until the next pattern; what follows a user's row is the answer.
                begins, kind = True, layout.default
            rest = text[len(margin) :] if text.startswith(margin) else text
        is_code = kind in {Kind.AGENT, Kind.UNKNOWN} and _is_code(profile, line, rest)
        if layout.list_indent and kind is Kind.AGENT and _LIST_ITEM.match(rest) and rest.startswith(" " * layout.list_indent):
            rest = rest[layout.list_indent :]
        rows.append(_Row(kind, rest, _columns(text), line.position, is_code, begins, is_wrapped))
    return rows


def _is_code(profile: Profile, line: Line, rest: str) -> bool:
    if profile.compiled["code"].search(rest):
        return True
    if profile.rows.code_ink is CodeInk.NONE or line.ink_at is None or not rest.strip():
        return False
    lead = lead_of().match(rest)
    ink = line.ink_at(len(line.text) - len(rest) + (lead.end() if lead else 0))
    colour = ink.foreground if profile.rows.code_ink is CodeInk.FOREGROUND else ink.background
    return colour != "default"


def _is_bulleted(profile: Profile, lines: list[Line], index: int, prefixes: tuple[str, ...], inputs: InputRows | None) -> bool:
    """A mark of the program's own before a command, which nobody typed. `>` before several lines is a quotation."""
    marks, text = profile.rows.bullets, lines[index].text
    if inputs is None or text.lstrip()[:1] not in marks or not marks or not _is_next(text, prefixes, lead_of(marks)):
        return False
    near = [*lines[max(index - 1, 0) : index], *lines[index + 1 : index + 2]]
    quoted = [line for line in near if _QUOTED.match(line.text) and not inputs.holds(line.position, line.text)]
    return not (_QUOTED.match(text) and quoted)


def _continues(row: _Row, last: _Row, limit: int, line: str, prefixes: tuple[str, ...], lead: re.Pattern[str]) -> bool:
    if row.begins or row.kind is not last.kind or not row.text.strip() or not last.text.strip():
        return False
    # Only the ends of it: a line of thousands of rows is looked at for each of them.
    is_opened = line[-_ENDS:].rstrip().endswith(OPEN) and _is_next(line[:_ENDS], prefixes, lead)
    if is_opened or _is_next(row.text, prefixes, lead):
        return False  # what opens a block ends its line, always
    first_word = row.text.split(maxsplit=1)[0]
    return last.width + 1 + _columns(first_word) >= limit


def _is_next(text: str, prefixes: tuple[str, ...], lead: re.Pattern[str]) -> bool:
    """A row that begins as a command does is one, however full the row before it is. Prose that was broken right before a
    mention of one would look the same; it is rarer, and losing a message in silence is worse."""
    return bool(prefixes) and lead.sub("", text, count=1).startswith(prefixes)


def _glue(last: _Row, row: _Row, limit: int) -> str:
    """Nothing, where a word too long for a row was cut; else the space that the break replaced."""
    last_word, next_word = last.text.split()[-1], row.text.split(maxsplit=1)[0]
    room = limit - (last.width - _columns(last.text.lstrip()))
    is_full = last.width >= limit - 1
    fills_row = _columns(next_word) >= room - 1
    cut = (is_full and _columns(last_word) + _columns(next_word) > room) or (fills_row and last_word[-1] in _CUT_AFTER)
    return "" if cut else " "


def _trim(said: list[SaidLine]) -> list[SaidLine]:
    while said and not said[-1].text.strip():
        said.pop()
    start = 0
    while start < len(said) and not said[start].text.strip():
        start += 1
    return said[start:]


def _columns(text: str) -> int:
    return len(text) if text.isascii() else max(int(wcswidth(text)), 0)
