"""Profiles hold what differs between CLIs, as data: `profiles/*.toml`, read and checked into frozen values.

Patterns are regular expressions, searched in one row of the screen unless a field says otherwise. A profile describes
what its recordings under `tests/data/screens/` show; adding a CLI is adding a file and its recordings. Profiles of
people's own have the same format (`profile_files`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property, lru_cache
from importlib import resources

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agent_relay.terminal.profiles.line_numbers import line_of

GENERIC = "generic"
OPTIONS = "options"  # the origin of a profile that options have changed
Patterns = tuple[str, ...]


class ProfileError(Exception):
    """A profile cannot be used; the text names the file, the line and the field."""


class Kind(StrEnum):
    """The author of a row."""

    AGENT = "agent"  # said by the agent
    USER = "user"  # typed or pasted by somebody else
    TOOL = "tool"  # shown by a tool
    STATUS = "status"  # ends a turn
    OTHER = "other"  # banners, rules, notices
    UNKNOWN = "unknown"  # the row that would tell has scrolled off


class CodeInk(StrEnum):
    """Paint of code in this CLI, where that tells it from text."""

    NONE = ""
    FOREGROUND = "foreground"
    BACKGROUND = "background"


class Rows(Struct, frozen=True, forbid_unknown_fields=True):
    """Layout of the conversation. What `agent` and `user` match is taken off the row."""

    agent: Patterns = ()
    user: Patterns = ()
    tool: Patterns = ()
    status: Patterns = ()
    other: Patterns = ()
    volatile: Patterns = ()  # spinners, hints: no part of the conversation, and never remembered
    indent: int = 0  # columns that further rows of a block keep
    right_margin: int = 0  # columns at the right that text never reaches
    edge: str = ""  # the end of a row that is none of its text: a scroll bar, with the space before it
    blank_ends_tool: bool = False  # what a tool shows ends with an empty row; else with the next row that has a pattern
    ends_every_turn: bool = False  # a row of `status` follows every answer, so that one without it is not over
    list_indent: int = 0  # columns put before list items
    default: Kind = Kind.OTHER  # of rows that belong to no block
    code: Patterns = ()  # rows, without their margin, that are code
    code_ink: CodeInk = CodeInk.NONE
    close_lines: tuple[str, ...] = ()  # what a `>>>` on its own line is shown as
    bullets: str = ""  # marks that may stand before a line and are no part of it; one that was typed at a prompt is no bullet
    block_marks: tuple[tuple[str, str], ...] = ()  # what [[RELAY]] and [[/RELAY]] are shown as


class Composer(Struct, frozen=True, forbid_unknown_fields=True):
    """The rows in which the person types. Looked for from the bottom up."""

    row: str  # group `draft`, where there is one, is what has been typed
    above: str = ""  # one of the three rows above matches this; the composer begins there
    body: str = ""  # rows above `row` that belong to it, up to the first that does not match
    has_footer: bool = True  # the last row of the body names model and mode; False: it is typed in as well
    below: str = ""  # every row below matches this
    placeholder: Patterns = ()  # drafts that are hints of the CLI's own
    is_shown_while_busy: bool = True
    must_hold_cursor: bool = False  # the row alone proves nothing: it stays on the screen after it was submitted
    is_at_cursor: bool = False  # it is the row that the cursor stands in, whatever is above or below


class Signs(Struct, frozen=True, forbid_unknown_fields=True):
    """`rows` are looked for among the rows at the bottom, `title` in the terminal's title."""

    rows: Patterns = ()
    title: Patterns = ()


class Dialog(Struct, frozen=True, forbid_unknown_fields=True):
    """One look of a dialog: every pattern of `marks` matches some row, the last of them near the bottom."""

    kind: str  # permission or question
    marks: Patterns
    top: str = ""  # the dialog begins at the nearest such row above the first mark
    border: str = ""  # taken off every row
    option: str = ""  # groups `text`, and maybe `number`, `selected`
    option_row: str = ""  # group 1 holds all options, two or more spaces apart
    option_list: str = ""  # group 1 holds all options, separated by slashes
    question: str = ""  # group 1 or the whole match
    tool: str = ""  # group 1
    subject: str = ""  # group 1: the command or file it is about
    is_subject_long: bool = False  # it goes on in the rows below, up to an empty one
    subject_fence: str = ""  # the first and the last such row enclose it
    is_subject_block: bool = False  # it is the first such row and all below it, up to an empty one, each on a line of its own
    is_last_row: bool = False  # the last mark stands in the last row that is not empty
    approve: Patterns = ()  # the option that allows it this once, and nothing beyond
    deny: Patterns = ()  # the option that refuses it
    typed: str = ""  # letter, word or number of the option, where one is typed; else the selection is moved to it
    is_selected_by_ink: bool = False  # nothing but its colours tells which option is selected
    escape_denies: bool = False  # the option that refuses wants words; Escape refuses without any
    asks_for_reason: bool = False  # it follows a refusal, and Enter leaves its reason out


class Submit(Struct, frozen=True, forbid_unknown_fields=True):
    """Rules for handing text in through the terminal, and what happens when the agent is busy."""

    is_bracketed: bool = True
    pause_ms: int = 300
    key: str = "\r"
    when_busy: str = "wait"  # queue: the CLI keeps it for later; wait: type nothing
    busy_key: str = ""  # the key that queues, where it is another
    interrupt_key: str = ""  # what ends a turn; else Ctrl-C does
    placeholder: str = ""  # what a long paste is shown as
    max_characters: int = 0  # a longer text is shortened; 0: it takes any


class Launch(Struct, frozen=True, forbid_unknown_fields=True):
    flags: tuple[str, ...] = ()
    environment: dict[str, str] = {}


class AcpStart(Struct, frozen=True, forbid_unknown_fields=True):
    """The start of a program such that it speaks the Agent Client Protocol."""

    words: tuple[str, ...] = ()  # put behind the program's name
    adapter: str = ""  # another program that does it for this one; it does not know this one's options
    install: str = ""  # how the adapter is installed


class Transcript(Struct, frozen=True, forbid_unknown_fields=True):
    """The session file the CLI keeps. In `path`: `{project}`, `{folder}` as `project` says, `*` and `**`."""

    shape: str  # claude, codex, copilot, gemini or qwen: which reader understands its records
    home: str  # below the person's home
    home_variable: str = ""  # the environment variable that moves it
    home_below: str = ""  # where it is below the folder that the variable names
    path: str = ""
    project: str = ""  # how the working directory is spelled in it: dashes, name, or nothing
    commands: tuple[str, ...] = ()  # tools that run a command
    reads: tuple[str, ...] = ()  # tools that read a file
    writes: tuple[str, ...] = ()  # tools that write one
    edits: tuple[str, ...] = ()  # tools that change one
    searches: tuple[str, ...] = ()  # tools that look for something
    plans: tuple[str, ...] = ()  # tools that write down a plan
    questions: tuple[str, ...] = ()  # tools that ask the person
    input_includes_cache: bool = False  # the input tokens it reports contain the cached ones


class ScreenPatterns(Struct, frozen=True, forbid_unknown_fields=True):
    """Patterns of what older versions and plain output show; the fallback when nothing better is known."""

    edits: Patterns = ()  # group 1: a file that was changed
    tokens: Patterns = ()  # groups 1 and 2, or `input` and `output`; a `k` multiplies by a thousand


class Profile(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    name: str
    title: str
    composer: Composer
    rows: Rows = Rows()
    executables: tuple[str, ...] = ()
    recorded: str = ""  # the version the recordings were made with
    is_synthetic: bool = False  # its recordings were written by hand
    launch: Launch = Launch()
    busy: Signs = Signs()
    idle: Signs = Signs()
    asking: Signs = Signs()
    dialogs: tuple[Dialog, ...] = ()
    submit: Submit = Submit()
    acp: dict[str, AcpStart] = {}  # by program: those of `generic` have no profile of their own
    doors: tuple[str, ...] = ()  # by name, in the order they are tried; typing comes last, and needs no mention
    transcript: Transcript | None = None
    patterns: ScreenPatterns = ScreenPatterns()
    origin: str = ""  # the file it was read from, or the options it was made of; empty: it is one of ours

    @property
    def is_generic(self) -> bool:
        """Nobody has described the program."""
        return self.name == GENERIC

    @property
    def is_tried(self) -> bool:
        """One of ours, for a program that we have recordings of. For any other only what is safe everywhere is assumed."""
        return not self.is_generic and not self.origin

    @property
    def knows_dialogs(self) -> bool:
        """Else everything counts as one that may be one."""
        return bool(self.dialogs) and not self.is_generic and self.origin != OPTIONS

    @cached_property
    def compiled(self) -> dict[str, re.Pattern[str]]:
        """One expression for each list of row patterns, since every row is held against them."""
        lists = {name: getattr(self.rows, name) for name in ("agent", "user", "tool", "status", "other", "volatile", "code")}
        return {name: any_of(patterns) for name, patterns in lists.items()}


_NEVER = re.compile(r"(?!)")


@lru_cache(maxsize=512)
def any_of(patterns: Patterns) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns)) if patterns else _NEVER


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def parse_profile(source: str, origin: str, *, is_own: bool = False) -> Profile:
    """`is_own`: from a file of somebody's own. Then no expression of it may take long, and the profile says where it is from."""
    try:
        profile = msgspec.toml.decode(source, type=Profile)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProfileError(_explain(str(error), source, origin)) from None
    for path, text in _patterns_of(profile):
        _check_pattern(text, f"{origin}:{line_of(source, path, text)}: {path}", is_own=is_own)
    for path, problem in _problems(profile):
        raise ProfileError(f"{origin}:{line_of(source, path)}: {path}: {problem}")
    return replace(profile, origin=origin) if is_own else profile


def _problems(profile: Profile) -> Iterator[tuple[str, str]]:
    if profile.origin:
        yield "origin", "unknown field"
    for index, dialog in enumerate(profile.dialogs):
        if dialog.kind not in {"permission", "question"}:
            yield f"dialogs[{index}].kind", "must be `permission` or `question`"
        if dialog.typed not in {"", "letter", "word", "number"}:
            yield f"dialogs[{index}].typed", "must be `letter`, `word` or `number`"
        if not dialog.marks:
            yield f"dialogs[{index}].marks", "needs at least one expression"
        if dialog.option and "text" not in re.compile(dialog.option).groupindex and dialog.option != "(?!)":
            yield f"dialogs[{index}].option", "needs a group named `text`: (?P<text>.+)"
    if profile.submit.max_characters < 0:
        yield "submit.max_characters", "must be a number of characters, or 0 for no limit"
    if profile.submit.when_busy not in {"queue", "wait"}:
        yield "submit.when_busy", "must be `queue` or `wait`"


def _explain(error: str, source: str, origin: str) -> str:
    """Explains what msgspec or the TOML reader says, with the line and with what is allowed there."""
    syntax = re.fullmatch(r"(.{1,300}) \(at (?:line (\d+), column \d+|end of document)\)", error)
    if syntax:
        return f"{origin}:{syntax[2] or source.count(chr(10)) + 1}: {syntax[1]}"
    said, _, path = error.partition(" - at `$")
    path = path.rstrip("`").lstrip(".")
    table = re.sub(r"\[(?:\d+|\.\.\.)\]$", "", path)
    if unknown := re.search(r"unknown field `([^`]{1,200})`", said):
        allowed = ", ".join(sorted(set(_FIELDS.get(table, Profile).__struct_fields__) - {"origin"}))
        where = f"{path}.{unknown[1]}".lstrip(".")
        return f"{origin}:{line_of(source, where)}: {where}: unknown field; allowed: {allowed}"
    if missing := re.search(r"missing required field `([^`]{1,200})`", said):
        where = f"{path}.{missing[1]}".lstrip(".")
        return f"{origin}:{line_of(source, path)}: {where} is missing"
    allowed = _ALLOWED.get(table.rpartition(".")[2], "")
    return f"{origin}:{line_of(source, path)}: {path + ': ' if path else ''}{said}{'; allowed: ' + allowed if allowed else ''}"


_FIELDS: Mapping[str, type[Struct]] = {
    "rows": Rows, "composer": Composer, "busy": Signs, "idle": Signs, "asking": Signs, "dialogs": Dialog, "submit": Submit,
    "launch": Launch, "transcript": Transcript, "patterns": ScreenPatterns, "acp": AcpStart,
}  # fmt: skip
_ALLOWED = {"default": ", ".join(Kind), "code_ink": ", ".join(ink for ink in CodeInk if ink)}


@lru_cache(maxsize=1)
def load_profiles() -> dict[str, Profile]:
    folder = resources.files("agent_relay.terminal") / "profiles"
    found: dict[str, Profile] = {}
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            profile = parse_profile(file.read_text("utf-8"), file.name)
            if profile.name != file.name.removesuffix(".toml"):
                raise ProfileError(f"{file.name}: the name is {profile.name!r}, but must match the file")
            found[profile.name] = profile
    return found


def profile_for(command: str, profiles: Mapping[str, Profile] | None = None) -> Profile:
    """The profile of a CLI by its name or the path of its executable; `generic` for one nobody has described. `profiles`: more
    than ours, those that count more first."""
    profiles = load_profiles() if profiles is None else profiles
    name = command.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".exe").removesuffix(".cmd")
    if name in profiles:
        return profiles[name]
    return next((profile for profile in profiles.values() if name in profile.executables), profiles[GENERIC])


_NO_PATTERNS = frozenset({"default", "code_ink", "bullets", "close_lines", "block_marks", "kind", "typed"})


def _patterns_of(profile: Profile) -> Iterator[tuple[str, str]]:
    groups: list[tuple[str, Struct]] = [
        ("rows", profile.rows), ("composer", profile.composer), ("busy", profile.busy), ("idle", profile.idle),
        ("asking", profile.asking), ("patterns", profile.patterns),
        *((f"dialogs[{index}]", dialog) for index, dialog in enumerate(profile.dialogs)),
    ]  # fmt: skip
    for group, struct in groups:
        for field in struct.__struct_fields__:
            value = getattr(struct, field)
            texts = (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ()
            for text in texts if field not in _NO_PATTERNS else ():
                yield f"{group}.{field}", text
    yield "submit.placeholder", profile.submit.placeholder


def check_pattern(text: str, where: str) -> None:
    """Of somebody's own: it is one, it can be joined with others, and no row keeps it busy for long. Raises ProfileError."""
    _check_pattern(text, where, is_own=True)


def _check_pattern(text: str, where: str, *, is_own: bool) -> None:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ProfileError(f"{where}: {text!r} is not a valid regular expression: {error}") from None
    if re.match(r"\(\?[a-zA-Z]+\)", text):
        raise ProfileError(f"{where}: {text!r}: expressions are joined; write flags as (?i:…)")
    if is_own:
        from agent_relay.terminal.profiles.pattern_cost import Costly, check_cost  # noqa: PLC0415 - for files of one's own alone

        try:
            check_cost(text)
        except Costly as error:
            raise ProfileError(f"{where}: {text!r} cannot be used: {error}") from None
