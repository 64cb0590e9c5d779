"""An open dialog on the screen: what it asks, its options, which one is selected, and a digest to know it again by.

Nothing is ever typed into a dialog but its answer. An answer selects an option by its text, after the digest has shown
that the dialog on the screen is still the one that was asked about; so the digest leaves out what moves: the selection.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from agent_relay.terminal.profiles.profile import Dialog, Profile, compile_pattern
from agent_relay.terminal.screen.contents import Line

_LEAVE = r"\b(?:allow|approve|permit|permission|confirm|proceed|run|execute|continue|apply|trust|accept|grant|authori[sz]e)\b"
_YES_NO = r"(?:y(?:es)?/no?|no?/y(?:es)?)(?:/[^\[\]()/]{1,20}){0,5}"
_KEYS = r"[\[(]y[\])] ?(?:es|yes)\b.{0,100}?[\[(]n[\])] ?(?:o|no)\b"
_YES, _NO = ("(?i:^y(?:es)?$)",), ("(?i:^no?$)",)

# Looks that any program may have, after those of its profile: a question in the last row, with its answers in brackets. What
# answers them is what the prompt names: a letter, a word, or text of one's own.
PROMPTS = (
    Dialog(
        kind="permission",
        marks=(rf"(?i:{_LEAVE}.{{0,400}}?(?:[\[(]{_YES_NO}[\])]|\b{_YES_NO}\s*\??))",),
        is_last_row=True,
        option_list=rf"(?i:(\b{_YES_NO}))",
        question=rf"(?i:^(.*?)\s*[\[(]?\b{_YES_NO})",
        typed="word",
        approve=_YES,
        deny=_NO,
    ),
    Dialog(
        kind="permission",
        marks=(rf"(?i:{_KEYS}(?:.{{0,60}}[\[(]\w[\])] ?\w+)?)",),
        is_last_row=True,
        option_list=rf"(?i:({_KEYS}.*))",
        question=r"(?i:^(.*?)\s*[\[(]y[\])])",
        typed="key",
        approve=_YES,
        deny=_NO,
    ),
    Dialog(
        kind="question",
        marks=(r"\?\s*(?:\[[^\[\]]{1,200}\]|\([^()]{1,200}\))",),
        is_last_row=True,
        option_list=r"\?\s*[\[(]([^\[\]()]{1,200})[\])]",
        question=r"^(.*\?)\s*[\[(]",
        typed="word",
    ),
    # Nothing here says how it is answered.
    Dialog(
        kind="permission",
        marks=(r"(?i:\bpermission requested:\s*\S.*|^\W{0,4}(?:allow|approve)\b:?\s+\S.*(?:\?|:))",),
        is_last_row=True,
        option="(?!)",
        question=r"^(.*)$",
    ),
)
_NAMED = re.compile(
    r"(?i:\b(?:allow|approve|permit|permission requested|run|execute|authori[sz]e|confirm)\b(?:\s{0,4}:)?\s{0,4}"
    r"(?:(?:the )?(?:execution of|running|command|tool call|tool)\b(?:\s{0,4}:)?\s{0,4})?)"
)
_QUOTES = "`'\""
_POINTING = re.compile(r"(?i:^(?:this|that|it|these|the (?:following|above)|above)\b)")
NOWHERE = -1  # the position of a dialog that is not known from the screen
MAX_DESCRIBING = 24  # rows above a prompt that are taken for what it is about
MAX_TYPED = 60  # characters behind a prompt; more is a sentence that goes on, and no prompt
_PROMPT_ALONE = re.compile(r"(?:\s*[│┃])?\s*[>❯›$%*]\s*")  # what is left of a row when our own words are taken out
NEAR_BOTTOM = 5  # rows: a dialog is the last thing on the screen, but for a hint or two below it


class OpenDialog(Struct, frozen=True):
    kind: str  # permission or question
    question: str
    text: str  # everything in it, row by row
    options: tuple[str, ...]
    selected: int | None
    digest: str
    top: int  # position of its first row
    tool: str | None = None
    subject: str | None = None  # the command or file it is about
    look: int = 0  # which of `looks_of` its profile it has
    typed: str = ""  # what stands behind it in its last row, where answers are typed
    words: tuple[str, ...] = ()  # what is typed for each option; none: the selection is moved
    takes_text: bool = False  # it can be answered with text of one's own


def find_dialog(profile: Profile, lines: tuple[Line, ...]) -> OpenDialog | None:
    """The dialog among these visible lines, which hold nothing that we typed; the first look that fits wins."""
    shown = [line for line in lines if line.text]
    for index, look in enumerate(looks_of(profile)):
        marked = _find_marks(look, shown)
        if marked is not None:
            return replace(_read(look, shown, _find_top(profile, look, shown, marked)), look=index)
    return None


def _find_marks(look: Dialog, shown: list[Line]) -> int | None:
    """Index of the first mark, when all are there and the last is near the bottom."""
    found: list[int] = []
    for mark in look.marks:
        pattern = compile_pattern(mark)
        at = next((index for index in range(len(shown) - 1, -1, -1) if pattern.search(shown[index].text)), None)
        if at is None:
            return None
        found.append(at)
    distance = 1 if look.is_last_row else NEAR_BOTTOM
    if not found or max(found) < len(shown) - distance:
        return None
    if look in PROMPTS and len(_read_typed(look, shown[-1].text)) > (MAX_TYPED if look.kind == "question" else MAX_TYPED // 4):
        return None
    return min(found)


def _read(look: Dialog, shown: list[Line], start: int) -> OpenDialog:
    border = compile_pattern(look.border) if look.border else None
    rows = [border.sub("", line.text).rstrip() if border else line.text for line in shown[start:]]
    at = _find_options(look, rows)
    options, selected = _read_options(look, [rows[index] for index in at])
    if look.is_selected_by_ink:
        selected = _find_inked(look, options, [shown[start + index] for index in at])
    # Of a prompt in the last row the last question is meant: what stands above it may hold others.
    question = (_last if look.is_last_row else _first)(look.question, rows) or next(
        (row.strip() for row in rows if row.strip()), ""
    )
    text = "\n".join(row.strip() for row in rows if row.strip())
    body = [row for index, row in enumerate(rows) if row.strip() and question not in row and index not in at]
    subject = _last(look.subject, body)
    if look.subject_fence:
        subject = _fenced(look.subject_fence, rows)
    elif look.is_subject_block:
        subject = _block(look.subject, rows, shown[start:], at)
    elif subject and look.is_subject_long:
        subject = " ".join([subject, *_rows_below(subject, shown[start:], at)])
    if look in PROMPTS and look.kind == "permission":
        subject = subject_of(question, [row.strip() for row in rows[:-1]])
    words = _words_of(look, options, rows)
    return OpenDialog(
        kind=look.kind,
        question=question,
        text=text,
        options=options,
        selected=selected,
        digest=digest_of(look.kind, question, _lasting(look, rows, at, body), (*options, subject or "")),
        top=shown[start].position,
        tool=_first(look.tool, body),
        subject=subject,
        typed=_read_typed(look, shown[-1].text) if look.typed else "",
        words=words,
        takes_text=look in PROMPTS and look.kind == "question" and not options,
    )


def _lasting(look: Dialog, rows: list[str], at: list[int], body: list[str]) -> list[str]:
    """Rows that describe it and do not move: not the rows of the options, which the selection changes, nor hints below them."""
    if not look.is_last_row:
        return [row for index, row in enumerate(rows) if index not in at and index < max(at, default=len(rows))]
    prompt = rows[-1][: _end_of_prompt(look, rows[-1])]
    if look.subject:  # what else stands above it may be a complaint about an answer
        return [*(row for row in body if compile_pattern(look.subject).search(row)), prompt]
    return [*(row for index, row in enumerate(rows[:-1]) if index not in at), prompt]


def _words_of(look: Dialog, options: tuple[str, ...], rows: list[str]) -> tuple[str, ...]:
    match look.typed:
        case "letter":
            return tuple(option[0].lower() for option in options)
        case "number":
            return tuple(str(number) for number in range(1, len(options) + 1))
        case "word" | "key":
            return split_options(_last(look.option_list, rows) or "")[1] or options
        case _:
            return ()


def _end_of_prompt(look: Dialog, row: str) -> int:
    match = compile_pattern(look.marks[-1]).search(row)
    return match.end() if match else len(row)


def _rows_below(subject: str, shown: list[Line], options: list[int]) -> list[str]:
    """The rows in which it goes on: those right below its first one, up to an empty row or an option."""
    first = max((index for index, line in enumerate(shown) if line.text.rstrip().endswith(subject)), default=len(shown))
    found: list[str] = []
    for index in range(first + 1, len(shown)):
        if index in options or shown[index].position != shown[index - 1].position + 1:
            break
        found.append(shown[index].text.strip())
    return found


def _block(pattern: str, rows: list[str], shown: list[Line], options: list[int]) -> str | None:
    """The first row of the subject, and those right below it, each on a line of its own."""
    expression = compile_pattern(pattern)
    first = next((index for index, row in enumerate(rows) if index not in options and expression.search(row)), None)
    if first is None:
        return None
    last = first
    while last + 1 < len(rows) and last + 1 not in options and shown[last + 1].position == shown[last].position + 1:
        last += 1
    return "\n".join(row.strip() for row in rows[first : last + 1])


def _fenced(pattern: str, rows: list[str]) -> str | None:
    """All rows between the first fence and the last, whatever they hold."""
    fences = [index for index, row in enumerate(rows) if compile_pattern(pattern).search(row)]
    enclosed = rows[fences[0] + 1 : fences[-1]] if fences else []
    return textwrap.dedent("\n".join(enclosed)).strip() or None


def _find_top(profile: Profile, look: Dialog, shown: list[Line], marked: int) -> int:
    if look.top:
        pattern = compile_pattern(look.top)
        for index in range(marked, -1, -1):
            if pattern.search(shown[index].text):
                return index
        return marked
    if look.is_last_row:
        # What it is about stands in the rows right above it, as far as nobody else's words do.
        theirs = profile.compiled["user"]
        while marked > 0 and shown[marked - 1].position == shown[marked].position - 1 and len(shown) - marked < MAX_DESCRIBING:
            if theirs.search(shown[marked - 1].text) or _PROMPT_ALONE.fullmatch(shown[marked - 1].text):
                break
            marked -= 1
        return marked
    return _paragraphs_up(shown, marked)


def _paragraphs_up(shown: list[Line], marked: int) -> int:
    """A dialog without a frame: its rows are indented and its head is no bullet."""
    while marked > 0 and shown[marked - 1].text.startswith(" ") and shown[marked].position - shown[marked - 1].position <= 2:
        marked -= 1
    return marked


def _find_options(look: Dialog, rows: list[str]) -> list[int]:
    """The rows with options. What is asked about may hold a list too: of several that count from 1, the last is meant."""
    pattern = compile_pattern(look.option or look.option_row or look.option_list)
    found: list[int] = []
    for index, row in enumerate(rows):
        match = pattern.search(row)
        if match and look.option and match.groupdict().get("number") == "1":
            found.clear()
        if match:
            found.append(index)
    return found if look.option else found[-1:]


def _read_options(look: Dialog, rows: list[str]) -> tuple[tuple[str, ...], int | None]:
    if look.option_row or look.option_list:
        row = _last(look.option_row or look.option_list, rows) or ""
        if look in PROMPTS:
            return split_options(row)[0], None
        parts = re.split(r"\s{2,}", row.strip()) if look.option_row else re.sub(r"\((\w+)\)", r"\1", row).split("/")
        return tuple(part.strip() for part in parts if part.strip()), None
    options: list[str] = []
    selected: int | None = None
    for row in rows:
        match = compile_pattern(look.option).search(row)
        if match:
            if match.groupdict().get("selected"):
                selected = len(options)
            options.append(match["text"].strip())
    return tuple(options), selected


def _find_inked(look: Dialog, options: tuple[str, ...], shown: list[Line]) -> int | None:
    """The one option that is painted differently from all the others, which are painted alike. `shown`: rows with options."""
    lines = shown[-1:] * len(options) if look.option_row else shown
    inks = [line.ink_at(line.text.find(option)) for option, line in zip(options, lines, strict=True) if line.ink_at is not None]
    odd = [index for index, ink in enumerate(inks) if inks.count(ink) == 1]
    # Of two that differ nobody can say which one is meant.
    return odd[0] if len(inks) > 2 and len(odd) == 1 and len(set(inks)) == 2 else None


def _read_typed(look: Dialog, row: str) -> str:
    return row[_end_of_prompt(look, row) :].strip(" :>?")


def digest_of(kind: str, question: str, rows: list[str], options: tuple[str, ...]) -> str:
    """The same for the same dialog, wherever its selection stands and however wide the terminal is."""
    words = " ".join(re.sub(r"[❯›●○>─╌]", " ", " ".join(rows)).split())
    content = "\0".join((kind, question, words, *options))
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:16]


def _first(pattern: str, rows: list[str]) -> str | None:
    return next(_matches(pattern, rows), None) if pattern else None


def _last(pattern: str, rows: list[str]) -> str | None:
    return next(_matches(pattern, list(reversed(rows))), None) if pattern else None


def _matches(pattern: str, rows: list[str]) -> Iterator[str]:
    expression = compile_pattern(pattern)
    return iter([(match[1] if match.groups() else match[0]).strip() for row in rows if (match := expression.search(row))])


def looks_of(profile: Profile) -> tuple[Dialog, ...]:
    """Those of its profile, then those that any program may have."""
    return (*profile.dialogs, *PROMPTS)


def subject_of(question: str, above: list[str]) -> str | None:
    """The subject of a prompt: what it names itself, or what stands right above it."""
    match = _NAMED.search(question)
    named = question[match.end() :].strip().removesuffix("?").strip() if match else ""
    named = named.removeprefix(named[:1] if named[:1] in _QUOTES else "").rstrip(_QUOTES).strip()
    if named and not _POINTING.match(named):
        return named
    return "\n".join(above) or None


def split_options(listed: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The options of a bracket, and what is typed for each: `y/n`, `red|blue`, `a, b or c`, `[y] yes [n] no`."""
    keyed = re.findall(r"[\[(](\w)[\])] ?(\w[\w' -]{0,40}?)(?=\s*(?:[,/|·;.:?]|\s{2}|[\[(]|$))", listed)
    if len(keyed) > 1:
        return tuple(_word(key, rest) for key, rest in keyed), tuple(key.lower() for key, _ in keyed)
    separator = next((mark for mark in ("/", "|", ",") if mark in listed), None)
    parts = re.split(r"[,/|]|\bor\b" if separator == "," else re.escape(separator), listed) if separator else [listed]
    options = tuple(part.strip() for part in parts if part.strip())
    return (options, tuple(_as_typed(option) for option in options)) if len(options) > 1 else ((), ())


def _word(key: str, rest: str) -> str:
    """`(y)es` as `yes`, `[y] yes` as `yes`."""
    return rest.strip() if rest.lower().startswith(key.lower()) else f"{key}{rest}".strip()


def _as_typed(option: str) -> str:
    """A capital letter says what is taken for no answer; the letter itself is a small one."""
    return option.lower() if option.lower() in {"y", "n", "yes", "no"} or len(option) == 1 else option
