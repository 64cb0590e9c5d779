"""In which versions of a CLI its doors are used: those of a series that they were run with.

A series is the first two numbers of a version. Doors are no interface that their makers promise: what a version that nobody
has run does with a message is not known, and may be nothing. So it is left to whoever runs the agent to try.
"""

from __future__ import annotations

from msgspec import Struct

SETTING = "doors"
KNOWN, TRY = "known", "try"  # what it may be
FLAG = "--try-doors"


class Versions(Struct, frozen=True):
    """Of one CLI, called `title`; `tried` is the version that was run."""

    title: str
    tried: str
    tries_others: bool = False

    def objection(self, version: str) -> str:
        """Why a door of this version is not used; empty where it is."""
        if self.tries_others or is_known(version, self.tried):
            return ""
        return f"{self._say(version)}, and {self.tried} is known; {FLAG} or `{SETTING} = {TRY}` uses it all the same"

    def note(self, version: str) -> str:
        """What is to be known of a door that is used."""
        return "" if is_known(version, self.tried) else f"{self._say(version)}, tried though only {self.tried} is known"

    def _say(self, version: str) -> str:
        return f"{self.title} {version[:20] or 'does not say its version'}"


def is_known(version: str, tried: str) -> bool:
    """The same but for what follows the second number."""
    return bool(version) and version.split(".")[:2] == tried.split(".")[:2]
