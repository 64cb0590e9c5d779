"""Nothing is typed into a dialog, over a draft, or while somebody types."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from tests.integration.stage import BACKENDS, Stage, Window, until

pytestmark = pytest.mark.terminals


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_is_typed_into_a_dialog_and_the_message_comes_when_it_is_closed(stage: Stage, backend: str) -> None:
    dialog = {"question": "Do you want to run rm -rf build?", "options": ["Yes", "No"]}
    turns = [{"when": "clean", "busy_ms": 50, "dialog": dialog, "say": ["done"]}, {"when": "", "busy_ms": 50, "say": ["ok"]}]
    bob = stage.start("Bob", backend, person=backend == "pty", turns=turns)
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "clean up")
        until(lambda: any(event["mode"] == "dialog" for event in bob.events("mode")), "the dialog opens")
        until(lambda: "a dialog is open" in bob.log or "state: dialog" in bob.log)
        for number in range(3):
            carol.send("Bob", f"yes y 1 {number}")
        until(lambda: (bob.team / "inbox.md").read_text("utf-8").count("yes y 1") == 3)
        time.sleep(3)  # long enough for every deadline of the injection: silence is what is tested
        assert bob.bytes_in("dialog") == b""
        assert not bob.events("answered")
        stage.type_keys(bob, "2")  # as a person would: the second option
        until(lambda: len(bob.messages) == 4)
    assert bob.messages == ["clean up", "yes y 1 0", "yes y 1 1", "yes y 1 2"]
    assert [event["option"] for event in bob.events("answered")] == ["No"]
    stage.settled("Bob", 4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_half_written_draft_is_waited_for(stage: Stage, backend: str) -> None:
    bob = stage.start("Bob", backend, person=backend == "pty", turns=[{"when": "", "busy_ms": 50, "say": ["ok"]}])
    stage.type_keys(bob, "let me think")
    until(lambda: bob.bytes_in("prompt") == b"let me think")
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "hello")
        until(lambda: "half-written draft" in bob.log)
        time.sleep(2.5)  # longer than a person's pause counts
        assert bob.bytes_in("prompt") == b"let me think"
        stage.type_keys(bob, "\r")
        until(lambda: bob.messages)
    assert bob.submitted[0] == "let me think"
    assert bob.messages == ["hello"]


def test_a_person_who_types_without_pause_is_not_interrupted(stage: Stage) -> None:
    """Each line is submitted at once, so that the composer is empty most of the time."""
    bob = stage.start("Bob", "pty", person=True, turns=[{"when": "", "busy_ms": 20, "say": ["ok"]}])
    lines = [f"line {number}" for number in range(12)]
    typed_at: list[float] = []

    def type_lines() -> None:
        for line in lines:
            stage.type_keys(bob, f"{line}\r")
            typed_at.append(time.monotonic())
            time.sleep(0.3)

    with stage.daemon.connect_sync("Carol") as carol, ThreadPoolExecutor() as person:
        typing = person.submit(type_lines)
        until(lambda: bob.submitted)
        carol.send("Bob", "hello")
        typing.result()
        until(lambda: bob.messages)
    until(lambda: len(bob.submitted) == len(lines) + 1)
    assert [words for words in bob.submitted if words in lines] == lines
    if max(later - earlier for earlier, later in pairwise(typed_at)) < 1.0:  # a machine that stalls makes a pause for the person
        assert bob.submitted[:-1] == lines


def test_a_message_that_waits_long_is_neither_lost_nor_doubled(folder: Path) -> None:
    """The daemon sends it again and again, and gives up; it is owed all the same."""
    stage = Stage(folder, "--ack-timeout-ms=200", "--max-attempts=2")
    try:
        turns = [{"when": "work", "busy_ms": 5_000, "say": ["done"]}, {"when": "", "busy_ms": 20, "say": ["ok"]}]
        bob = stage.start("Bob", "pty", turns=turns)
        with stage.daemon.connect_sync("Carol") as carol:
            carol.send("Bob", "work")
            until(lambda: bob.messages == ["work"])
            for number in range(3):
                carol.send("Bob", f"later {number}")
            until(lambda: len(bob.messages) == 4)
        stage.settled("Bob", 4)
        assert bob.messages == ["work", "later 0", "later 1", "later 2"]
        assert not bob.bytes_in("busy")
    finally:
        stage.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_who_types_while_messages_arrive_sends_their_own_words_alone(stage: Stage, backend: str) -> None:
    """Key by key, with the pauses of a person; one of them is longer than a pause counts, and the draft is left alone."""
    bob = stage.start("Bob", backend, person=True, turns=[{"when": "", "busy_ms": 200, "say": ["ok"]}])
    assert bob.window is not None
    until(lambda: "›".encode() in bob.window.shown, "the person sees its prompt")
    own = "check the build, then tell me"
    with stage.daemon.connect_sync("Carol") as carol:
        for number, key in enumerate(own):
            bob.window.type(key.encode())
            if number % 6 == 5:
                carol.send("Bob", f"word {number // 6}")
            time.sleep(2.6 if number == 17 else 0.12)
        until(lambda: bob.bytes_in("prompt") == own.encode(), "the draft is intact")
        assert bob.submitted == []
        bob.window.type(b"\r")
        until(lambda: len(bob.submitted) == 5)
    assert bob.submitted[0] == own
    assert bob.messages == ["word 0", "word 1", "word 2", "word 3"]
    stage.settled("Bob", 4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_window_that_changes_its_size_during_a_paste_breaks_nothing(stage: Stage, backend: str) -> None:
    bob = stage.start("Bob", backend, person=True, turns=[{"when": "", "busy_ms": 200, "say": ["ok"]}], placeholder_from=1_000)
    window = bob.window
    assert window is not None
    until(lambda: "›".encode() in window.shown, "the person sees its prompt")
    bodies = ["".join(f"{number:06} {'x' * 90}\n" for number in range(1_000)) + "end", "after it"]
    sizes = [(80, 24), (47, 13), (132, 50), (100, 30)]
    with stage.daemon.connect_sync("Carol") as carol:
        for body in bodies:
            carol.send("Bob", body)
        until(lambda: _resize(window, sizes) and len(bob.messages) == 2, "both are taken")
    assert bob.messages == bodies
    stage.settled("Bob", 2)


def _resize(window: Window, sizes: list[tuple[int, int]]) -> bool:
    sizes.append(sizes.pop(0))
    window.resize(*sizes[0])
    return True
