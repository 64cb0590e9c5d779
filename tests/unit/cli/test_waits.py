"""`--wait` and `--reply`: with a time, or without one."""

from __future__ import annotations

import pytest

from agent_relay.cli.waits import note_old_name, spell_out_waits


@pytest.mark.parametrize(
    ("words", "spelled"),
    [
        ("send Bob hi --wait", "send Bob hi --wait=30s"),
        ("send Bob hi --wait 5s", "send Bob hi --wait 5s"),
        ("send Bob --reply hi", "send Bob --reply=30s hi"),
        ("send --wait --json Bob hi", "send --wait=30s --json Bob hi"),
        ("send Bob --wait=5s hi", "send Bob --wait=5s hi"),
        ("send Bob -- --wait", "send Bob -- --wait"),
        ("send Bob hi --await 300", "send Bob hi --await 300"),
    ],
)
def test_a_time_that_was_left_out_is_filled_in(words: str, spelled: str) -> None:
    assert spell_out_waits(words.split()) == spelled.split()


def test_an_old_name_is_noted_where_no_script_reads(capsys: pytest.CaptureFixture[str]) -> None:
    note_old_name("--await", "--reply")
    assert capsys.readouterr() == ("", "note: --await is now called --reply; the old name still works.\n")
