"""Recordings as tests of a profile: marks in them say which state the agent was in, and the profile is held to that."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_relay.terminal.profiles.profile import Profile
from agent_relay.terminal.recordings.asciicast import CastEvent, read_cast
from agent_relay.terminal.recordings.profile_proposal import EXPECT, Proposal
from agent_relay.terminal.recordings.replay import replay

_LATE_S = 0.4  # a screen is read a moment after it was drawn
_MOST = 4  # expectations of each state


class Difference(Struct, frozen=True):
    t: float
    expected: str
    found: str


class Outcome(Struct, frozen=True):
    path: str
    expectations: int
    differences: list[Difference] = []


def recordings_of(profile: Profile) -> list[Path]:
    """Those that lie beside its file: NAME.cast, NAME.ANYTHING.cast."""
    folder = Path(os.path.dirname(profile.origin))
    names = sorted(folder.glob("*.cast")) if profile.origin and folder.is_dir() else []
    return [path for path in names if path.name == f"{profile.name}.cast" or path.name.startswith(f"{profile.name}.")]


def check_recording(path: Path, profile: Profile, profiles: Mapping[str, Profile]) -> Outcome:
    """Raises ReplayError or CastError for what is no recording."""
    cast = read_cast(path)
    expected = [(event.t, event.data.removeprefix(EXPECT)) for event in cast.events if _is_expectation(event)]
    states = [
        (float(line["t"]), str(line["state"]))
        for line in replay(path, profile.name, profiles={**profiles, profile.name: profile})
        if line["kind"] == "state"
    ]
    wrong = [
        Difference(t, state, _state_at(states, t))
        for t, state in expected
        if state not in {_state_at(states, t), _state_at(states, t + _LATE_S)}
    ]
    return Outcome(str(path), len(expected), wrong)


def _is_expectation(event: CastEvent) -> bool:
    return event.kind == "m" and event.data.startswith(EXPECT)


def _state_at(states: Sequence[tuple[float, str]], t: float) -> str:
    return next((state for at, state in reversed(states) if at <= t), "starting")


def mark_expectations(path: Path, proposal: Proposal) -> None:
    """Writes what was seen into the recording, for the test to find."""
    marks = [
        CastEvent(t, "m", f"{EXPECT}{state}")
        for state, times in (("idle", proposal.idle_at), ("working", proposal.busy_at))
        for t in [*times[: _MOST // 2], *times[_MOST // 2 :][-_MOST // 2 :]]
    ]
    header = path.read_text("utf-8").partition("\n")[0]
    events = [event for event in read_cast(path).events if not _is_expectation(event)]
    ordered = sorted([*events, *marks], key=lambda event: event.t)
    lines = [header, *(msgspec.json.encode(event).decode() for event in ordered)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
