"""Who decides on a permission: the rules, in order, and a person wherever no rule is sure.

Rules see a request's tool, command and file, and nothing of what they see is run, expanded or looked up. The first rule
that fits decides. A rule that approves fits only what is beyond doubt: a command of plain words, a path that means what
it says, both whole and in the CLI's own words. Rules for a person, or against, fit wherever what they name is found. So
whatever is quoted, chained, disguised or unknown ends with a person.

The defaults take "exactly" at its word: `ls` is approved, `ls -la` is not. Flags are where these commands write files and
run programs (`git log --output=…`, `git diff --ext-diff`), and a list of harmless ones would be wrong one day.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase

from msgspec import Struct

from agent_relay.core.risk import DESTRUCTIVE_WORDS, Risk, assess, straighten
from agent_relay.core.shell_text import MAX_SURE_CHARACTERS, has_word, is_plain, parts
from agent_relay.core.tool_names import BASH, GLOB, GREP, POWERSHELL, READ, kind_of


class Decision(StrEnum):
    APPROVE = "approve"
    HUMAN = "human"
    DENY = "deny"


class Verdict(Struct, frozen=True):
    decision: Decision
    risk: Risk
    reason: str = ""


class Rule(Struct, frozen=True):
    """Fits where every condition does that it has; a condition fits where one of its patterns does.

    Patterns are the shell's: `*`, `?`, `[…]`, over the whole text. `tools` are kinds or names as the CLI has them, `words`
    stand anywhere in a command.
    """

    decision: Decision
    tools: tuple[str, ...] = ("*",)
    commands: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    risk: Risk | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.decision is Decision.APPROVE and self.words:
            raise ValueError("a rule that approves cannot go by words: the rest of the command would be approved with them")

    def fits(self, tool: str, command: str, file_path: str) -> bool:
        is_sure = self.decision is Decision.APPROVE
        return (
            any(fnmatchcase(name, pattern) for name in (kind_of(tool), tool) for pattern in self.tools)
            and (not self.commands or _fits_command(command, self.commands, is_sure=is_sure))
            and (not self.words or has_word(command, self.words))
            and (not self.files or _fits_file(file_path, self.files, is_sure=is_sure))
        )


def _fits_command(command: str, patterns: Sequence[str], *, is_sure: bool) -> bool:
    if is_sure:
        return is_plain(command) and any(fnmatchcase(command, pattern) for pattern in patterns)
    found = list(parts(command))
    return any(fnmatchcase(part, pattern.casefold()) for part in found for pattern in patterns)


def _fits_file(path: str, patterns: Sequence[str], *, is_sure: bool) -> bool:
    if is_sure:
        return _is_one_file(path) and any(fnmatchcase(path, pattern) for pattern in patterns)
    return any(fnmatchcase(spelling, pattern) for spelling in (path, straighten(path)) for pattern in patterns)


def _is_one_file(path: str) -> bool:
    """No list of files, no way up, no home that a shell would fill in, nothing that cannot be seen."""
    is_said_plainly = path.isprintable() and not path.startswith("~") and "," not in path and len(path) <= MAX_SURE_CHARACTERS
    return is_said_plainly and straighten(path) == path and ".." not in path.split("/")


DEFAULT_RULES: tuple[Rule, ...] = (
    Rule(Decision.APPROVE, tools=(READ, GLOB, GREP), risk=Risk.LOW, reason="It only looks at files."),
    Rule(
        Decision.APPROVE, tools=(BASH,), commands=("ls", "pwd", "git status", "git log", "git diff"), risk=Risk.LOW,
        reason="The command only shows something.",
    ),
    Rule(
        Decision.HUMAN, tools=(BASH, POWERSHELL), words=DESTRUCTIVE_WORDS, risk=Risk.CRITICAL,
        reason="The command can destroy something.",
    ),
)  # fmt: skip

_FROM_A_SCREEN = "It was read off a screen, which may not show the whole of it."
_WORDS = {
    Decision.APPROVE: "A rule approves it.",
    Decision.HUMAN: "A rule asks for a person.",
    Decision.DENY: "A rule denies it.",
}


_STRICTNESS = tuple(Decision)
_RISKS = tuple(Risk)


class Policy:
    """`rules` go before the defaults. After `timeout_ms` a request that nobody decided on is denied. `tightening` are rules of
    somebody who may not decide, such as a project's file: they count where they are stricter."""

    def __init__(self, rules: Sequence[Rule] = (), timeout_ms: int | None = None, tightening: Sequence[Rule] = ()) -> None:
        self.rules = (*rules, *DEFAULT_RULES)
        self.timeout_ms = timeout_ms
        self.tightening = tuple(tightening)

    def judge(self, tool: str, command: str | None, file_path: str | None, *, is_exact: bool) -> Verdict:
        """`is_exact`: these are the CLI's own words, whole; nothing that was read off a screen is approved by a rule."""
        verdict = self._decide(tool, command, file_path, is_exact=is_exact)
        for rule in self.tightening:
            if rule.fits(tool, command or "", file_path or ""):
                return _stricter(verdict, rule)
        return verdict

    def _decide(self, tool: str, command: str | None, file_path: str | None, *, is_exact: bool) -> Verdict:
        risk = assess(kind_of(tool), command, file_path)
        for rule in self.rules:
            if rule.fits(tool, command or "", file_path or ""):
                if rule.decision is Decision.APPROVE and not is_exact:
                    return Verdict(Decision.HUMAN, risk, _FROM_A_SCREEN)
                return Verdict(rule.decision, rule.risk or risk, rule.reason or _WORDS[rule.decision])
        return Verdict(Decision.HUMAN, risk, "No rule is about it.")


def _stricter(verdict: Verdict, rule: Rule) -> Verdict:
    risk = max(verdict.risk, rule.risk or verdict.risk, key=_RISKS.index)
    if _STRICTNESS.index(rule.decision) > _STRICTNESS.index(verdict.decision):
        return Verdict(rule.decision, risk, rule.reason or _WORDS[rule.decision])
    return Verdict(verdict.decision, risk, verdict.reason)
