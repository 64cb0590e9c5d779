"""Messages in and out of the real CLIs: at ease, while they work, with a draft in the composer, and with a dialog open."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.real_clis.clis import CLIS
from tests.real_clis.harness import Lab, receive
from tests.real_clis.model.script import Turn, on_message

pytestmark = [pytest.mark.real_clis, pytest.mark.timeout(900)]

every_cli = pytest.mark.parametrize("cli", list(CLIS))

SILENCE_S = 4.0  # longer than any pause after which the relay types: that nothing happens is what is tested
SEEN_ON_SCREEN = {"composer", "screen"}  # it left the input field, or stands above it
LINES = "first line\n  second, by two\n\nlast line"
MARKED = LINES + "\n\n- an *item* with `ticks`, <tags> and snake_case\n\n```\ncode\n```"  # what a screen shows otherwise
LONG = "\n".join(f"{number:2} the quick brown fox, “naïve” and 日本, jumps" for number in range(60))
Note = Callable[[str, str], None]


@every_cli
def test_message_in(lab: Lab, cli: str) -> None:
    bob = lab.start(cli, "Bob")
    lab.send("Bob", "please look at auth.py, line 12")
    bob.until(lambda: len(bob.told()) == 1, "the model is told")
    lab.wait_until_settled(bob, 1)
    lab.send("Bob", "and now at its tests")
    bob.until(lambda: bob.times_told("and now at its tests"), "the model is told of the next one")
    lab.wait_until_settled(bob, 2)
    assert bob.told() == ["please look at auth.py, line 12", "and now at its tests"], bob.describe()
    assert bob.model.times_given("line 12") == 1, bob.describe()


@every_cli
def test_long_message_in(lab: Lab, cli: str) -> None:
    bob = lab.start(cli, "Bob")
    lab.send("Bob", f"please read:\n{LONG}\nthat was all")
    bob.until(bob.told, "the model is told")
    lab.wait_until_settled(bob, 1)
    lab.send("Bob", "and this")
    bob.until(lambda: bob.times_told("and this"), "the model is told of the next one")
    assert bob.told() == ["please read:", "and this"], bob.describe()
    assert bob.model.times_given(f"please read:\n{LONG}\nthat was all") == 1, bob.describe()


@every_cli
def test_read_evidence(lab: Lab, cli: str, record_property: Note) -> None:
    bob = lab.start(cli, "Bob")
    message_id = lab.send("Bob", "did you read this?")
    lab.wait_until_settled(bob, 1)
    if bob.cli.has_transcript:
        bob.until(lambda: lab.evidence(message_id) == "transcript", "the session file says that it was read")
    else:
        assert lab.evidence(message_id) in SEEN_ON_SCREEN, bob.describe()
    record_property("note", "its session file" if bob.cli.has_transcript else "its screen")


@every_cli
def test_answer_out(lab: Lab, cli: str) -> None:
    say = "I will tell her.\n\n->relay:Carol all 12 tests pass\n\nThat is all."
    bob = lab.start(cli, "Bob", [Turn(on_message("report"), say=say), Turn(on_message("again"), say="->relay:Carol no more")])
    with lab.client("Carol") as carol:
        lab.send("Bob", "report")
        assert receive(carol, bob) == "all 12 tests pass"
        lab.send("Bob", "again")
        assert receive(carol, bob) == "no more", bob.describe()


@every_cli
def test_fenced_answer_out(lab: Lab, cli: str, record_property: Note) -> None:
    body = MARKED if CLIS[cli].has_transcript else LINES
    end = "\n>>>" if CLIS[cli].has_transcript else ">>>"  # on a screen, one on its own line cannot be seen
    say = f"Here it is.\n\n->relay:Carol <<<\n{body}{end}\n\nThat is all."
    bob = lab.start(cli, "Bob", [Turn(on_message("report"), say=say), Turn(on_message("again"), say="->relay:Carol no more")])
    with lab.client("Carol") as carol:
        lab.send("Bob", "report")
        heard = receive(carol, bob)
        lab.send("Bob", "again")
        assert receive(carol, bob) == "no more", bob.describe()
    assert heard == bob.cli.as_heard(body), bob.describe()
    record_property("note", bob.cli.hearing)


@every_cli
def test_open_dialog(lab: Lab, cli: str) -> None:
    bob = lab.start(cli, "Bob", [Turn(on_message("clean up"), command="rm -rf build")])
    lab.send("Bob", "clean up")
    bob.until(lambda: bob.is_asking and "state: dialog" in bob.log, "it asks for permission")
    dialog = bob.dialog
    bodies = [f"yes y 1 number {number}" for number in range(3)]
    for body in bodies:
        lab.send("Bob", body)
    bob.until(lambda: bob.inbox.count("yes y 1") == 3, "the messages wait")
    time.sleep(SILENCE_S)
    assert bob.dialog == dialog, bob.describe()
    assert (lab.project / "build" / "out.o").exists(), bob.describe()
    assert bob.told() == ["clean up"], bob.describe()
    bob.approve()
    bob.until(lambda: not (lab.project / "build").exists(), "the command runs once it is permitted")
    lab.wait_until_settled(bob, 4)
    bob.until(lambda: len(bob.told()) >= 4, "the model is told")
    assert bob.told() == ["clean up", *bodies], bob.describe()


@every_cli
def test_half_written_draft(lab: Lab, cli: str) -> None:
    draft = "let me think about"
    bob = lab.start(cli, "Bob")
    bob.until(lambda: bob.is_idle, "it is idle")
    bob.type(draft)
    bob.until(lambda: draft in bob.screen, "the draft is seen")
    lab.send("Bob", "are you there?")
    bob.until(lambda: "half-written draft" in bob.log, "the message waits")
    time.sleep(SILENCE_S)
    assert draft in bob.screen, bob.describe()
    assert bob.told() == [], bob.describe()
    bob.press(*["BSpace"] * len(draft))
    bob.until(lambda: bob.times_told("are you there?"), "the model is told")
    lab.wait_until_settled(bob, 1)
    assert bob.told() == ["are you there?"], bob.describe()
    assert bob.model.times_given(draft) == 0, bob.describe()


@every_cli
def test_while_it_works(lab: Lab, cli: str) -> None:
    counting = Turn(on_message("count"), say="->relay:Carol counted to the end", drips=True)
    bob = lab.start(cli, "Bob", [counting, Turn(on_message("meanwhile 3"), say="->relay:Carol heard all three")])
    bodies = [f"meanwhile {number}" for number in (1, 2, 3)]
    with lab.client("Carol") as carol:
        lab.send("Bob", "count")
        bob.until(lambda: bob.model.script.is_dripping.is_set() and "tick 3" in bob.screen, "it works")
        for body in bodies:
            lab.send("Bob", body)
        bob.until(lambda: bob.inbox.count("> meanwhile") == 3, "the messages are there")
        time.sleep(SILENCE_S)
        assert bob.told() == ["count"], bob.describe()
        bob.model.script.release()
        assert receive(carol, bob) == "counted to the end"
        assert receive(carol, bob) == "heard all three", bob.describe()
    lab.wait_until_settled(bob, 4)
    assert bob.told() == ["count", *bodies], bob.describe()
    assert all(answered.is_whole for answered in bob.model.answered), bob.describe()


def test_claude_and_codex_talk(lab: Lab) -> None:
    alice = lab.start("claude", "Alice", [
        Turn(on_message("begin", "Carol"), say="->relay:Bob one"),
        Turn(on_message("two", "Bob"), say="->relay:Bob <<<\nthree\nlines\nhere>>>"),
    ])  # fmt: skip
    bob = lab.start("codex", "Bob", [
        Turn(on_message("one", "Alice"), say="->relay:Alice two"),
        Turn(on_message("three", "Alice"), say="->relay:Carol finished"),
    ])  # fmt: skip
    with lab.client("Carol") as carol:
        carol.send("Alice", "begin")
        assert receive(carol, bob) == "finished"
    lab.wait_until_settled(alice, 2)
    lab.wait_until_settled(bob, 2)
    assert alice.told() == ["begin", "two"], alice.describe()
    assert bob.told() == ["one", "three"], bob.describe()
    assert bob.model.times_given("three\nlines\nhere") == 1, bob.describe()
