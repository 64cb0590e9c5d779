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

from agent_relay.core.risk import DESTRUCTIVE_WORDS, Risk, assess, holds_secret, straighten
from agent_relay.core.shell_text import MAX_SURE_CHARACTERS, has_word, is_plain, parts
from agent_relay.protocol.tool_names import BASH, GLOB, GREP, POWERSHELL, READ, kind_of


class Decision(StrEnum):
    APPROVE = "approve"
    HUMAN = "human"
    DENY = "deny"


class Verdict(Struct, frozen=True):
    decision: Decision
    risk: Risk
    reason: str = ""


class Deed(Struct, frozen=True):
    """An action that an agent asks to take.

    `real_path`: its file, links followed; None where that is not sure. `root`: the agent's project,
    as such a path. `text`: all that a dialog shows, where a screen is all there is (`is_exact` is False)."""

    tool: str
    command: str = ""
    file_path: str = ""
    real_path: str | None = None
    root: str | None = None
    text: str = ""
    is_exact: bool = True

    @property
    def words(self) -> str:
        return self.command if self.is_exact else f"{self.command}\n{self.text}"

    @property
    def place_in_project(self) -> str | None:
        """The real path as seen from the project; None outside of it."""
        root = (self.root or "").rstrip("/")
        if not root.startswith("/") or self.real_path is None or not self.real_path.startswith(f"{root}/"):
            return "." if root and self.real_path == root else None
        return self.real_path[len(root) + 1 :]

    @property
    def is_in_project(self) -> bool:
        """Inside, and neither its name nor the real one is that of something private."""
        place = self.place_in_project
        named = (place or "", self.file_path.removeprefix(self.root or ""), self.command)  # a command here is a pattern of files
        return place is not None and _is_plain_path(place) and not any(map(holds_secret, named))


class Rule(Struct, frozen=True):
    """Fits where every condition does that it has; a condition fits where one of its patterns does.

    Patterns are the shell's: `*`, `?`, `[…]`, over the whole text. `tools` are kinds or names as the CLI has them, `words`
    stand anywhere in a command. `in_project`: a file of the agent's project that is not private.
    """

    decision: Decision
    tools: tuple[str, ...] = ("*",)
    commands: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    in_project: bool = False
    risk: Risk | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if self.decision is Decision.APPROVE and self.words:
            raise ValueError("a rule that approves cannot match words: it would also approve the rest of the command")

    def fits(self, deed: Deed) -> bool:
        is_sure = self.decision is Decision.APPROVE
        return (
            self._fits_tool(deed)
            and (not self.commands or _fits_command(deed, self.commands, is_sure=is_sure))
            and (not self.words or has_word(deed.words, self.words))
            and (not self.files or _fits_file(deed, self.files, is_sure=is_sure))
            and (not self.in_project or deed.is_in_project)
        )

    def _fits_tool(self, deed: Deed) -> bool:
        """A screen need not tell the tool: then what a rule fears is looked for whatever its tools are."""
        if not deed.tool and not deed.is_exact and (self.words or self.commands):
            return True
        return any(fnmatchcase(name, pattern) for name in (kind_of(deed.tool), deed.tool) for pattern in self.tools)


def _fits_command(deed: Deed, patterns: Sequence[str], *, is_sure: bool) -> bool:
    if is_sure:
        return is_plain(deed.command) and any(fnmatchcase(deed.command, pattern) for pattern in patterns)
    found = list(parts(deed.words))
    return any(fnmatchcase(part, pattern.casefold()) for part in found for pattern in patterns)


def _fits_file(deed: Deed, patterns: Sequence[str], *, is_sure: bool) -> bool:
    real = [path for path in (deed.real_path, deed.place_in_project) if path]
    if is_sure:
        return (
            bool(real) and all(map(_is_plain_path, real)) and any(fnmatchcase(path, each) for path in real for each in patterns)
        )
    spellings = [deed.file_path, straighten(deed.file_path), *real]
    return any(fnmatchcase(path, pattern) for path in spellings for pattern in patterns)


def _is_plain_path(path: str) -> bool:
    """No list of files, no way up, no home that a shell would fill in, nothing that cannot be seen."""
    is_said_plainly = path.isprintable() and not path.startswith("~") and "," not in path and len(path) <= MAX_SURE_CHARACTERS
    return is_said_plainly and straighten(path) == path and ".." not in path.split("/")


DEFAULT_RULES: tuple[Rule, ...] = (
    Rule(
        Decision.APPROVE, tools=(READ, GLOB, GREP), in_project=True, risk=Risk.LOW, reason="It only looks at its project.",
    ),
    Rule(
        Decision.APPROVE, tools=(BASH,), commands=("ls", "pwd"), risk=Risk.LOW, reason="The command only shows something.",
    ),
    Rule(
        Decision.HUMAN, tools=(BASH, POWERSHELL), words=DESTRUCTIVE_WORDS, risk=Risk.CRITICAL,
        reason="The command can destroy something.",
    ),
)  # fmt: skip

_FROM_A_SCREEN = "It was read off a screen, which may not show all of it."
_WORDS = {
    Decision.APPROVE: "A rule approves it.",
    Decision.HUMAN: "A rule requires a person.",
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

    def judge(self, deed: Deed) -> Verdict:
        """Nothing that was read off a screen is approved by a rule."""
        verdict = self._decide(deed)
        for rule in self.tightening:
            if rule.fits(deed):
                return _stricter(verdict, rule)
        return verdict

    def _decide(self, deed: Deed) -> Verdict:
        risk = assess(kind_of(deed.tool), deed.command, deed.file_path, "" if deed.is_exact else deed.text)
        for rule in self.rules:
            if rule.fits(deed):
                if rule.decision is Decision.APPROVE and not deed.is_exact:
                    return Verdict(Decision.HUMAN, risk, _FROM_A_SCREEN)
                return Verdict(rule.decision, rule.risk or risk, rule.reason or _WORDS[rule.decision])
        return Verdict(Decision.HUMAN, risk, "No rule applies.")


def _stricter(verdict: Verdict, rule: Rule) -> Verdict:
    risk = max(verdict.risk, rule.risk or verdict.risk, key=_RISKS.index)
    if _STRICTNESS.index(rule.decision) > _STRICTNESS.index(verdict.decision):
        return Verdict(rule.decision, risk, rule.reason or _WORDS[rule.decision])
    return Verdict(verdict.decision, risk, verdict.reason)
