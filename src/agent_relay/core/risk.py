"""The harm a request could do, at a glance: for a person who has to decide, and for rules that do not say.

It decides nothing. Words and paths are data; what is not known is medium, because it may be anything.

Commands are read without running a shell, and two questions about them err on opposite sides. A command is plain only where no
shell could read it as anything but words; for finding a word everything that hides one is first taken away. So what is approved
was understood, and what is feared is found.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache

from agent_relay.protocol.tool_names import CHANGES, LOOKS, SHELLS


class Risk(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


# No quotes, no operators, no expansion, no comment, no tab, no line break, nothing beyond ASCII.
_PLAIN = re.compile(r"[A-Za-z0-9._/:=,@+ -]+")
MAX_SURE_CHARACTERS = 1_000  # what is longer may have been cut on its way here (at 2,000), and its end is not known
_HIDING = re.compile(r"[\"'\\\0\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]")
_BREAKS = re.compile(r"[;|&()<>{}`\n\r\v\f\u0085\u2028\u2029]+|\$\(")
DESTRUCTIVE_WORDS = ("rm", "delete", "drop", "truncate")
_FAR_REACHING_WORDS = (
    "chmod", "chown", "clean", "crontab", "curl", "dd", "doas", "eval", "exec", "kill", "killall", "mkfs", "pkill",
    "push", "reboot", "reset", "rmdir", "scp", "shred", "shutdown", "ssh", "su", "sudo", "systemctl", "unlink", "wget",
)  # fmt: skip
_PRIVATE_NAMES = (
    ".env*", "*.env", ".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".git", ".git-credentials", ".netrc", "_netrc", ".npmrc",
    ".pypirc", ".pgpass", ".my.cnf", ".htpasswd", ".docker", ".kube", ".terraform", "*.tfstate*", ".agent-relay", "api-token",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.ppk", "*.p12", "*.pfx", "*.jks", "*.keystore",
    "*.kdbx", "*.gpg", "*.asc", "credentials", "credentials.*", "*.credentials", "secret", "secrets", "secret.*", "secrets.*",
    "service-account*.json", ".*_history",
)  # fmt: skip
_PRIVATE = re.compile("|".join(fnmatch.translate(name) for name in _PRIVATE_NAMES))
_SYSTEM_PLACES = ("/etc/", "/usr/", "/bin/", "/sbin/", "/boot/", "/var/", "/dev/", "/proc/", "/sys/", "~")


def assess(kind: str, command: str | None, file_path: str | None, text: str = "") -> Risk:
    """`text`: what a screen shows around it, where that is all there is; what destroys is critical wherever it stands."""
    if text and has_word(f"{command or ''}\n{text}", DESTRUCTIVE_WORDS):
        return Risk.CRITICAL
    if kind in SHELLS:
        return _assess_command(command or "")
    if kind in LOOKS:
        return Risk.MEDIUM if file_path and is_private(file_path) else Risk.LOW
    if kind in CHANGES:
        return Risk.HIGH if not file_path or is_private(file_path) else Risk.MEDIUM
    if command and has_word(command, DESTRUCTIVE_WORDS):
        return Risk.CRITICAL
    looks_far = has_word(text, _FAR_REACHING_WORDS) if text else False
    return Risk.HIGH if looks_far or (command and _assess_command(command) is not Risk.MEDIUM) else Risk.MEDIUM


def _assess_command(command: str) -> Risk:
    if has_word(command, DESTRUCTIVE_WORDS):
        return Risk.CRITICAL
    return Risk.MEDIUM if is_plain(command) and not has_word(command, _FAR_REACHING_WORDS) else Risk.HIGH


def is_private(path: str) -> bool:
    """Keys, settings, the system's own, and paths that climb out of where they begin."""
    return holds_secret(path) or ".." in path.split("/") or straighten(path).startswith(_SYSTEM_PLACES)


def holds_secret(path: str) -> bool:
    """Whether the file, or a folder on the way to it, has the name of something private, in any case of letters."""
    return len(path) > MAX_SURE_CHARACTERS or any(_PRIVATE.match(name) for name in path.casefold().split("/"))


def straighten(path: str) -> str:
    """The path without detours, as far as the text tells; two slashes at its beginning mean the same as one."""
    straight = posixpath.normpath(path)
    return straight[1:] if straight.startswith("//") else straight


# --- the text of commands ---------------------------------------------------------------------------------------------------


def is_plain(command: str) -> bool:
    """One command of words with one space between them, which every shell reads alike, and all of it."""
    return len(command) <= MAX_SURE_CHARACTERS and bool(_PLAIN.fullmatch(command)) and command == " ".join(command.split())


def unhide(command: str) -> str:
    """The command as one would read it aloud: wide letters as plain ones, in lower case, without quotes and the like."""
    return unicodedata.normalize("NFKC", _HIDING.sub("", unicodedata.normalize("NFKC", command))).casefold()


def has_word(command: str, words: Iterable[str]) -> bool:
    """Whether one of the words stands in it, wherever and however it is written; `rm` is not in `format`."""
    return bool(_any_of(tuple(words)).search(unhide(command)))


@lru_cache(maxsize=256)
def _any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(re.escape(unhide(word)) for word in words)})(?![a-z0-9])")


def parts(command: str) -> Iterator[str]:
    """The whole command, then each command of a chain, unhidden and with single spaces."""
    shown = unhide(command)
    for part in (shown, *_BREAKS.split(shown)):
        words = " ".join(part.split())
        if words:
            yield words
