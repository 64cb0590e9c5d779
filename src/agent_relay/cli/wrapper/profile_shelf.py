"""The profiles there are: those of the user, then ours; and what the project adds to them.

The user's own are in `~/.config/agent-relay/profiles` and in `profiles` of AGENT_RELAY_HOME. A mistake in one is an error where
that one is asked for, and a note elsewhere. A project's come with a clone and agents can write them: all they may say is that
more screens mean "busy" or "a dialog is open". Whatever else stands there is left out and noted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from agent_relay.daemon.config_files import LeftOut, is_own, name_keys, read_with_care, shorten_notes
from agent_relay.protocol import places
from agent_relay.terminal.profiles.custom_profile import tighten
from agent_relay.terminal.profiles.line_numbers import line_of
from agent_relay.terminal.profiles.profile import (
    Profile,
    ProfileError,
    Signs,
    check_pattern,
    load_profiles,
    parse_profile,
    profile_for,
)

SUFFIX = ".toml"
_FOLDER = "profiles"
_MAX_BYTES = 262_144  # of one file
_MOST_FILES = 50  # of a project
_MOST_PATTERNS = 20  # of one file of a project, in each list
_MAY = {"busy": ("rows", "title"), "asking": ("rows", "title")}
_NAMES = {"name", "title"}  # which say nothing about a screen


class ProfileShelf(msgspec.Struct):
    profiles: dict[str, Profile]  # the user's first
    broken: dict[str, str] = {}  # by name: what is wrong with the user's file of that name
    added: dict[str, tuple[Signs, Signs]] = {}  # by name: what the project says of busy and of dialogs
    notes: list[str] = []

    def find(self, command: str) -> Profile:
        """For this program, or of this name. Raises ProfileError where the user's own is broken."""
        name = os.path.basename(command)
        if name in self.broken:
            raise ProfileError(self.broken[name])
        profile = profile_for(command, self.profiles)
        for busy, asking in [self.added[each] for each in dict.fromkeys((profile.name, name)) if each in self.added]:
            profile = tighten(profile, busy, asking)
        return profile


def own_folders(home: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """The folders of the user's own profiles; new ones go into the first, and the second goes before it."""
    config = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(config):  # as its specification asks for
        config = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    return os.path.join(config, "agent-relay", _FOLDER), os.path.join(home, _FOLDER)


def load_shelf(root: str, home: str, environ: Mapping[str, str] = os.environ) -> ProfileShelf:
    """`root`: of the project."""
    shelf = ProfileShelf({})
    for folder in own_folders(home, environ):
        _read_own(folder, shelf)
    shelf.notes += shelf.broken.values()
    shelf.profiles |= {name: profile for name, profile in load_profiles().items() if name not in shelf.profiles}
    _read_projects(root, home, environ, shelf)
    shelf.notes = list(shorten_notes(shelf.notes))
    return shelf


def _read_own(folder: str, shelf: ProfileShelf) -> None:
    for name, path in _files(folder):
        try:
            with open(path, "rb") as file:
                found = os.fstat(file.fileno())
                if not is_own(found.st_uid):
                    shelf.notes.append(f"{path} is ignored: it belongs to another user (uid {found.st_uid}).")
                    continue
                source = file.read(_MAX_BYTES).decode()
            profile = parse_profile(source, path, is_own=True)
            if profile.name != name:
                raise ProfileError(f"{path}:{line_of(source, 'name')}: name: must be {name!r}, like the file")
        except (OSError, UnicodeDecodeError) as error:
            shelf.broken[name] = f"{path} cannot be read: {error}."
        except ProfileError as error:
            shelf.broken[name] = str(error)
        else:
            shelf.profiles[name] = profile
            shelf.broken.pop(name, None)


def _read_projects(root: str, home: str, environ: Mapping[str, str], shelf: ProfileShelf) -> None:
    folder = os.path.join(root, places.PROJECT_DIRECTORY, _FOLDER)
    if os.path.realpath(folder) in map(os.path.realpath, own_folders(home, environ)):
        return  # the project is the user's home
    for name, path in _files(folder)[:_MOST_FILES]:
        try:
            source = read_with_care(root, path).decode()
            shelf.added[name] = _read_added(source, path, shelf.notes)
        except LeftOut as reason:
            shelf.notes.append(str(reason))
        except (OSError, ValueError, RecursionError) as error:
            shelf.notes.append(f"{path} is ignored: it cannot be read ({error}).")
        except ProfileError as error:
            shelf.notes.append(f"{error} (the file is ignored)")


def _files(folder: str) -> list[tuple[str, str]]:
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX) and not name.startswith("."))
    except OSError:
        return []
    return [(name.removesuffix(SUFFIX), os.path.join(folder, name)) for name in names]


def _read_added(source: str, path: str, notes: list[str]) -> tuple[Signs, Signs]:
    content = msgspec.toml.decode(source)
    left_out = sorted(key for key in content if key not in _MAY and key not in _NAMES)
    found: dict[str, Signs] = {}
    for group, fields in _MAY.items():
        table = content.get(group, {})
        if not isinstance(table, dict):
            raise ProfileError(f"{path}:{line_of(source, group)}: {group}: must be a table")
        left_out += [f"{group}.{key}" for key in table if key not in fields]
        found[group] = Signs(*(_read_patterns(table, group, field, source, path) for field in fields))
    if left_out:
        notes.append(f"{path}: {name_keys(left_out)} ignored: a project's profile may only set busy and asking.")
    return found["busy"], found["asking"]


def _read_patterns(table: Mapping[str, Any], group: str, field: str, source: str, path: str) -> tuple[str, ...]:
    value, where = table.get(field, []), f"{group}.{field}"
    if not isinstance(value, list) or len(value) > _MOST_PATTERNS or not all(isinstance(each, str) for each in value):
        raise ProfileError(f"{path}:{line_of(source, where)}: {where}: must be a list of at most {_MOST_PATTERNS} texts")
    for each in value:
        check_pattern(each, f"{path}:{line_of(source, where, each)}: {where}")
    return tuple(value)
