"""A profile is proposed from a recording, written down, and held to the same recording."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from agent_relay.terminal.profiles.custom_profile import write_profile
from agent_relay.terminal.profiles.profile import Profile, load_profiles, parse_profile
from agent_relay.terminal.recordings.asciicast import Cast, CastEvent, CastHeader
from agent_relay.terminal.recordings.profile_proposal import EXPECT, WAITS, propose
from agent_relay.terminal.recordings.profile_trial import check_recording, mark_expectations, recordings_of

CLEAR = "\r\x1b[2K"


def record(*events: tuple[float, str, str]) -> Cast:
    return Cast(CastHeader(2, 60, 12), [CastEvent(*event) for event in events])


def turns(prompt: str, *, marked: bool = True) -> Cast:
    """Two turns of a program with a spinner."""
    events: list[tuple[float, str, str]] = [(0.1, "o", f"Welcome to it\r\n{prompt}")]
    for start in (0.0, 8.0):
        events += [(start + 2.0, "m", WAITS)] if marked else []
        events += [(start + 3.0, "o", "hello\r\n")]
        events += [(start + 3.1 + at * 0.2, "o", f"\r{'⠋⠙⠹⠸'[at % 4]} Brewing coffee... {at}s") for at in range(10)]
        events += [(start + 5.2, "o", f"{CLEAR}You said hello\r\n{prompt}")]
    return record(*events, *([(15.0, "m", WAITS)] if marked else []))


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [("[chat] ", "[chat]"), ("What now? ", "What now?"), ("you: ", "you:"), ("\x1b[32mgo 7\x1b[0m ❯ ", "go 7 ❯")],
)
@pytest.mark.parametrize("marked", [True, False])
def test_prompt_and_work_are_found(prompt: str, shown: str, marked: bool) -> None:
    found = propose(turns(prompt, marked=marked))
    assert found.shown == shown
    assert len(found.busy) == 1
    assert "Brewing coffee" in found.busy[0]
    assert found.idle_at
    assert found.busy_at
    assert not set(found.idle_at) & set(found.busy_at)


def test_numbers_in_a_prompt_may_change() -> None:
    cast = record((0.1, "o", "go 1 > "), (1.0, "m", WAITS), (2.0, "o", "x\r\ngo 2 > "), (3.0, "m", WAITS), (4.0, "o", "\r\n"))
    profile = parse(propose(cast).prompt)
    assert profile.composer.row == r"^go \d+ >(?:\s(?P<draft>.*))?$"


def test_a_box_around_the_prompt() -> None:
    box = "╭────────╮\r\n│ >      │\r\n╰────────╯\r\n  ? for help\x1b[2A\x1b[5G"
    found = propose(record((0.1, "o", box), (1.0, "m", WAITS), (2.0, "m", WAITS)))
    assert found.shown == "│ >"
    assert found.prompt.endswith("[│┃║]$")


def test_nothing_is_made_up() -> None:
    found = propose(record((0.1, "o", "working\r\n"), (1.0, "m", WAITS), (2.0, "o", "still\r\n")))
    assert (found.prompt, found.busy, found.idle_at) == ("", [], [])
    assert propose(record()).prompt == ""


def parse(prompt: str, busy: tuple[str, ...] = ()) -> Profile:
    return parse_profile(write_profile("chatty", "chatty-cli", prompt, busy), "chatty.toml", is_own=True)


def save(cast: Cast, path: Path) -> Path:
    path.write_bytes(b"\n".join(msgspec.json.encode(each) for each in (cast.header, *cast.events)) + b"\n")
    return path


def test_what_was_proposed_passes_its_own_test_and_another_does_not(tmp_path: Path) -> None:
    path = save(turns("[it's \\me] "), tmp_path / "chatty.cast")
    found = propose(turns("[it's \\me] "))
    mark_expectations(path, found)
    profile = parse(found.prompt, tuple(found.busy))
    outcome = check_recording(path, profile, load_profiles())
    assert (outcome.expectations, outcome.differences) == (8, [])
    wrong = check_recording(path, parse("^never$"), load_profiles())
    assert {(each.expected, each.found) for each in wrong.differences} >= {("idle", "starting")}
    mark_expectations(path, found)  # the old marks are replaced
    assert path.read_text().count(EXPECT) == 8


def test_recordings_lie_beside_the_profile(tmp_path: Path) -> None:
    for name in ("chatty.cast", "chatty.second.cast", "other.cast", "chattyx.cast"):
        (tmp_path / name).touch()
    source = write_profile("chatty", "", "^> ", ())
    profile = parse_profile(source, str(tmp_path / "chatty.toml"), is_own=True)
    assert [path.name for path in recordings_of(profile)] == ["chatty.cast", "chatty.second.cast"]
    assert recordings_of(load_profiles()["claude"]) == []
