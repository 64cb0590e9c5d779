"""Text → commands: every format, everything that is no command, and the same outcome however the text is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.output.commands import (
    Command,
    FileCommand,
    Found,
    JoinCommand,
    LeaveCommand,
    ReleaseCommand,
    ResultCommand,
    SendCommand,
    SpawnCommand,
    Spoken,
    Unfinished,
    VoteCommand,
)
from agent_relay.terminal.output.parser import MAX_BODY_CHARACTERS, CommandParser, Syntax
from tests.unit.terminal.recorded_screens import CASES, EXPECTED


def parse(text: str, syntax: Syntax | None = None) -> list[Found]:
    parser = CommandParser(syntax)
    return parser.feed_text(text) + parser.end()


def commands(text: str, syntax: Syntax | None = None) -> list[Command]:
    return [item.command for item in parse(text, syntax) if isinstance(item, Spoken)]


def send(to: str, body: str, kind: str = "message") -> SendCommand:
    return SendCommand(tuple(to.split(",")), body, kind)


COMMANDS: dict[str, tuple[str, list[Command]]] = {
    "inline": ("->relay:Bob hello there", [send("Bob", "hello there")]),
    "inline, older": ("@relay:Bob hello", [send("Bob", "hello")]),
    "inline, indented a little": ("   ->relay:Bob hi", [send("Bob", "hi")]),
    "inline, Windows line end": ("->relay:Bob hi\r\n", [send("Bob", "hi")]),
    "inline, colon after the name": ("->relay:Bob: hi", [send("Bob", "hi")]),
    "broadcast": ("->relay:* hello all", [send("*", "hello all")]),
    "channel": ("->relay:#dev hello", [send("#dev", "hello")]),
    "several": ("->relay:Bob,Carol hello", [send("Bob,Carol", "hello")]),
    "thinking": ("->thinking:Bob it is the cache", [send("Bob", "it is the cache", "thinking")]),
    "thinking, older": ("@thinking:* hm", [send("*", "hm", "thinking")]),
    "bullet": ("- ->relay:Bob hi\n- second", [send("Bob", "hi")]),
    "numbered": ("1. ->relay:Bob hi", [send("Bob", "hi")]),
    "nested bullet": ("- plan\n    - ->relay:Bob hi", [send("Bob", "hi")]),
    "fenced": ("->relay:Bob <<<\none\n\n  two>>>\nrest", [send("Bob", "one\n\n  two")]),
    "fenced, end on its own": ("->relay:Bob <<<\none\n>>>", [send("Bob", "one")]),
    "fenced, on one line": ("->relay:Bob <<<one two>>>", [send("Bob", "one two")]),
    "fenced, text after the mark": ("->relay:Bob <<< one\ntwo>>>", [send("Bob", "one\ntwo")]),
    "fenced, without a space": ("->relay:Bob<<<\none>>>", [send("Bob", "one")]),
    "fenced, keeps the first indent": ("->relay:Bob <<<\n    code\n>>>", [send("Bob", "    code")]),
    "fenced, code inside": ("->relay:Bob <<<\n```\n>>>\n```\ndone>>>", [send("Bob", "```\n>>>\n```\ndone")]),
    "fenced, unclosed code inside": ("->relay:Bob <<<\n```\nx\n>>>\n->relay:Al hi", [send("Bob", "```\nx"), send("Al", "hi")]),
    "fenced, commands inside are text": ("->relay:Bob <<<\n->relay:Al no\n>>>", [send("Bob", "->relay:Al no")]),
    "fenced thinking": ("->thinking:Bob <<<\na\nb>>>", [send("Bob", "a\nb", "thinking")]),
    "two in a row": ("->relay:A yes\n->relay:A yes", [send("A", "yes"), send("A", "yes")]),
    "block": ('[[RELAY]]{"to":"Bob","type":"message","body":"x"}[[/RELAY]]', [send("Bob", "x")]),
    "block, lines": ('[[RELAY]]\n{"to": "*",\n "body": "x"}\n[[/RELAY]]', [send("*", "x")]),
    "block, list": ('[[RELAY]]{"to":["A","B"],"body":"x"}[[/RELAY]]', [send("A,B", "x")]),
    "block, all fields": (
        '[[RELAY]]{"to":"Bob","kind":"action","body":"x","thread":"t1","data":{"n":1}}[[/RELAY]]',
        [SendCommand(("Bob",), "x", "action", "t1", {"n": 1})],
    ),
    "file": ("->relay-file:msg-1", [FileCommand("msg-1")]),
    "spawn": ('->relay:spawn Dev claude "fix \\"auth\\""', [SpawnCommand("Dev", "claude", 'fix "auth"')]),
    "spawn without a task": ("->relay:spawn Dev claude", [SpawnCommand("Dev", "claude")]),
    "spawn, task without quotes": ("->relay:spawn Dev codex fix the tests", [SpawnCommand("Dev", "codex", "fix the tests")]),
    "spawn, fenced task": ("->relay:spawn Dev claude <<<\none\ntwo>>>", [SpawnCommand("Dev", "claude", "one\ntwo")]),
    "release": ("->relay:release Dev", [ReleaseCommand("Dev")]),
    "vote": ("->relay:vote 3f9c2a11 approve", [VoteCommand("3f9c2a11", "approve")]),
    "vote, with a reason": ("- ->relay:vote [3f9c2a11] Reject: too slow", [VoteCommand("3f9c2a11", "reject", "too slow")]),
    "vote, fenced reason": ("->relay:vote 3f9c2a11 abstain <<<\none\ntwo>>>", [VoteCommand("3f9c2a11", "abstain", "one\ntwo")]),
    "vote, by the whole id": (
        "->relay:vote prop_01M7Q8Q3FKSH2SCR3GM5J80000 approve", [VoteCommand("prop_01M7Q8Q3FKSH2SCR3GM5J80000", "approve")],
    ),
    "a word that is no vote is for the daemon to refuse": ("->relay:vote 3f9c2a11 maybe", [VoteCommand("3f9c2a11", "maybe")]),
    "an agent called vote": ("->relay:vote please have a look", [SendCommand(("vote",), "please have a look")]),
    "result": ("->relay:result task-3fa9-1 no problems", [ResultCommand("task-3fa9-1", "no problems")]),
    "result, fenced": ('->relay:result t.1 <<<\n{"a":\n 1}\n>>>', [ResultCommand("t.1", '{"a":\n 1}')]),
    "a message to an agent of that name": ("->relay:result well done", [send("result", "well done")]),
    "result, fenced on one line": ("->relay:result t.1 <<<yes>>>", [ResultCommand("t.1", "yes")]),
    "after a diff": ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\n->relay:Bob done", [send("Bob", "done")]),
    "after a fence": ("```\nx\n```\n->relay:Bob done", [send("Bob", "done")]),
    "after a longer fence": ("````\n```\n->relay:Bob no\n````\n->relay:Bob yes", [send("Bob", "yes")]),
    "comparison in the text": ("->relay:Bob a <<< b", [send("Bob", "a <<< b")]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), COMMANDS.values(), ids=COMMANDS.keys())
def test_commands_are_understood(text: str, expected: list[Command]) -> None:
    assert commands(text) == expected


SILENT = {
    "result without a value": "->relay:result t.1",
    "result of the placeholder": "->relay:result TASK yes",
    "escaped": "\\->relay:Bob hello",
    "in the middle of a line": "say ->relay:Bob hello",
    "inline code": "`->relay:Bob hello`",
    "fence": "```\n->relay:Bob hello\n```",
    "fence with a language": "```text\n->relay:Bob hello\n```",
    "tildes": "~~~\n->relay:Bob hello\n~~~",
    "fence in a list": "- ```\n  ->relay:Bob hello\n  ```",
    "fence that is never closed": "```\n->relay:Bob hello",
    "indented code": "So:\n\n    ->relay:Bob hello",
    "indented by a tab": "So:\n\n\t->relay:Bob hello",
    "quotation": "> ->relay:Bob hello",
    "quotation of a quotation": ">> ->relay:Bob hello",
    "diff, added": "@@ -1 +1 @@\n+->relay:Bob hello",
    "diff, removed like a bullet": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n- ->relay:Bob hello",
    "diff, context": "@@ -1 +1 @@\n ->relay:Bob hello",
    "conflict markers": "<<<<<<< SEARCH\n->relay:Bob hello\n=======\n->relay:Bob hi\n>>>>>>> REPLACE",
    "placeholder": "->relay:AgentName message",
    "placeholder in capitals": "->relay:NAME <<<\nbody>>>",
    "placeholder in brackets": "->relay:<name> message",
    "no name": "->relay: hello",
    "no body": "->relay:Bob",
    "not a name": "->relay:Bo!b hello",
    "echo of an injected message": "Relay message from Alice [abc12345]: ->relay:Bob hello",
    "spawn without a CLI": "->relay:spawn Dev",
    "release without a name": "->relay:release",
    "the vote of our own notices": "->relay:vote 3f9c2a11 approve|reject|abstain",
    "the vote of our own introduction": "->relay:vote ID approve and your reason",
    "vote without a choice": "->relay:vote 3f9c2a11",
    "file with a path": "->relay-file:../secret",
    "block not at the start": 'see [[RELAY]]{"to":"B","body":"x"}[[/RELAY]]',
    "block in a fence": '```\n[[RELAY]]{"to":"B","body":"x"}[[/RELAY]]\n```',
    "fenced command in a fence": "```\n->relay:Bob <<<\nx>>>\n```",
}


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT.keys())
def test_what_is_no_command_says_nothing(text: str) -> None:
    assert commands(text) == []


@pytest.mark.parametrize("case", EXPECTED)
def test_the_recorded_answers(case: str) -> None:
    assert [[c.target, c.body] for c in commands(CASES[case]) if isinstance(c, SendCommand)] == EXPECTED[case]


def test_what_was_opened_and_not_closed_is_reported_and_swallows_the_rest() -> None:
    found = parse("hello\n->relay:Bob <<<\none\n->relay:Al hi")
    assert found == [Unfinished("Bob", "The message was opened with <<< but not closed with >>>.", 1)]


def test_a_block_that_cannot_be_read_is_reported() -> None:
    for text in ("[[RELAY]]{no}[[/RELAY]]", '[[RELAY]]{"body":"x"}[[/RELAY]]', '[[RELAY]]{"to":"<b>","body":"x"}[[/RELAY]]'):
        (found,) = parse(text)
        assert isinstance(found, Unfinished)
    assert [type(item) for item in parse('[[RELAY]]{"to":')] == [Unfinished]


def test_an_empty_body_is_reported() -> None:
    (found,) = parse("->relay:Bob <<<\n>>>")
    assert isinstance(found, Unfinished)


def test_a_body_beyond_all_limits_is_reported_and_over() -> None:
    parser = CommandParser()
    parser.feed("->relay:Bob <<<", 0)
    (found,) = parser.feed("x" * (MAX_BODY_CHARACTERS + 1), 1)
    assert isinstance(found, Unfinished)
    assert parser.feed("->relay:Bob hi", 2) == [Spoken(send("Bob", "hi"), 2, 2)]


def test_a_line_shown_as_code_begins_nothing() -> None:
    parser = CommandParser()
    assert parser.feed("->relay:Bob no", 0, is_code=True) == []
    assert parser.feed("->relay:Bob yes", 1) == [Spoken(send("Bob", "yes"), 1, 1)]


def test_places_are_those_of_the_first_and_last_line() -> None:
    (found,) = parse("a\n\n->relay:Bob <<<\nx\ny>>>\nz")
    assert isinstance(found, Spoken)
    assert (found.place, found.last_place) == (2, 4)


def test_a_configured_prefix_replaces_the_usual_ones() -> None:
    syntax = Syntax("%team:")
    assert commands("->relay:Bob no\n@relay:Bob no\n%team:Bob yes\n%team-file:x", syntax) == [
        send("Bob", "yes"),
        FileCommand("x"),
    ]


def test_marks_as_a_screen_shows_them() -> None:
    syntax = Syntax(block_marks=(("[RELAY]", "[/RELAY]"),), close_lines=("│ >>",))
    assert commands('[RELAY]{"to":"B","body":"x"}[/RELAY]', syntax) == [send("B", "x")]
    assert commands("->relay:B <<<\nx\n   │ >>\n", syntax) == [send("B", "x")]


# --- any chunking gives the same commands ------------------------------------------------------------------------------

LINES = st.sampled_from(
    [
        "", "text", "->relay:Bob hi", "->relay:Al <<<", "body", "end>>>", ">>>", "```", "~~~", "> quoted", "- ->relay:C x",
        '[[RELAY]]{"to":"B",', '"body":"x"}[[/RELAY]]', "@@ -1 +1 @@", "+added", "    code", "->relay:spawn D claude",
        "\\->relay:B x",
        "<<<<<<< SEARCH", ">>>>>>> REPLACE", "->relay:Bob <<< one>>>", "日本 👩‍💻", "@thinking:E hm",
    ]
)  # fmt: skip


@given(st.lists(LINES, max_size=25).map("\n".join), st.lists(st.integers(1, 12), min_size=1, max_size=40))
def test_any_chunking_gives_the_same(text: str, sizes: list[int]) -> None:
    parser = CommandParser()
    found: list[Found] = []
    at = 0
    for index in range(len(text) + 1):
        size = sizes[index % len(sizes)]
        found += parser.feed_text(text[at : at + size])
        at += size
    assert found + parser.end() == parse(text)


@given(st.text(st.sampled_from('->relay:Bob <>`~[]{}"RELAY/\n\\ -*1.#@|x'), max_size=300))
def test_nothing_ever_raises(text: str) -> None:
    parse(text)


# --- the nonce -----------------------------------------------------------------------------------------------------------

SIGNED = Syntax(nonce="1f2e3d4c")


def heard(text: str, syntax: Syntax) -> list[tuple[object, bool]]:
    parser = CommandParser(syntax)
    found = [*parser.feed_text(text), *parser.end()]
    return [(item.command, item.is_signed) for item in found if isinstance(item, Spoken)]


@pytest.mark.parametrize(
    ("text", "is_signed"),
    [
        ("->relay-1f2e3d4c:Bob hi", True),
        ("->relay-1f2e3d4c:Bob <<<\nhi\n>>>", True),
        ('[[RELAY]]{"to": "Bob", "body": "hi", "nonce": "1f2e3d4c"}[[/RELAY]]', True),
        ("->relay:Bob hi", False),
        ('[[RELAY]]{"to": "Bob", "body": "hi", "nonce": "00000000"}[[/RELAY]]', False),
        ('[[RELAY]]{"to": "Bob", "body": "hi"}[[/RELAY]]', False),
    ],
)
def test_a_command_with_the_nonce_is_signed(text: str, is_signed: bool) -> None:
    assert heard(text, SIGNED) == [(send("Bob", "hi"), is_signed)]
    strict = Syntax(nonce="1f2e3d4c", is_strict=True)
    assert heard(text, strict) == ([(send("Bob", "hi"), True)] if is_signed else [])


@pytest.mark.parametrize("text", ["->relay-00000000:Bob hi", "->relay-:Bob hi", "->relay-1f2e3d4:Bob hi"])
def test_another_nonce_is_no_command(text: str) -> None:
    assert heard(text, SIGNED) == []
    assert heard(text, Syntax()) == []


def test_without_a_nonce_nothing_is_signed() -> None:
    assert heard('[[RELAY]]{"to": "Bob", "body": "hi", "nonce": ""}[[/RELAY]]', Syntax()) == [(send("Bob", "hi"), False)]


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("->relay:join #dev", JoinCommand("#dev")),
        ("->relay:leave #dev ", LeaveCommand("#dev")),
        ("->relay:#dev hello there", SendCommand(("#dev",), "hello there")),
        ("->relay:topic:code.review ready", SendCommand((), "ready", topic="code.review")),
        ("->relay:topic:code.review <<<ready>>>", SendCommand((), "ready", topic="code.review")),
        ("->relay:join me at noon", SendCommand(("join",), "me at noon")),  # an agent may be called so
        ('[[RELAY]]{"topic": "code.review", "body": "ready"}[[/RELAY]]', SendCommand((), "ready", topic="code.review")),
    ],
)
def test_channels_and_topics(line: str, command: object) -> None:
    parser = CommandParser()
    found = [*parser.feed(line, 0), *parser.end()]
    assert [each.command for each in found if isinstance(each, Spoken)] == [command]


@pytest.mark.parametrize("line", ["->relay:topic:a..b x", "->relay:topic:code.review", "->relay:join"])
def test_what_is_no_topic_and_no_channel(line: str) -> None:
    parser = CommandParser()
    assert [*parser.feed(line, 0), *parser.end()] == []
