"""Signs that a program waits for something else than a message. When in doubt, nothing is typed.

For a program that nobody has described, what is looked for stands near the bottom: answers in brackets, buttons, a list of
options, one of them marked, or words that ask for leave. Where a composer is recognised as well, an agent's own words may stand
above it, so only what asks counts there. For one that waits for a line, only what stands right before the cursor is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from agent_relay.terminal.screen.contents import Line

SOMETHING_ELSE = "it seems to ask for something other than a message"
_SECRET_PROMPT = re.compile(
    r"(?i:\b(?:pass(?:word|phrase|code)?|otp|pin|token|key|secret|code|credentials?|user ?name|login|e-?mail)\b"
    r"(?:[^:?\])>]{0,60}[:?])?$|^[^:]{0,200}'s password:?$)"
)
_KEY_PRESS = re.compile(r"(?i:\bpress\b|--more--|\(end\)|^:$)")
# `What now?` is answered with a sentence, `Remove the file?` with a yes.
_OPEN_QUESTION = re.compile(r"(?i:^\W{0,4}(?:what|how|who|where|why|when)\b(?!.{0,80}\b(?:delete|remove|overwrite|replace)))")
# `[chat]` names who asks; `[no]` is what is taken for no answer, `name [untitled]` as well.
_LABEL = re.compile(r"^\[([\w][\w .-]{0,30})\]$")
_DEFAULT_ANSWERS = frozenset(
    "y n yes no ok enter return default all none any quit q exit a r c cancel abort retry skip more end".split()  # noqa: SIM905
)
_BARE_MARK = re.compile(r"^[$%](?: |$)")
_SHELL_PROMPT = re.compile(r"^[^>❯›]*[$%#](?: |$)")  # at its prompt a text would be run, line by line
_LONGEST_PROMPT = 80  # columns; a prompt is short, and a longer row is a sentence that ends so
_ROWS = 10  # from the bottom
_ROWS_ABOVE_COMPOSER = 6
_BORDER = " \t│┃║▌▐|╭╰╮╯┌└┐┘├┤─━═╔╚╗╝╠╣"
_MARKS = "❯›>▶►▸●◉⦿→➜➤»✔☑◆"
_YES_NO = re.compile(
    r"(?i:[\[(<{]\s*y(?:es)?\b[^\])>}]{0,80}[\])>}]|\by(?:es)?\s*[/|]\s*no?\b|\by or n\b|\byes or no\b|\[\s*(?:n|no)\s*\])"
)
_BUTTON = re.compile(
    r"(?i:[<\[(]\s*(?:yes|no|ok|okay|cancel|allow|deny|accept|reject|approve|continue|abort|retry|skip|quit|once|always)\b[^>\])]{0,40}[>\])])"
)
_WORDS = r"allow|approve|confirm|permit|proceed|authori[sz]e|grant|accept|trust|permission|approval|consent"
_WORDING = re.compile(rf"(?i:\b(?:{_WORDS})(?:s|ed|d|ing)?\b)")
_ASKING = re.compile(
    rf"(?i:\b(?:{_WORDS})\b.{{0,200}}(?:\?|:\s*$|\.\.\.$|…$)|^\W{{0,8}}(?:{_WORDS})\b|\b(?:press|hit|enter|type|key)\b.{{0,40}}\b(?:{_WORDS})\b"
    rf"|\b(?:wait\w*|need\w*|require\w*|ask\w*) (?:for )?(?:your |user |human )?(?:permission|approval|consent|confirmation))"
)
_HINT = re.compile(
    r"(?i:(?:\benter\b|\breturn\b|\bspace\b|\btab\b|\barrows?\b|[↑↓↵⏎]).{0,30}\b(?:select|confirm|choose|navigate|toggle|approve|accept|move)"
    r"|\bpress\b.{0,20}\b(?:key|enter|return|y|space)\b|\[enter\]|--more--|\(end\)|\b(?:choose|select|pick)\b.{0,40}[:?]\s*$)"
)
_SECRET = re.compile(r"(?i:\b(?:pass(?:word|phrase|code)|otp|pin|secret|verification code|api key)\b[^:]{0,80}:\s*$)")
_ITEM = re.compile(rf"^(?:[{_MARKS}○◯◌☐*-]\s*)?[\[(]?(\d{{1,2}}|[a-zA-Z])[.)\]:]\s*\S")
_MARKED = re.compile(rf"^[{_MARKS}]\s*\S")
_UNMARKED = re.compile(r"^(?:[○◯◌☐◇□]|[(\[]\s?[●◉*xX•✓]?\s?[)\]])\s*\S")
_CHOICE = re.compile(
    r"(?i:^(?:\W{0,4}(?:\d{1,2}[.)])?\s*)(?:yes|no|ok|allow|approve|accept|deny|reject|decline|cancel|always|once|proceed|continue|exit|quit"
    r"|trust|skip|abort|retry|keep|don.?t|never|modify|edit|run|execute|refuse|view|other)\b)"
)
_SHORT = 60


def find_doubt(lines: Sequence[Line], *, has_composer: bool, is_line: bool = False) -> str:
    """A clause that says what was seen; empty where there is no doubt. `lines`: without what we typed ourselves. `is_line`: the
    program waits for a line, so nothing is chosen with the arrow keys, and a mark alone is a bullet."""
    rows = [row for line in lines if (row := line.text.strip(_BORDER))]
    rows = rows[-(_ROWS_ABOVE_COMPOSER if has_composer else _ROWS) :]
    for row in reversed(rows):
        if _YES_NO.search(row) or _BUTTON.search(row):
            return f"it seems to ask a yes-or-no question: {_shorten(row)}"
        if _ASKING.search(row) or (not has_composer and _WORDING.search(row)):
            return f"it seems to ask for permission: {_shorten(row)}"
        if _SECRET.search(row):
            return f"it seems to ask for a secret: {_shorten(row)}"
        if _HINT.search(row):
            return f"it seems to ask for a choice: {_shorten(row)}"
    listed = _find_options(rows[:-1] if has_composer else rows, has_composer=has_composer, is_line=is_line)
    return f"it seems to show options: {_shorten(listed)}" if listed else ""


def _find_options(rows: list[str], *, has_composer: bool, is_line: bool) -> str:
    for index, (row, below) in enumerate(pairwise(rows)):
        pair = (row, below)
        # Above a composer a mark may begin what somebody typed before: there the marked row itself has to be an option.
        marked = [each for each in pair if _MARKED.match(each) and (not has_composer or _is_option(each))]
        if marked and any(_is_option(each) for each in pair if each is not marked[0] or len(marked) > 1):
            return row
        if marked and not (has_composer or is_line) and len(row) < _SHORT and len(below) < _SHORT:
            return row
        if all(_UNMARKED.match(each) for each in pair) or all(_is_choice(each) for each in pair):
            return row
        first, second = _ITEM.match(row), _ITEM.match(below)
        if first and second and _follows(first[1], second[1]) and (not has_composer or _is_asked(rows, index)):
            return row
    return ""


def _is_option(row: str) -> bool:
    return len(row) < _SHORT and any(pattern.match(row) for pattern in (_ITEM, _UNMARKED, _CHOICE))


def _is_choice(row: str) -> bool:
    """Sentences begin with a yes or a no as well; they end as sentences do."""
    return bool(_CHOICE.match(row)) and len(row) < _SHORT and row[-1] not in ".!,"


def _follows(first: str, second: str) -> bool:
    if first.isdigit() and second.isdigit():
        return int(second) == int(first) + 1
    return not first.isdigit() and not second.isdigit() and ord(second) == ord(first) + 1


def _is_asked(rows: list[str], index: int) -> bool:
    """A list in prose is no menu; one below a question is."""
    return any(row.endswith("?") for row in rows[max(0, index - 2) : index])


def _shorten(row: str) -> str:
    words = " ".join(row.split())
    return f"`{words if len(words) <= _SHORT else words[: _SHORT - 1] + '…'}`"


def asks_for_something_else(row: str) -> bool:
    """`row`: what stands at the cursor."""
    row = row.strip()
    if _SECRET_PROMPT.search(row) or _KEY_PRESS.search(row):
        return True
    if row.endswith("?"):
        return len(row) > _LONGEST_PROMPT or _OPEN_QUESTION.search(row) is None
    if row.endswith("]"):
        label = _LABEL.match(row)
        return label is None or label[1].strip().lower() in _DEFAULT_ANSWERS
    return row.endswith(")")


def looks_like_shell(row: str, *, is_line_read: bool) -> bool:
    """`is_line_read`: the terminal collects lines and a program that is known to be no shell waits for one. Then a bare `$` is a
    prompt like any other; `user@host:~$` and `#` are a shell's in any case."""
    return _SHELL_PROMPT.search(row) is not None and not (is_line_read and _BARE_MARK.match(row) is not None)
