"""Profiles on disk: the user's are taken at their word, a project's may only tighten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_relay.cli.wrapper.profile_shelf import ProfileShelf, load_shelf
from agent_relay.terminal.profiles.profile import ProfileError, profile_for

MINE = 'name = "chatty"\ntitle = "Chatty"\nexecutables = ["chatty-cli"]\n[composer]\nrow = "^you: "\nis_at_cursor = true\n'


class Place:
    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        self.environ = {"HOME": str(self.home)}
        self.project.mkdir()

    @property
    def own(self) -> Path:
        return self.home / ".config" / "agent-relay" / "profiles"

    @property
    def theirs(self) -> Path:
        return self.project / ".agent-relay" / "profiles"

    def write(self, folder: Path, name: str, text: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        return folder / name

    def load(self) -> ProfileShelf:
        return load_shelf(str(self.project), str(self.home / ".agent-relay"), self.environ)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_own_profiles_are_found_by_name_and_executable(place: Place) -> None:
    place.write(place.own, "chatty.toml", MINE)
    shelf = place.load()
    assert shelf.notes == []
    for command in ("chatty", "/usr/bin/chatty-cli"):
        profile = shelf.find(command)
        assert (profile.name, profile.is_tried) == ("chatty", False)
    assert shelf.find("claude") is profile_for("claude")
    assert shelf.find("else").is_generic


def test_the_folders_of_the_user(place: Place, tmp_path: Path) -> None:
    place.write(place.home / ".agent-relay" / "profiles", "chatty.toml", MINE)
    assert place.load().find("chatty").title == "Chatty"
    place.environ["XDG_CONFIG_HOME"] = str(tmp_path / "config")
    place.write(tmp_path / "config" / "agent-relay" / "profiles", "other.toml", MINE.replace("chatty", "other"))
    assert place.load().find("other").name == "other"


def test_one_of_ours_may_be_replaced_by_its_owner(place: Place) -> None:
    place.write(place.own, "claude.toml", MINE.replace("chatty", "claude"))
    assert place.load().find("claude").origin.endswith("claude.toml")


def test_a_mistake_is_an_error_where_it_is_asked_for_and_a_note_elsewhere(place: Place) -> None:
    path = place.write(place.own, "chatty.toml", MINE + "[busy]\nrows = ['(a+)+$']\n")
    shelf = place.load()
    assert len(shelf.notes) == 1
    assert shelf.find("claude").name == "claude"
    with pytest.raises(ProfileError) as caught:
        shelf.find("chatty")
    assert str(caught.value).startswith(f"{path}:8: busy.rows: ")
    place.write(place.own, "chatty.toml", MINE.replace('"chatty"', '"chat"'))
    with pytest.raises(ProfileError, match=r"chatty.toml:1: name: must be 'chatty'"):
        place.load().find("chatty")


def test_a_projects_file_adds_busy_and_dialogs_and_nothing_else(place: Place) -> None:
    place.write(
        place.theirs, "claude.toml",
        "[busy]\nrows = ['^Compiling']\n[asking]\nrows = ['^Deploy']\ntitle = ['!!']\n[composer]\nrow = '.*'\n"
        "[submit]\nkey = 'y'\n"
        "[launch]\nflags = ['--yolo']\n[[dialogs]]\nkind = 'permission'\nmarks = ['x']\napprove = ['always']\n"
    )  # fmt: skip
    shelf = place.load()
    claude, ours = shelf.find("claude"), profile_for("claude")
    assert claude.busy.rows[-1] == "^Compiling"
    assert claude.asking.rows == ("^Deploy",)
    assert claude.asking.title[-1] == "!!"
    same = ("composer", "rows", "submit", "launch", "dialogs", "doors", "idle", "executables", "transcript", "origin")
    assert all(getattr(claude, field) == getattr(ours, field) for field in same)
    (note,) = shelf.notes
    assert "'composer', 'dialogs', 'launch', 'submit' ignored" in note
    assert not shelf.find("else").busy.rows[-1].startswith("^Compiling")


def test_a_projects_file_for_a_program_nobody_described(place: Place) -> None:
    place.write(place.theirs, "robot.toml", "[busy]\nrows = ['^beep']\n")
    assert place.load().find("./robot").busy.rows[-1] == "^beep"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[busy]\nrows = ['(a+)+$']", "robot.toml:2: busy.rows: '(a+)+$' cannot be used"),
        ("[busy]\nrows = 'x'", "robot.toml:2: busy.rows: must be a list"),
        ("busy = 1", "robot.toml:1: busy: must be a table"),
        ("[busy]\nrows = [" + "'x'," * 21 + "]", "at most 20"),
        ("no toml", "cannot be read"),
    ],
)
def test_what_is_wrong_in_a_projects_file_is_left_out_and_noted(place: Place, text: str, said: str) -> None:
    place.write(place.theirs, "robot.toml", text)
    shelf = place.load()
    assert said in shelf.notes[0]
    assert shelf.find("robot") == profile_for("generic")


def test_a_projects_file_is_not_waited_for_and_leads_nowhere_else(place: Place, tmp_path: Path) -> None:
    place.theirs.mkdir(parents=True)
    os.mkfifo(place.theirs / "a.toml")
    (place.theirs / "b.toml").symlink_to(place.write(tmp_path, "elsewhere.toml", "[busy]\nrows = ['x']"))
    shelf = place.load()
    assert ["not a regular file" in shelf.notes[0], "links out of the project" in shelf.notes[1]] == [True, True]
    assert shelf.added == {}
