"""Notes about a project's own files that were not trusted, for the person who works in it."""

from __future__ import annotations

import sys

from agent_relay.cli.safe_text import clean_line
from agent_relay.cli.screen import Screen
from agent_relay.sdk.locate import Place


def find_config_notes(place: Place) -> list[str]:
    from agent_relay.daemon.config import ConfigError, find_notes

    try:
        found = find_notes(place.root, place.home)
    except ConfigError:  # in the owner's file, which whoever starts a daemon is told
        found = ()
    return list(dict.fromkeys([*place.notes, *found]))


def show_config_notes(place: Place) -> None:
    screen = Screen(sys.stderr)
    for note in find_config_notes(place):
        screen.line(("NOTE  ", "bold yellow"), clean_line(note))
