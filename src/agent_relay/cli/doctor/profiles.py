"""Profiles of the user's own: a file that is broken keeps its program from being wrapped, so it is named before that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agent_relay.cli.doctor.findings import Finding, Verdict
from agent_relay.cli.profile_shelf import load_shelf
from agent_relay.sdk.locate import Place


def check_profiles(place: Place, environ: Mapping[str, str]) -> Iterator[Finding]:
    shelf = load_shelf(place.root, place.home, environ)
    for text in shelf.broken.values():
        yield Finding("profile", Verdict.BAD, text, "Fix the file, then run: agent-relay profile test")
    for note in shelf.notes:
        if note not in shelf.broken.values():
            yield Finding("profile", Verdict.NOTE, note)
