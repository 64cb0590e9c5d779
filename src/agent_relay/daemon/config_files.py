"""The two files that settings come from: the owner's, and the one that lies in a project.

The owner's is taken at its word, and a mistake in it stops the start. The project's came with the project from elsewhere, and
the agents in it can write it. So it is read with care, it may tighten and never open, and what cannot be used of it is left
out and noted: a folder that somebody cloned decides neither what the relay does nor whether it starts.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from agent_relay.protocol import places
from agent_relay.protocol.names import show

_MAX_BYTES = 262_144  # of a project's file; many times what anybody writes
_MOST_NAMED = 5  # keys in one note
_MOST_NOTES, _NOTE_CHARACTERS = 10, 600  # whoever wrote the file does not decide how long people read


def _lower(value: int, owners: int) -> bool:
    return value <= owners


def _limit(value: int, owners: int) -> bool:
    """The same, where 0 means that there is no limit."""
    return value > 0 and (owners == 0 or value <= owners)


# All that a project's file may set beside rules, and whether it may be this where the owner has that. What is not here is for the
# owner alone, so a new setting is theirs until somebody puts it here; nothing is to be put here that could hurt them.
PROJECT_MAY: dict[str, Callable[[int, int], bool]] = {
    "queue_capacity": _lower,
    "queue_bytes": _lower,
    "rate_limit": _limit,
    "loop_slow_after": _limit,
    "loop_hold_after": _limit,
    "max_agents": _lower,
    "spawns_per_minute": _lower,
    "arc_rate_limit": _limit,
    "arc_hourly_limit": _limit,
    "arc_registrations_per_hour": _limit,
    "arc_connections_per_address": _limit,
    "arc_max_bytes": _lower,
}


class ConfigFile(NamedTuple):
    path: str
    content: dict[str, Any]


class LeftOut(Exception):  # noqa: N818 - named by the condition
    """The project's file is not used; the text says why."""


def read_own_file(home: str) -> ConfigFile:
    """Raises ValueError with a sentence when it cannot be read."""
    path = os.path.join(home, places.CONFIG_FILE)
    try:
        with open(path, "rb") as file:
            return ConfigFile(path, _parse(file.read()))
    except (FileNotFoundError, NotADirectoryError):
        return ConfigFile(path, {})
    except (OSError, ValueError) as error:  # the second: it is no TOML, or no text
        raise ValueError(f"{path} cannot be read: {error}.") from None


def read_project_file(project_root: str, home: str, notes: list[str]) -> ConfigFile:
    """The project's file; what is left out is added to `notes`. Empty where it is the owner's own, whose home it is then."""
    path = os.path.join(project_root, places.PROJECT_DIRECTORY, places.CONFIG_FILE)
    own = os.path.join(home, places.CONFIG_FILE)
    content: dict[str, Any] = {}
    if os.path.realpath(path) != os.path.realpath(own):
        try:
            content = _parse(read_with_care(project_root, path))
        except (FileNotFoundError, NotADirectoryError):
            pass
        except LeftOut as reason:
            notes.append(str(reason))
        except (OSError, ValueError, RecursionError) as error:
            notes.append(f"{path} is ignored: it cannot be read ({error}).")
    return ConfigFile(path, content)


def read_with_care(project_root: str, path: str) -> bytes:
    """A file that came with a project. Raises LeftOut where it is not to be trusted, and OSError."""
    folder = os.path.dirname(path)
    uid = _uid_of(folder)
    if not is_own(uid):
        raise LeftOut(places.foreign_folder_note(folder, uid))
    root = os.path.realpath(project_root)
    if os.path.commonpath([root, os.path.realpath(path)]) != root:
        raise LeftOut(f"{path} is ignored: it links out of the project, to {os.path.realpath(path)}.")
    # Without waiting: whoever put a pipe there would keep the daemon from starting.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise LeftOut(f"{path} is ignored: it is not a regular file.")
        if not is_own(found.st_uid):
            raise LeftOut(f"{path} is ignored: it belongs to another user (uid {found.st_uid}).")
        if found.st_size > _MAX_BYTES:
            raise LeftOut(f"{path} is ignored: it is larger than {_MAX_BYTES:,} bytes.")
        return file.read(_MAX_BYTES)


def _uid_of(folder: str) -> int:
    """The owner; of a link and its target the first that is not us."""
    link, target = os.lstat(folder).st_uid, os.stat(folder).st_uid
    return target if is_own(link) else link


def is_own(uid: int) -> bool:
    """Ours, or root's, who can do anything anyway."""
    return uid in {os.geteuid(), 0}


def _parse(content: bytes) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - takes a while, and many have no such file

    return tomllib.loads(content.decode())


def name_keys(keys: Iterable[str]) -> str:
    """Some of them, fit for a note."""
    found = [show(key) for key in keys]
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return ", ".join(found[:_MOST_NAMED]) + more


def shorten_notes(notes: Sequence[str]) -> tuple[str, ...]:
    shown = [note if len(note) <= _NOTE_CHARACTERS else note[:_NOTE_CHARACTERS] + " …" for note in notes[:_MOST_NOTES]]
    more = len(notes) - _MOST_NOTES
    return (*shown, f"{more} more notes are not shown.") if more > 0 else tuple(shown)
