"""What the table of releases stands on, without any CLI: the list of releases, the hints, and the table itself."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_relay.terminal.profiles.profile import Profile, load_profiles
from agent_relay.terminal.profiles.tried_releases import SCENES, YES, TriedRelease, encode_tried, load_tried
from agent_relay.terminal.screen.contents import Screen, screen_of_text
from scripts import cli_releases
from scripts.real_clis import STAMP, read_manifest
from tests.real_clis import release_table
from tests.real_clis.hints import hint_for_permission, hint_for_prompt
from tests.real_clis.more_clis import ALL_CLIS

ROOT = Path(__file__).parents[2]
WHOLE = dict.fromkeys(SCENES, YES)


# --- which releases there are ----------------------------------------------------------------------------------------------


def test_the_newest_are_the_highest_numbers_and_no_previews() -> None:
    versions = ["1.9.0", "1.10.0", "1.10.0-beta.1", "0.0.0-nightly", "1.2", "1.10.0", "1.10.1-linux-x64"]
    assert cli_releases.newest(versions, 3) == ["1.10.0", "1.9.0", "1.2"]
    assert cli_releases.newest(versions, 1) == ["1.10.0"]


def run_script(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "cli_releases.py"), *words]
    environ = {"PATH": f"{folder}:/usr/bin:/bin"}
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)


def test_what_is_there_is_not_installed_again_and_what_cannot_be_is_told(tmp_path: Path) -> None:
    """An npm that knows two releases of Codex, and installs none."""
    npm = 'if [ "$1" = view ]; then echo \'["0.1.0", "0.2.0", "0.3.0-alpha"]\'; else echo no such file >&2; exit 1; fi'
    for name, text in (("node", "echo v22.0.0"), ("npm", npm)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    folder = tmp_path / "releases"
    cli = read_manifest()["codex"]._replace(version="0.1.0")
    cli.programs(folder / "0.1.0").mkdir(parents=True)
    (cli.programs(folder / "0.1.0") / cli.program).write_text("")
    (folder / "0.1.0" / "codex" / STAMP).write_text("0.1.0")
    done = run_script(tmp_path, str(folder), "4", "codex")
    assert done.returncode == 0, done.stderr
    listed = json.loads((folder / cli_releases.RELEASES).read_text())["codex"]
    assert list(listed) == ["0.2.0", "0.1.0"]
    assert listed["0.1.0"] == ""
    assert "npm could not install @openai/codex@0.2.0" in listed["0.2.0"]


@pytest.mark.parametrize("words", [["/nowhere"], ["/nowhere", "many"]])
def test_wrong_words_are_told(tmp_path: Path, words: list[str]) -> None:
    done = run_script(tmp_path, *words)
    assert (done.returncode, "usage:" in done.stderr) == (2, True)


def test_a_name_that_nobody_knows_is_told(tmp_path: Path) -> None:
    done = run_script(tmp_path, str(tmp_path), "2", "kodex")
    assert (done.returncode, "There is no 'kodex'" in done.stderr) == (1, True)


def test_every_cli_of_the_list_can_be_started() -> None:
    manifest = read_manifest()
    assert set(manifest) == set(ALL_CLIS)
    assert {name: cli.version for name, cli in manifest.items()} == {name: load_profiles()[name].recorded for name in manifest}


# --- hints -----------------------------------------------------------------------------------------------------------------

PROFILE = load_profiles()["claude"]
RULE = "─" * 40
READY = f"{RULE}\n❯ \n{RULE}\n  ? for shortcuts\n"
ASKS = f"{RULE}\n Bash command\n\n rm -rf build\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel\n"


def screen(text: str) -> Screen:
    return screen_of_text(text)


def changed(**rules: object) -> Profile:
    """The profile with other rules in its composer."""
    return replace(PROFILE, composer=replace(PROFILE.composer, **rules))


def test_where_all_is_well_there_is_no_hint() -> None:
    assert hint_for_prompt(PROFILE, screen(READY)) == ""


@pytest.mark.parametrize(
    ("shown", "hint"),
    [
        (READY.replace("❯", "»"), "`composer.row` fits no row"),
        (READY.replace(RULE, ""), "`composer.above` fits no row"),
        (f"✽ Cooking… (2s · esc to interrupt)\n{READY}", "`busy.rows` fits “✽ Cooking… (2s · esc to interrupt)”"),
        (ASKS, "`dialogs` sees “Do you want to proceed?”"),
    ],
)
def test_the_rule_that_keeps_a_prompt_from_being_seen_is_named(shown: str, hint: str) -> None:
    assert hint_for_prompt(PROFILE, screen(shown)) == hint


def test_a_row_below_the_composer_is_named() -> None:
    assert hint_for_prompt(changed(below="^$", above=""), screen(READY)).startswith("`composer.below` does not fit")


@pytest.mark.parametrize(
    ("shown", "hint"),
    [
        (ASKS.replace("Esc to cancel", "Press Esc"), "marks[2]` fits no row"),
        (ASKS.replace("rm -rf build", "rm -rf /tmp/other"), ".subject` reads “rm -rf /tmp/other”"),
        (ASKS.replace("1. Yes", "1. Go ahead"), ".approve` fits none of “Go ahead / No”"),
        (ASKS + "one\ntwo\nthree\nfour\nfive\n", "are 5 rows, more than 4"),
    ],
)
def test_the_rule_that_keeps_a_permission_from_being_seen_or_given_is_named(shown: str, hint: str) -> None:
    found = hint_for_permission(PROFILE, screen(shown), "rm -rf build")
    assert hint in found
    assert "dialogs[" in found


def test_a_profile_without_permissions_says_so() -> None:
    assert "no permission" in hint_for_permission(load_profiles()["pi"], screen("hello"), "rm")


# --- the table -------------------------------------------------------------------------------------------------------------


def test_the_table_says_what_was_found_and_what_was_not_run() -> None:
    tried = {
        "claude": {
            "2.1.9": TriedRelease("2026-11-18", "claude inbox", 650, WHOLE),
            "2.1.10": TriedRelease("2026-11-19", "typing", scenes={"start": YES, "idle": "not seen: `composer.row`"}),
        },
        "codex": {"0.1.0": TriedRelease("2026-11-19", reason="npm could not install it.")},
    }
    rows = release_table.render(tried).splitlines()
    assert rows[2] == "| Claude Code 2.1.10 | 2026-11-19 | typing |  | yes | no (1) |" + " not run |" * 5
    assert rows[3] == "| Claude Code 2.1.9 | 2026-11-18 | claude inbox | 0.7 s |" + " yes |" * 7
    assert rows[4] == "| Codex 0.1.0 | 2026-11-19 |  |  | not run (2) |" + " not run |" * 6
    assert rows[6:] == [
        "1. Claude Code 2.1.10, idle: not seen: `composer.row`",
        "2. Codex 0.1.0: npm could not install it.",
    ]


def test_the_page_shows_what_was_found() -> None:
    page = (ROOT / "docs" / "real-clis.md").read_text("utf-8")
    shown = re.search(r"<!-- generated: releases -->\n(.*?)<!-- end of releases -->", page, re.DOTALL)
    assert shown is not None
    assert shown[1] == release_table.render(load_tried()), "write it anew: python -m tests.real_clis.release_table"
    assert encode_tried(load_tried()) == release_table.DATA.read_bytes()


def test_a_page_without_a_place_for_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("nothing")
    with pytest.raises(ValueError, match="no place"):
        release_table.write({}, tmp_path / "page.md")
