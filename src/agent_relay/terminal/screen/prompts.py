"""Looks that any program may have, whatever its profile says: a question in the last row, with its answers in brackets.

They come after a profile's own looks. What answers them is what the prompt names: a letter, a word, or text of one's own.
"""

from __future__ import annotations

import re

from agent_relay.terminal.profiles.profile import Dialog, Profile

_LEAVE = r"\b(?:allow|approve|permit|permission|confirm|proceed|run|execute|continue|apply|trust|accept|grant|authori[sz]e)\b"
_YES_NO = r"(?:y(?:es)?/no?|no?/y(?:es)?)(?:/[^\[\]()/]{1,20}){0,5}"
_KEYS = r"[\[(]y[\])] ?(?:es|yes)\b.{0,100}?[\[(]n[\])] ?(?:o|no)\b"
_YES, _NO = ("(?i:^y(?:es)?$)",), ("(?i:^no?$)",)

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


def looks_of(profile: Profile) -> tuple[Dialog, ...]:
    """Those of its profile, then those that any program may have."""
    return (*profile.dialogs, *PROMPTS)


def subject_of(question: str, above: list[str]) -> str | None:
    """What a prompt is about: what it names itself, or what stands right above it."""
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
