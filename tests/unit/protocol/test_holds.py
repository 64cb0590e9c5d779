"""Why messages wait: every reason has its sentence, and what to do."""

from __future__ import annotations

import pytest

from agent_relay.protocol.holds import (
    SENTENCES,
    Hold,
    HoldReason,
    describe_hold,
    encode_waits,
    read_hold,
    read_waits,
    show_hold,
)


def line(hold: Hold, you: str = "") -> str:
    return describe_hold(hold, "Bob", lambda at_ms: f"at {at_ms}", you).line


def test_every_reason_has_a_sentence() -> None:
    assert set(SENTENCES) == set(HoldReason)


@pytest.mark.parametrize(
    ("hold", "said"),
    [
        (
            Hold("dialog", "permission", request="3f9c2a11aaaa", kind="permission"),
            "Bob has a dialog open: approve it with `agent-relay permissions approve 3f9c2a11`",
        ),
        (
            Hold("dialog", request="3f9c2a11aaaa", kind="question"),
            "Bob has a dialog open: answer it with `agent-relay questions answer 3f9c2a11 TEXT`",
        ),
        (Hold("dialog"), "Bob has a dialog open: answer it with `agent-relay attach Bob`"),
        (Hold("prompt", "its prompt is not to be seen"), "Bob's prompt was not recognised: see `agent-relay profile new`"),
        (Hold("typing"), "you are typing in Bob's terminal; delivered when you pause"),
        (Hold("loop_guard", count=61), "loop guard: 61 answers in a row, `agent-relay resume Bob`"),
        (Hold("paused", by="Alice"), "paused by Alice: `agent-relay resume Bob`"),
        (Hold("paused", by="human"), "paused by a person: `agent-relay resume Bob`"),
        (Hold("offline", since=7), "offline since at 7; delivered when it comes back"),
        (Hold("unacknowledged"), "Bob has it but has not acknowledged it yet"),
    ],
)
def test_the_sentences(hold: Hold, said: str) -> None:
    assert line(hold) == said


def test_you_are_named_so_to_yourself_alone() -> None:
    assert line(Hold("paused", by="Anna"), you="anna").startswith("paused by you:")
    assert line(Hold("paused", by="Anna"), you="bert").startswith("paused by Anna:")


def test_a_reason_of_a_newer_version_is_shown_by_its_words() -> None:
    assert line(Hold("moon_phase")) == "moon phase: look with `agent-relay attach Bob`"
    assert line(Hold("moon_phase", "the moon is full")).startswith("the moon is full")


def test_braces_on_a_screen_are_no_fields() -> None:
    assert "{name} {0}" in line(Hold("program", "{name} {0}"))


def test_what_is_no_hold_is_none() -> None:
    assert [read_hold(raw) for raw in (None, "x", {}, {"reason": 1})] == [None] * 4
    assert show_hold({"name": "Bob", "hold": None}, str) is None


def test_for_programs_it_has_word_and_sentences() -> None:
    shown = show_hold({"name": "Bob", "hold": {"reason": "paused", "by": "Alice"}}, str)
    assert shown is not None
    assert shown["line"] == f"{shown['text']}: {shown['todo']}"
    assert (shown["reason"], shown["text"], shown["todo"]) == ("paused", "paused by Alice", "`agent-relay resume Bob`")


def test_in_a_trail() -> None:
    assert read_waits(encode_waits(Hold("prompt", "x"))) == Hold("prompt", "x")
    assert read_waits("its prompt is not to be seen") is None  # as an older daemon wrote it
