"""Profiles of somebody's own: with something added by the options of `wrap` or by files in a project, and written as a file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from msgspec.structs import replace

from agent_relay.terminal.profiles.profile import OPTIONS, Composer, Dialog, Profile, ProfileError, Signs, check_pattern

_BULLETS = "●⏺◆◇○□■⁃→➜›»"
_DRAFT_GROUP = re.compile(r"\(\?:\\s\(\?P<draft>.{0,20}$")
CUSTOM = "custom"  # the name of a program that only options describe
_OPEN_END = re.compile(r"(?:(?<!\\)(?:\$| |\\s[*+?]?)){1,8}$")
_DRAFT = "(?P<draft>"


def customise(profile: Profile, prompts: Sequence[str], busy: Sequence[str], dialogs: Sequence[str]) -> Profile:
    """Adds what options say to the profile; a prompt takes the place of its composer. Raises ProfileError."""
    for flag, patterns in (("--prompt", prompts), ("--busy", busy), ("--dialog", dialogs)):
        for pattern in patterns:
            check_pattern(pattern, flag)
    if len(prompts) > 1 and any(_DRAFT in pattern for pattern in prompts):
        raise ProfileError("--prompt: a group `draft` works only in a profile, or with a single --prompt")
    if busy or dialogs:
        looks = tuple(Dialog(kind="permission", marks=(pattern,), option="(?!)") for pattern in dialogs)
        signs = replace(profile.busy, rows=(*profile.busy.rows, *busy))
        profile = replace(profile, busy=signs, dialogs=(*profile.dialogs, *looks))
    if prompts:
        name = CUSTOM if profile.is_generic else profile.name
        composer = Composer(row=prompt_row(prompts), is_shown_while_busy=False, is_at_cursor=True)
        profile = replace(profile, name=name, origin=profile.origin or OPTIONS, composer=composer)
    return profile


def prompt_row(prompts: Sequence[str]) -> str:
    """Expressions for prompts → one for the row, with what is typed behind it. Rows come without the spaces at their end, so
    spaces at the end of an expression are no part of it."""
    if len(prompts) == 1 and _DRAFT in prompts[0]:
        return prompts[0]
    heads = (_OPEN_END.sub("", pattern) for pattern in prompts)
    return f"(?:{'|'.join(heads)})(?P<draft>.*)$"


def tighten(profile: Profile, busy: Signs, asking: Signs) -> Profile:
    """More screens count as busy or as a dialog, and none as idle that did not before."""
    return replace(
        profile,
        busy=Signs((*profile.busy.rows, *busy.rows), (*profile.busy.title, *busy.title)),
        asking=Signs((*profile.asking.rows, *asking.rows), (*profile.asking.title, *asking.title)),
    )


def write_profile(name: str, program: str, prompt: str, busy: Sequence[str], dialogs: Sequence[str] = ()) -> str:
    """`prompt`: an expression for the row."""
    typed = _DRAFT_GROUP.sub("", prompt)
    user = [f"{typed} (?=\\S)"] if typed != prompt else []
    lines = [
        f"# Made by `agent-relay profile new`. Change what is wrong, then: agent-relay profile test {name}",
        f"name = {_text(name)}",
        f"title = {_text(name)}",
        f"executables = {_texts([program] if program else [])}",
        "",
        "[rows]",
        f"user = {_texts(user)}",
        'default = "agent"',
        f"bullets = {_text(_BULLETS)}",
        "",
        "[composer]",
        f"row = {_text(prompt)}",
        "is_shown_while_busy = false",
        "is_at_cursor = true",
        "",
        "[busy]",
        f"rows = {_texts(busy)}",
        "",
        "# Rows that show while a dialog is open: nothing is typed then.",
        "[asking]",
        f"rows = {_texts(dialogs)}",
        "",
        "[submit]",
        'when_busy = "wait"',
    ]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """A text of TOML; JSON spells it the same way."""
    return json.dumps(value, ensure_ascii=False)


def _texts(values: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"
