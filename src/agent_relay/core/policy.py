"""The decision on a permission: the rules, in order, and a person wherever no rule is sure.

Rules see a request's tool, command and file, where that file really is (whoever runs the agent has followed its links), and
the words of a dialog that was only seen on a screen. Nothing of it is run, expanded or looked up here. The first rule that
fits decides. A rule that approves fits only what is beyond doubt: a command of plain words, a path that means what
it says, both whole and in the CLI's own words. Rules for a person, or against, fit wherever what they name is found. So
whatever is quoted, chained, disguised or unknown ends with a person.

The defaults take "exactly" at its word: `ls` is approved, `ls -la` is not. Flags are where these commands write files and
run programs, and a list of harmless ones would be wrong one day. `git` is not among them at all: a repository's configuration
makes even `git status` run programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase

from msgspec import Struct

from agent_relay.core.risk import (
    DESTRUCTIVE_WORDS,
    MAX_SURE_CHARACTERS,
    Risk,
    assess,
    has_word,
    holds_secret,
    is_plain,
    parts,
    straighten,
)
from agent_relay.protocol.requests import PermissionRequest
from agent_relay.protocol.tool_names import BASH, GLOB, GREP, POWERSHELL, READ, kind_of


class Ruling(StrEnum):
    """The word of a rule; that of a person is a decision."""

    APPROVE = "approve"
    HUMAN = "human"
    DENY = "deny"


class Verdict(Struct, frozen=True):
    decision: Ruling
    risk: Risk
    reason: str = ""


class Rule(Struct, frozen=True):
    """Fits where every condition does that it has; a condition fits where one of its patterns does.

    Patterns are the shell's: `*`, `?`, `[…]`, over the whole text. `tools` are kinds or names as the CLI has them, `words`
    stand anywhere in a command. `in_project`: a file of the agent's project that is not private.
    """

    decision: Ruling
    tools: tuple[str, ...] = ("*",)
    commands: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    in_project: bool = False
    risk: Risk | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.decision is Ruling.APPROVE and self.words:
            raise ValueError("a rule that approves cannot match words: it would also approve the rest of the command")

    def fits(self, asked: PermissionRequest) -> bool:
        is_sure = self.decision is Ruling.APPROVE
        return (
            self._fits_tool(asked)
            and (not self.commands or _fits_command(asked, self.commands, is_sure=is_sure))
            and (not self.words or has_word(_words_of(asked), self.words))
            and (not self.files or _fits_file(asked, self.files, is_sure=is_sure))
            and (not self.in_project or _is_in_project(asked))
        )

    def _fits_tool(self, asked: PermissionRequest) -> bool:
        """A screen need not tell the tool: then what a rule fears is looked for whatever its tools are."""
        if not asked.tool and not asked.is_exact and (self.words or self.commands):
            return True
        return any(fnmatchcase(name, pattern) for name in (kind_of(asked.tool), asked.tool) for pattern in self.tools)


def _fits_command(asked: PermissionRequest, patterns: Sequence[str], *, is_sure: bool) -> bool:
    if is_sure:
        command = asked.command or ""
        return is_plain(command) and any(fnmatchcase(command, pattern) for pattern in patterns)
    found = list(parts(_words_of(asked)))
    return any(fnmatchcase(part, pattern.casefold()) for part in found for pattern in patterns)


def _fits_file(asked: PermissionRequest, patterns: Sequence[str], *, is_sure: bool) -> bool:
    real = [path for path in (asked.real_path, _place_in_project(asked)) if path]
    if is_sure:
        return (
            bool(real) and all(map(_is_plain_path, real)) and any(fnmatchcase(path, each) for path in real for each in patterns)
        )
    told = asked.file_path or ""
    return any(fnmatchcase(path, pattern) for path in (told, straighten(told), *real) for pattern in patterns)


def _text_of(asked: PermissionRequest) -> str:
    """All that a dialog shows, where a screen is all there is."""
    return "" if asked.is_exact else "\n".join((asked.description, *asked.options))


def _words_of(asked: PermissionRequest) -> str:
    command = asked.command or ""
    return command if asked.is_exact else f"{command}\n{_text_of(asked)}"


def _place_in_project(asked: PermissionRequest) -> str | None:
    """The real path as seen from the project; None outside of it."""
    root, real = (asked.project_root or "").rstrip("/"), asked.real_path
    if not root.startswith("/") or real is None or not real.startswith(f"{root}/"):
        return "." if root and real == root else None
    return real[len(root) + 1 :]


def _is_in_project(asked: PermissionRequest) -> bool:
    """Inside, and neither its name nor the real one is that of something private."""
    place = _place_in_project(asked)
    told = (asked.file_path or "").removeprefix(asked.project_root or "")
    named = (place or "", told, asked.command or "")  # a command here is a pattern of files
    return place is not None and _is_plain_path(place) and not any(map(holds_secret, named))


def _is_plain_path(path: str) -> bool:
    """No list of files, no way up, no home that a shell would fill in, nothing that cannot be seen."""
    is_said_plainly = path.isprintable() and not path.startswith("~") and "," not in path and len(path) <= MAX_SURE_CHARACTERS
    return is_said_plainly and straighten(path) == path and ".." not in path.split("/")


DEFAULT_RULES: tuple[Rule, ...] = (
    Rule(
        Ruling.APPROVE, tools=(READ, GLOB, GREP), in_project=True, risk=Risk.LOW, reason="It only looks at its project.",
    ),
    Rule(
        Ruling.APPROVE, tools=(BASH,), commands=("ls", "pwd"), risk=Risk.LOW, reason="The command only shows something.",
    ),
    Rule(
        Ruling.HUMAN, tools=(BASH, POWERSHELL), words=DESTRUCTIVE_WORDS, risk=Risk.CRITICAL,
        reason="The command can destroy something.",
    ),
)  # fmt: skip

_FROM_A_SCREEN = "It was read off a screen, which may not show all of it."
_WORDS = {
    Ruling.APPROVE: "A rule approves it.",
    Ruling.HUMAN: "A rule requires a person.",
    Ruling.DENY: "A rule denies it.",
}


_STRICTNESS = tuple(Ruling)
_RISKS = tuple(Risk)


class Policy:
    """`rules` go before the defaults. After `timeout_ms` a request that nobody decided on is denied. `tightening` are rules of
    somebody who may not decide, such as a project's file: they count where they are stricter."""

    def __init__(self, rules: Sequence[Rule] = (), timeout_ms: int | None = None, tightening: Sequence[Rule] = ()) -> None:
        self.rules = (*rules, *DEFAULT_RULES)
        self.timeout_ms = timeout_ms
        self.tightening = tuple(tightening)

    def add(self, rule: Rule) -> None:
        """After the owner's own and before the defaults, as if it had stood at the end of their file."""
        own = len(self.rules) - len(DEFAULT_RULES)
        self.rules = (*self.rules[:own], rule, *DEFAULT_RULES)

    def with_rule(self, rule: Rule) -> Policy:
        """A copy that has it as well."""
        copy = Policy(self.rules[: len(self.rules) - len(DEFAULT_RULES)], self.timeout_ms, self.tightening)
        copy.add(rule)
        return copy

    def judge(self, asked: PermissionRequest) -> Verdict:
        """Nothing that was read off a screen is approved by a rule."""
        verdict = self._decide(asked)
        for rule in self.tightening:
            if rule.fits(asked):
                return _stricter(verdict, rule)
        return verdict

    def _decide(self, asked: PermissionRequest) -> Verdict:
        risk = assess(kind_of(asked.tool), asked.command, asked.file_path, _text_of(asked))
        for rule in self.rules:
            if rule.fits(asked):
                if rule.decision is Ruling.APPROVE and not asked.is_exact:
                    return Verdict(Ruling.HUMAN, risk, _FROM_A_SCREEN)
                return Verdict(rule.decision, rule.risk or risk, rule.reason or _WORDS[rule.decision])
        return Verdict(Ruling.HUMAN, risk, "No rule applies.")


def _stricter(verdict: Verdict, rule: Rule) -> Verdict:
    risk = max(verdict.risk, rule.risk or verdict.risk, key=_RISKS.index)
    if _STRICTNESS.index(rule.decision) > _STRICTNESS.index(verdict.decision):
        return Verdict(rule.decision, risk, rule.reason or _WORDS[rule.decision])
    return Verdict(verdict.decision, risk, verdict.reason)
