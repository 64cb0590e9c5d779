"""The harm a request could do, at a glance: for a person who has to decide, and for rules that do not say.

It decides nothing. Words and paths are data; what is not known is medium, because it may be anything.
"""

from __future__ import annotations

import fnmatch
import posixpath
import re
from enum import StrEnum

from agent_relay.core.shell_text import MAX_SURE_CHARACTERS, has_word, is_plain
from agent_relay.protocol.tool_names import CHANGES, LOOKS, SHELLS


class Risk(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


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
