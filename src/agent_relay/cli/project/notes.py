"""Notes for the person who works in a project: its own files that were not trusted, and the relay that the folder had before a
whole repository became one project."""

from __future__ import annotations

import os
import sys

from agent_relay.cli.output.formats import count
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.protocol import places
from agent_relay.repository import GIT, folders_upwards
from agent_relay.sdk.locate import Place, working_directory


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


def show_former_relay(place: Place) -> None:
    note = "" if os.environ.get(places.ENV_PROJECT) else _find_former_relay(place)
    if note:
        Screen(sys.stderr).line(("NOTE  ", "bold yellow"), note)


def _find_former_relay(place: Place) -> str:
    """A worktree, or a subfolder with a package file, had a relay of its own, and nobody looks there any more: a sentence where
    its daemon still runs, or messages wait."""
    from agent_relay.private_files import is_locked

    root = _former_root(os.path.realpath(working_directory()), place.home)
    state_dir = places.state_directory(place.home, root)
    if state_dir == place.state_dir or not os.path.isdir(state_dir):
        return ""
    shown = clean_line(root)
    if is_locked(os.path.join(state_dir, places.LOCK_FILE)):
        return (
            f"{shown} used to have its own relay, and its daemon is still running. The project is now "
            f"{clean_line(place.root)}. To see the old one: agent-relay --project {shown} status; to stop it and its agents: "
            f"agent-relay --project {shown} down --all"
        )
    from agent_relay.daemon.store_at_rest import count_waiting

    waiting = count_waiting(os.path.join(state_dir, places.DATABASE_FILE))
    if not waiting:
        return ""
    names = ", ".join(clean_line(name) for name in sorted(waiting))
    return (
        f"{shown} used to have its own relay, where {count(sum(waiting.values()), 'message')} for {names} still wait. To read "
        f"them: agent-relay --project {shown} up, then: agent-relay --project {shown} inbox --as NAME"
    )


def _former_root(here: str, home: str) -> str:
    names = (places.PROJECT_DIRECTORY, GIT, *places.PACKAGE_FILES)
    for directory in folders_upwards(here):
        paths = [os.path.join(directory, name) for name in names]
        if any(os.path.exists(path) and os.path.realpath(path) != os.path.realpath(home) for path in paths):
            return directory
    return here
