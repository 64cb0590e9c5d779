"""How much harm a request could do, at a glance: for a person who has to decide, and for rules that do not say.

It decides nothing. Words and paths are data; what is not known is medium, because it may be anything.
"""

from __future__ import annotations

import posixpath
from enum import StrEnum

from agent_relay.core.shell_text import has_word, is_plain
from agent_relay.core.tool_names import CHANGES, LOOKS, SHELLS


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
_PRIVATE_PARTS = frozenset({".ssh", ".gnupg", ".aws", ".git", ".netrc", ".npmrc", ".pypirc", ".docker", ".kube", ".agent-relay"})
_SYSTEM_PLACES = ("/etc/", "/usr/", "/bin/", "/sbin/", "/boot/", "/var/", "/dev/", "/proc/", "/sys/", "~")


def assess(kind: str, command: str | None, file_path: str | None) -> Risk:
    if kind in SHELLS:
        return _assess_command(command or "")
    if kind in LOOKS:
        return Risk.MEDIUM if file_path and is_private(file_path) else Risk.LOW
    if kind in CHANGES:
        return Risk.HIGH if not file_path or is_private(file_path) else Risk.MEDIUM
    return Risk.HIGH if command and _assess_command(command) is not Risk.MEDIUM else Risk.MEDIUM


def _assess_command(command: str) -> Risk:
    if has_word(command, DESTRUCTIVE_WORDS):
        return Risk.CRITICAL
    return Risk.MEDIUM if is_plain(command) and not has_word(command, _FAR_REACHING_WORDS) else Risk.HIGH


def is_private(path: str) -> bool:
    """Keys, settings, the system's own, and paths that climb out of where they begin."""
    names = path.split("/")
    is_secret = any(name in _PRIVATE_PARTS or name.startswith(".env") for name in names)
    return is_secret or ".." in names or straighten(path).startswith(_SYSTEM_PLACES)


def straighten(path: str) -> str:
    """The path without detours, as far as the text tells; two slashes at its beginning mean the same as one."""
    straight = posixpath.normpath(path)
    return straight[1:] if straight.startswith("//") else straight
