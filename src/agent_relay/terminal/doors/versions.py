"""Which versions of a CLI its doors are used in: by default all of them, as long as a door passes its probe.

Doors are not interfaces that their makers promise, and CLIs change every week. So a door of a version that this release was not
tested with is on trial until a first message was seen to be read through it. `doors = "known"` is the strict setting: there
only versions of a tested series count, which is the first two numbers of a version.
"""

from __future__ import annotations

from msgspec import Struct

SETTING = "doors"
PROBE, KNOWN, OFF = "probe", "known", "off"  # what it may be
TRY = "try"  # what `probe` was called when it was not the default
_BROKEN = {"opencode": (1, 17, 0)}  # the last version that does not start with what its door needs


class Versions(Struct, frozen=True):
    """Of one CLI, called `title`; `tested` is the version that the tests ran with."""

    title: str
    tested: str
    is_strict: bool = False

    def objection(self, version: str) -> tuple[str, str]:
        """Why a door of this version is not used, and what to do; empty where it is used."""
        if not self.is_strict or self.is_tested(version):
            return "", ""
        way_out = f'`--{SETTING} {PROBE}` or `{SETTING} = "{PROBE}"` uses it if its probe passes.'
        return f"{self._say(version)}, but only {self.tested} was tested", way_out

    def is_tested(self, version: str) -> bool:
        return is_known(version, self.tested)

    def trial(self, version: str) -> str:
        """What is to be known of a door until a message was read through it; empty for a tested version."""
        if self.is_tested(version):
            return ""
        return f"{self._say(version)}, but {self.tested} was tested: on trial until a first message is read"

    def _say(self, version: str) -> str:
        return f"{self.title} {version[:20]}" if version else f"{self.title} does not report its version"


def is_known(version: str, tested: str) -> bool:
    """The same series: the versions differ only after the second number."""
    return bool(version) and version.split(".")[:2] == tested.split(".")[:2]


def objection_to_start(cli: str, version: str) -> tuple[str, str]:
    """Why a CLI of this version is not started with what its doors need, and what to do; empty where it is."""
    last, numbers = _BROKEN.get(cli), numbers_of(version)
    if last is None or not numbers or numbers > last:
        return "", ""
    text = f"{cli} {version[:20]} ends at once when it is given a port and a password."
    return text, f"Update {cli}: versions after {'.'.join(map(str, last))} take them."


def numbers_of(version: str) -> tuple[int, ...]:
    """For comparing; what is not a number ends it."""
    found: list[int] = []
    for part in version.split(".")[:4]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits))
        if digits != part:
            break
    return tuple(found)
