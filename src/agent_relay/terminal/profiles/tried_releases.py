"""Releases of the CLIs that were tried under the relay, with what was found: `tried_releases.json` beside this.

Written by `make test-real-clis VERSIONS=…`, which plays the same scenes with the real program of every release. `doctor` says
whether the installed release is among them, and docs/real-clis.md shows all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

import msgspec
from msgspec import Struct

FILE = "tried_releases.json"
YES, ASKS_NOTHING = "yes", "asks nothing"
_WELL = frozenset({YES, ASKS_NOTHING})
SCENES: Mapping[str, str] = {
    "start": "it is seen to be ready",
    "idle": "at its prompt it takes a message once, and its reply arrives",
    "busy": "while it works its answer is not cut off, and the message comes after",
    "draft": "a half-written draft stays whole, and the message arrives all the same",
    "dialog": "its permission shows the exact command; messages leave it alone, and come after it, in order",
    "approve": "the permission is given from outside, and the command runs",
    "deny": "it is refused from outside, the command does not run, and it can be talked to",
}  # in the order they are played


class TriedRelease(Struct, frozen=True, omit_defaults=True):
    """`scenes`: by name, `yes`, `asks nothing`, or what happened instead; one that was not played is missing."""

    date: str
    way: str = ""  # in which a message got in
    took_ms: int = 0  # from the sending of a message to the model that is told, where the agent was idle
    scenes: dict[str, str] = {}
    reason: str = ""  # why none was played

    @property
    def is_whole(self) -> bool:
        return all(self.scenes.get(scene) in _WELL for scene in SCENES)

    @property
    def failed(self) -> list[str]:
        """The scenes that did not go as they should."""
        return [scene for scene in SCENES if self.scenes.get(scene, YES) not in _WELL]


Tried = dict[str, dict[str, TriedRelease]]  # by CLI, then by version


def decode_tried(data: bytes) -> Tried:
    return msgspec.json.decode(data, type=Tried)


def encode_tried(tried: Tried) -> bytes:
    """The same text for the same facts, so that a difference shows what changed."""
    ordered = {cli: dict(sorted(releases.items(), key=lambda item: _numbers(item[0]))) for cli, releases in sorted(tried.items())}
    return msgspec.json.format(msgspec.json.encode(ordered), indent=1) + b"\n"


@lru_cache(maxsize=1)
def load_tried() -> Tried:
    return decode_tried((resources.files("agent_relay.terminal") / "profiles" / FILE).read_bytes())


def whole_releases(cli: str) -> dict[str, str]:
    """The releases with which all went well, and the way in of each."""
    return {version: found.way for version, found in load_tried().get(cli, {}).items() if found.is_whole}


def newest_first(releases: Mapping[str, TriedRelease]) -> list[str]:
    return sorted(releases, key=_numbers, reverse=True)


def _numbers(version: str) -> list[int]:
    return [int(part) if part.isdigit() else -1 for part in version.split(".")]


def describe_tried(cli: str, version: str) -> str:
    """A clause on this release of a CLI; empty where no release of it was tried."""
    releases = load_tried().get(cli, {})
    found = releases.get(version)
    if found is None:
        played = [one for one in newest_first(releases) if releases[one].scenes]
        return f"this release was not tried, the newest that was is {played[0]}" if played else ""
    if not found.scenes:
        return f"tried on {found.date}: {found.reason}"
    if found.failed:
        return f"tried on {found.date}: {', '.join(found.failed)} did not go as it should"
    left = [scene for scene in SCENES if scene not in found.scenes]
    return f"tried on {found.date}: all went well" + (f", but {', '.join(left)} was left out" if left else "")
