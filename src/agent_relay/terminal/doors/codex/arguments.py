"""What the user started Codex with, as far as it decides which doors there can be."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

_WITH_VALUE = {
    "-c": "--config", "-m": "--model", "-s": "--sandbox", "-a": "--ask-for-approval", "-i": "--image", "-p": "--profile",
    "-C": "--cd",
}  # fmt: skip
_VALUED = frozenset({
    *_WITH_VALUE.values(), "--enable", "--disable", "--add-dir", "--local-provider", "--remote", "--remote-auth-token-env",
})  # fmt: skip
_SETTINGS = frozenset({"--config", "--enable", "--disable"})
_PERMISSIONS = frozenset({"--sandbox", "--ask-for-approval", "--approve-for-me"})
_RESUMING = frozenset({"resume", "fork"})
# Those that were tried with a server beside the terminal, and mean the same there.
_SERVED = frozenset({*_SETTINGS, *_PERMISSIONS, "--model", "--search", "--no-alt-screen", "--last", "--all"})
_ELSEWHERE = frozenset({"--help", "-h", "--version", "-V", "--remote"})


class Arguments(Struct, frozen=True):
    """`settings`: the words of `-c` and its like. `elsewhere`: why there is no conversation here that could be written to;
    `unserved`: why it cannot have a server of its own."""

    program: str
    words: list[str]
    command: str = ""  # `resume` or `fork`
    command_at: int = 0
    settings: list[str] = []
    elsewhere: str = ""
    unserved: str = ""

    @property
    def resumes(self) -> bool:
        return bool(self.command)

    def mentions(self, name: str) -> bool:
        return any(name in word for word in self.settings)

    def with_flags(self, flags: Sequence[str]) -> list[str]:
        """The whole command with these flags, where they belong."""
        at = self.command_at + 1 if self.command else 0
        return [self.program, *self.words[:at], *flags, *self.words[at:]]


def read_arguments(argv: Sequence[str]) -> Arguments:
    program, words = argv[0], list(argv[1:])
    flags: list[str] = []
    settings: list[str] = []
    command, command_at, elsewhere = "", 0, ""
    is_first, at = True, 0
    while at < len(words) and words[at] != "--":
        name, value, length = _flag(words, at)
        if name:
            flags.append(name)
            if name in _SETTINGS:
                settings += [name, value]
        elif is_first:
            is_first = False
            if words[at] in _RESUMING:
                command, command_at = words[at], at
            elif not any(character.isspace() for character in words[at]):
                elsewhere = f"`codex {words[at]}` may not be a conversation that can receive messages."
        at += length
    given = Arguments(program, words, command, command_at, settings)
    found = next((name for name in flags if name in _ELSEWHERE), "")
    if found or elsewhere:
        return _replace(given, elsewhere=elsewhere or f"With {found} the conversation does not run here.")
    return _replace(given, unserved=_why_unserved(given, flags))


def _why_unserved(given: Arguments, flags: list[str]) -> str:
    unknown = next((name for name in flags if name not in _SERVED), "")
    if unknown:
        return f"You started Codex with {unknown}, which means something else with an app-server."
    permits = any(name in _PERMISSIONS for name in flags) or given.mentions("approval_policy") or given.mentions("sandbox_mode")
    if given.resumes and permits:
        return "Through an app-server, Codex cannot resume a conversation with other permissions."
    if given.mentions("permissions"):
        return "You gave Codex your own permissions."
    return ""


def _flag(words: list[str], at: int) -> tuple[str, str, int]:
    """Its long name, its value, and how many words it takes; no name for what is no flag."""
    word = words[at]
    if not word.startswith("-") or word == "-":
        return "", "", 1
    if word.startswith("--"):
        name, is_joined, value = word.partition("=")
    else:
        name, value = _WITH_VALUE.get(word[:2], word), word[2:].removeprefix("=")
        is_joined = value
    if name not in _VALUED or is_joined:
        return name, value, 1
    return name, words[at + 1] if at + 1 < len(words) else "", 2


def _replace(given: Arguments, *, elsewhere: str = "", unserved: str = "") -> Arguments:
    return Arguments(
        given.program, given.words, given.command, given.command_at, given.settings, elsewhere, unserved
    )  # fmt: skip
