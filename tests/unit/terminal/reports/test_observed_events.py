"""Observations → events: every one is what the events room takes, and nothing is told twice over."""

from __future__ import annotations

from agent_relay.events.codec import build_event
from agent_relay.terminal.output.observations import (
    CommandRun,
    FileTouched,
    MessageTaken,
    Observation,
    SpeechPart,
    TokensUsed,
    ToolEnded,
    ToolStarted,
    Uttered,
)
from agent_relay.terminal.reports.observed_events import ObservedEvents

WHOSE = {"sessionId": "ses_1", "agentName": "Bob"}


def check(seen: Observation, teller: ObservedEvents | None = None) -> dict[str, object]:
    (told,) = check_all(seen, teller)
    return told


def check_all(seen: Observation, teller: ObservedEvents | None = None) -> list[dict[str, object]]:
    found = (teller or ObservedEvents("run")).of(seen)
    for type_, fields in found:
        build_event(type_, fields | WHOSE, "payload.fields")  # raises where the events room would refuse it
    return [{"type": type_, **fields} for type_, fields in found]


def test_a_tool_begins_and_ends() -> None:
    teller = ObservedEvents("run")
    begun, ended = check(ToolStarted("t1", "Bash"), teller), check(ToolEnded("t1", "Bash", True), teller)
    assert (begun["type"], begun["itemId"], begun["metadata"]) == ("item.started", "t1", {"tool": "Bash"})
    assert (ended["type"], ended["itemId"], ended["result"]) == ("item.completed", "t1", {"isError": True})
    assert teller.of(ToolEnded("t1", "Bash", False)) == []
    assert teller.of(ToolEnded("never", "Bash", False, "x")) == []


def test_a_tool_that_a_hook_and_the_session_file_tell_of_is_told_once() -> None:
    """In whichever order, and also where the file is read long after the tool has ended."""
    teller = ObservedEvents("run")
    started, ended = ToolStarted("t1", "Bash"), ToolEnded("t1", "Bash", False, "a")
    told = [each for seen in (started, started, ended, started, ended) for each in check_all(seen, teller)]
    assert [each["type"] for each in told] == ["item.started", "item.delta", "item.completed"]


def test_what_a_tool_is_given_and_what_it_says_stand_between() -> None:
    teller = ObservedEvents("run")
    told = check_all(ToolStarted("t1", "Bash", '{"command":"ls"}'), teller) + check_all(
        ToolEnded("t1", "Bash", False, "a"), teller
    )
    assert [each["type"] for each in told] == ["item.started", "item.delta", "item.delta", "item.completed"]
    assert {each["itemId"] for each in told} == {"t1"}
    assert [each["delta"] for each in told[1:3]] == [
        {"type": "tool_input", "content": '{"command":"ls"}'}, {"type": "tool_output", "content": "a"}
    ]  # fmt: skip


def test_tokens_without_the_cached_ones_and_with_an_id_that_stays() -> None:
    seen = TokensUsed(1_000, 50, "m", 300, 100, input_includes_cache=True, id="r1")
    told = check(seen)
    assert (told["inputTokens"], told["cacheReadTokens"], told["usageId"]) == (600, 300, "run:r1")
    assert check(seen) == told
    assert check(TokensUsed(10, 5))["model"] == "unknown"


def test_files_and_commands() -> None:
    assert check(FileTouched("edit", "/a.py")) == {"type": "file.operation", "operation": "edit", "filePath": "/a.py"}
    assert check(CommandRun("ls", None, 12))["exitCode"] is None
    assert check(CommandRun("ls", 0, 12, "a\n"))["stdout"] == "a\n"


def test_what_is_told_in_another_way_is_not_told_here() -> None:
    assert ObservedEvents("run").of(MessageTaken("hello")) == []
    assert ObservedEvents("run").of(FileTouched("read", "")) == []


def test_a_message_is_begun_said_and_done() -> None:
    begun, said, done = check_all(Uttered("m1", "message", "hello", 1_500, 1_000))
    assert (begun["itemType"], begun["startedAt"], done["completedAt"], done["duration"]) == ("message", 1_000, 1_500, 500)
    assert said["delta"] == {"type": "text", "content": "hello"}


def test_a_thought_without_words_or_a_beginning() -> None:
    begun, done = check_all(Uttered("t1", "thinking", "", 1_500))
    assert (begun["itemType"], begun["startedAt"], done["duration"]) == ("thinking", 1_500, None)


def test_a_change_of_a_file_has_what_is_known_of_it() -> None:
    assert check(FileTouched("create", "a", 2, "+x\n+y"))["linesChanged"] == 2
    assert set(check(FileTouched("edit", "a"))) == {"type", "operation", "filePath"}


def test_a_command_has_both_its_outputs() -> None:
    told = check(CommandRun("ls", 1, None, "out", "err"))
    assert (told["exitCode"], told["duration"], told["stdout"], told["stderr"]) == (1, None, "out", "err")


def test_a_message_is_told_while_it_is_said() -> None:
    teller = ObservedEvents("run")
    first = check_all(SpeechPart("m1", "message", "Let me "), teller)
    assert [each["type"] for each in first] == ["item.started", "item.delta"]
    (more,) = check_all(SpeechPart("m1", "message", "look"), teller)
    assert more["delta"] == {"type": "text", "content": "look"}
    (done,) = check_all(SpeechPart("m1", "message", "", is_last=True), teller)
    assert (done["type"], done["itemId"]) == ("item.completed", "m1")
    assert [each["type"] for each in check_all(SpeechPart("m1", "message", "", is_last=True), teller)] == [
        "item.started",
        "item.completed",
    ]
