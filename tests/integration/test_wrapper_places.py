"""Where a wrapped agent may be started: without a tmux, inside one, in a narrow or a dumb terminal; and how that is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.backends.tmux_program import find_tmux
from agent_relay.terminal.backends.tmux_server import TmuxServer
from tests.integration.stage import BACKENDS, Agent, Stage, Window, until

pytestmark = pytest.mark.terminals
TURNS = [{"when": "", "busy_ms": 200, "say": ["ok"]}]


def sees_prompt(agent: Agent) -> Window:
    window = agent.window
    assert window is not None
    until(lambda: "›".encode() in window.shown or "❯".encode() in window.shown, "the person sees its prompt")
    return window


def test_without_tmux_it_is_said_how_to_mend_that_and_auto_does_without(stage: Stage) -> None:
    empty = stage.folder / "empty"
    empty.mkdir()
    stage.environ["PATH"] = str(empty)
    refused = stage.run(["-n", "Bob", "--backend", "tmux", *stage.where, sys.executable, "-c", "pass"])
    _, said = refused.communicate(timeout=60)
    assert refused.returncode == 1
    assert said == (
        "agent-relay: tmux was not found. Install it (`apt install tmux`, `brew install tmux`), or use `--backend pty`.\n"
    )
    bob = stage.start("Bob", "auto", turns=TURNS)
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "hello")
        until(lambda: bob.messages == ["hello"])
        (seen,) = [agent for agent in carol.agents().agents if agent.name == "Bob"]
    assert seen.meta["backend"] == "pty"


LONG = "this text has more words than a row could hold, and Donaudampfschifffahrtsgesellschaft is longer than one"


def hear_in_twenty_columns(stage: Stage, backend: str, say: list[str], count: int, **script: Any) -> list[str]:
    asked = "tell me, in as many words as it takes, and do not mind the window"
    turns = [{"when": "tell", "busy_ms": 200, "say": say}]
    bob = stage.start("Bob", backend, person=Window(20, 40), turns=turns, **script)
    sees_prompt(bob)
    heard = []
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", asked)
        for _ in range(count):
            message = carol.receive(timeout=40)
            message.ack()
            heard.append(message.body)
    assert bob.messages == [asked]
    stage.settled("Bob", 1)
    return heard


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_that_a_narrow_terminal_breaks_are_put_together(stage: Stage, backend: str) -> None:
    say = ["I will.", f"->relay:Carol {LONG}", "->relay:Carol <<<", "first", "  second, which is rather long", ">>>", "Done."]
    assert hear_in_twenty_columns(stage, backend, say, 2) == [LONG, "first\n  second, which is rather long"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_that_a_program_breaks_in_a_narrow_terminal_are_put_together(stage: Stage, backend: str) -> None:
    said = "this text has more words than a row of this window could hold"
    say = ["I will.", "", f"->relay:Carol {said}", "", "Done."]
    assert hear_in_twenty_columns(stage, backend, say, 1, look="claude", alternate=True) == [said]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_dumb_terminal_will_do(stage: Stage, backend: str) -> None:
    stage.environ["TERM"] = "dumb"
    bob = stage.start("Bob", backend, person=True, turns=[{"when": "bye", "say": ["ok"], "exit": 3}, *TURNS])
    window = sees_prompt(bob)
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "hello")
        until(lambda: bob.messages == ["hello"])
    stage.settled("Bob", 1)
    window.type(b"bye\r")
    assert bob.wait() == 3
    assert window.is_as_before


@pytest.mark.parametrize("backend", BACKENDS)
def test_inside_the_person_s_own_tmux_theirs_is_left_alone(stage: Stage, backend: str) -> None:
    outer = TmuxServer(find_tmux(), str(stage.folder / "outer.sock")).base
    run = [sys.executable, "-m", "agent_relay", "-n", "Bob", "--backend", backend, "--no-intro", *stage.where]
    program = stage.play("Bob", turns=[{"when": "bye", "say": ["ok"], "exit": 3}, *TURNS])
    ended = stage.folder / "ended"  # told by a shell: tmux has been seen to miss how a program ended
    shell = ["sh", "-c", f'"$@"; echo $? > {ended}; exec sleep 1000', "sh"]
    session = ["new-session", "-d", "-s", "mine", "-x", "100", "-y", "30", "--", *shell, *run, *program]
    started = subprocess.Popen([*outer, *session], env=stage.environ, cwd=stage.project, text=True)
    bob = Agent("Bob", started, stage.folder / "Bob.jsonl", stage.daemon.state_dir, None)

    def ask(*command: str) -> str:
        return subprocess.run([*outer, *command], capture_output=True, text=True, check=True).stdout

    try:
        assert bob.wait() == 0
        until(lambda: "›" in ask("capture-pane", "-p", "-t", "=mine:"), "the person sees its prompt")
        with stage.daemon.connect_sync("Carol") as carol:
            carol.send("Bob", "hello")
            until(lambda: bob.messages == ["hello"])
        assert ask("list-sessions", "-F", "#{session_name}").split() == ["mine"]
        subprocess.run([*outer, "send-keys", "-t", "=mine:", "-l", "bye"], check=True)
        subprocess.run([*outer, "send-keys", "-t", "=mine:", "Enter"], check=True)
        until(lambda: ended.exists() and ended.read_text() == "3\n", "it ends with the status of the program")
    finally:
        subprocess.run([*outer, "kill-server"], capture_output=True, check=False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_signal_gives_the_person_their_terminal_back(stage: Stage, backend: str, number: signal.Signals) -> None:
    """They started it from a shell. In a PTY the program ends with its wrapper; under tmux only the window is given back."""
    bob = stage.start("Bob", backend, person=True, has_shell=True, look="claude", turns=TURNS, alternate=True)
    window = sees_prompt(bob)
    assert not window.is_as_before
    (pid,) = map(int, Path(f"/proc/{bob.process.pid}/task/{bob.process.pid}/children").read_text().split())
    os.kill(pid, number)
    until(lambda: b"rc=" in window.shown, "the shell goes on")
    assert window.is_as_before
    assert all(mode in window.shown for mode in (b"\x1b[?1049l", b"\x1b[?2004l"))
    if backend == "pty":
        assert b"rc=143" in window.shown  # what the program died of
        assert not bob.pids()
    else:
        assert bob.pids()
        with stage.daemon.connect_sync("Carol") as carol:
            carol.send("Bob", "hello")
            until(lambda: bob.messages == ["hello"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_ctrl_c_is_a_key_for_the_program(stage: Stage, backend: str) -> None:
    bob = stage.start("Bob", backend, person=True, turns=[{"when": "work", "busy_ms": 60_000}, *TURNS])
    window = sees_prompt(bob)
    window.type(b"work\r")
    until(lambda: bob.submitted == ["work"])
    window.type(b"\x03")
    until(lambda: bob.events("aborted"))
    assert bob.process.poll() is None
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "hello")
        until(lambda: bob.messages == ["hello"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_closed_window_ends_a_pty_and_leaves_tmux_running(stage: Stage, backend: str) -> None:
    bob = stage.start("Bob", backend, person=True, turns=TURNS)
    window = sees_prompt(bob)
    window.close()
    bob.window = None
    bob.wait()
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "hello")
        if backend == "tmux":
            until(lambda: bob.messages == ["hello"])
        else:
            assert not bob.pids()
            assert stage.owed("Bob") == ["hello"]
