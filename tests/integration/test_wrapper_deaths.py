"""A daemon, a wrapper or a program that dies: no message is lost for it, and none is doubled where that can be known."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from agent_relay.protocol.errors import RelayError
from tests.integration.stage import BACKENDS, DEADLINE_S, Stage, until

pytestmark = pytest.mark.terminals
TURNS = [{"when": "", "busy_ms": 200, "say": ["ok"]}]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_killed_daemon_disturbs_nobody(stage: Stage, backend: str) -> None:
    numbers = range(1, 9)
    turns = lambda other: [  # noqa: E731
        {"when": r"\]: begin", "busy_ms": 20, "line_ms": 300, "say": [f"->relay:{other} word {n}" for n in numbers]},
        {"when": "word", "busy_ms": 20, "say": ["noted"]},
    ]
    alice = stage.start("Alice", backend, turns=turns("Bob"))
    bob = stage.start("Bob", backend, turns=turns("Alice"))
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send(["Alice", "Bob"], "begin")
    until(lambda: len(alice.messages) + len(bob.messages) >= 4)
    stage.daemon.restart()
    until(lambda: len(alice.messages) >= 9 and len(bob.messages) >= 9)
    stage.settled("Alice", 9)
    stage.settled("Bob", 9)
    for agent in (alice, bob):
        assert [text for text in agent.messages if text != "begin"] == [f"word {number}" for number in numbers]
        assert agent.process.poll() is None


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_wrapper_ends_with_the_status_of_the_program(stage: Stage, backend: str) -> None:
    bob = stage.start("Bob", backend, turns=[{"when": "bye", "busy_ms": 50, "say": ["->relay:Carol farewell"], "exit": 7}])
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "bye")
        assert bob.wait() == 7
        assert carol.receive(timeout=40).body == "farewell"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_message_the_program_did_not_live_to_take_is_still_owed(stage: Stage, backend: str) -> None:
    """It goes down while the text stands in its composer, and a dialog keeps Enter away: nothing was delivered."""
    bob = stage.start("Bob", backend, at_paste={"1": {}})
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "too late")
        until(lambda: bob.events("pasted"))
        (pid,) = bob.pids()
        os.kill(pid, signal.SIGKILL)
        assert bob.wait() == 128 + signal.SIGKILL
    assert bob.submitted == []

    async def owed() -> list[str]:
        async with stage.daemon.connect(observer=True) as relay:
            page = await relay.history(to="Bob", pending=True)
            return [message["payload"]["body"] for message in page.messages]

    assert asyncio.run(owed()) == ["too late"]
    again = stage.start("Bob", backend)
    until(lambda: again.messages == ["too late"])
    stage.settled("Bob", 1)


def test_under_tmux_the_program_outlives_its_wrapper_and_is_taken_up_again(stage: Stage) -> None:
    bob = stage.start("Bob", "tmux", turns=[{"when": "", "busy_ms": 50, "say": ["->relay:Carol said once"]}])
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "one")
        assert carol.receive(timeout=60).body == "said once"
        stage.settled("Bob", 1)
        bob.process.kill()
        bob.wait()
        carol.send("Bob", "two")
        again = stage.start("Bob", "tmux")
        until(lambda: bob.messages == ["one", "two"])
        assert carol.receive(timeout=60).body == "said once"
        stage.settled("Bob", 2)
        with pytest.raises(RelayError, match="No message came"):
            carol.receive(timeout=1)  # what was on the screen before is not told again
    assert len(bob.events("started")) == 1
    again.process.send_signal(signal.SIGTERM)
    assert again.wait() == 128 + signal.SIGTERM


DEAF = r"""
import os, tty
tty.setraw(0)
os.write(1, b"\x1b[?2004h> ")
while data := os.read(0, 65536):
    os.write(1, data.replace(b"\x1b[200~", b"").replace(b"\x1b[201~", b"").replace(b"\r", b""))
"""


def script(stage: Stage, source: str) -> str:
    """In a file: an interpreter with code of its command line is not typed at."""
    file = stage.folder / "program.py"
    file.write_text(source)
    return str(file)


def test_what_the_program_does_not_take_is_reported_and_kept(stage: Stage) -> None:
    """It shows what is typed, and ignores Enter."""
    words = ["-n", "Bob", "--backend", "pty", "--no-intro", *stage.where, sys.executable, script(stage, DEAF)]
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_relay", *words], cwd=stage.project, env=stage.environ, stdin=subprocess.DEVNULL
    )
    try:

        async def ask() -> None:
            async with stage.daemon.connect("Carol") as carol:
                sent = await carol.send("Bob", "anybody there?")
                await sent.delivered(timeout=60)

        until((stage.daemon.state_dir / "team/Bob/wrapper.log").exists)
        with pytest.raises(RelayError, match=r"Enter was pressed 4 times\. It is in the agent's inbox file\."):
            asyncio.run(ask())
    finally:
        process.terminate()
        process.wait(DEADLINE_S)
    inbox = (stage.daemon.state_dir / "team/Bob/inbox.md").read_text("utf-8")
    assert "> anybody there?" in inbox
    assert "could not be given to the agent" in inbox


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_daemon_killed_while_a_message_is_typed_gets_the_acknowledgement_from_its_successor(stage: Stage, backend: str) -> None:
    bob = stage.start("Bob", backend, turns=TURNS)
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "one")
    until(lambda: bob.events("pasted"))
    stage.daemon.kill()
    until(lambda: bob.messages == ["one"])  # it is taken, though nobody can be told yet
    stage.daemon.start()
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "two")
        until(lambda: len(bob.messages) > 1)
    stage.settled("Bob", 2)
    assert bob.messages == ["one", "two"]
    assert len(bob.events("pasted")) == 2


@pytest.mark.parametrize("event", ["pasted", "submitted"], ids=["before Enter", "after Enter"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_wrapper_killed_while_it_types_loses_nothing(stage: Stage, backend: str, event: str) -> None:
    """Under tmux the program goes on, and shows what it was given: nothing is doubled. In a PTY it ends with the wrapper,
    and its successor has not seen the message."""
    dialog = {"1": {"close_ms": 3_000}} if event == "pasted" else {}  # it keeps Enter away until the wrapper is gone
    bob = stage.start("Bob", backend, turns=TURNS, at_paste=dialog)
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "one")
        until(lambda: bob.events(event))
        bob.process.kill()
        bob.wait()
        if backend == "pty":
            until(lambda: not bob.pids(), "the program is hung up")
        carol.send("Bob", "two")
        before = len(bob.messages)
        stage.start("Bob", backend, turns=TURNS)
        until(lambda: bob.messages[-1:] == ["two"])
    stage.settled("Bob", 2)
    if backend == "tmux":
        assert bob.messages == ["one", "two"]
        assert len(bob.events("pasted")) == 2
    else:
        was_told = event == "submitted" and bob.messages[before:] == ["two"]  # it had time to acknowledge the first
        assert was_told or bob.messages[before:] == ["one", "two"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_message_whose_time_is_over_is_not_typed(stage: Stage, backend: str) -> None:
    bob = stage.start("Bob", backend, turns=[{"when": "work", "busy_ms": 6_000, "say": ["done"]}, *TURNS], queueing=False)
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "work")
        until(lambda: bob.messages == ["work"])
        carol.send("Bob", "too late", ttl_ms=2_000)
        carol.send("Bob", "in time")
        until(lambda: len(bob.messages) > 1)
    assert bob.messages == ["work", "in time"]
    assert bob.bytes_in("busy") == b""


NEVER_READS = """
import os, signal, sys, tty
tty.setraw(0)
os.write(1, b"\\x1b[?2004h> ")
open(sys.argv[1], "w").write('{"event": "started"}\\n')
signal.pause()
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_program_that_never_reads_has_taken_nothing(stage: Stage, backend: str) -> None:
    record = stage.folder / "Bob.jsonl"
    bob = stage.start("Bob", backend, program=[sys.executable, script(stage, NEVER_READS), str(record)])
    with stage.daemon.connect_sync("Carol") as carol:
        sent = carol.send("Bob", "anybody there?")
        with pytest.raises(RelayError, match="no sign of taking it"):
            sent.delivered(timeout=40)
    assert "could not be given to the agent" in bob.inbox
    bob.process.send_signal(signal.SIGTERM)
    assert bob.wait() == 128 + signal.SIGTERM


def test_a_text_the_program_never_makes_room_for_stays_owed(stage: Stage) -> None:
    """More than the system keeps for a program that does not read."""
    record = stage.folder / "Bob.jsonl"
    bob = stage.start("Bob", "pty", program=[sys.executable, script(stage, NEVER_READS), str(record)])
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "x" * 100_000)
        until(lambda: "waits" in bob.log and "x" * 100_000 in bob.inbox)
    bob.process.send_signal(signal.SIGTERM)
    assert bob.wait() == 128 + signal.SIGTERM
    assert [len(body) for body in stage.owed("Bob")] == [100_000]
