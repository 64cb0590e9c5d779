"""Recording agents that run, and following what they show: the real commands, a real daemon, a real tmux."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.recordings.asciicast import read_cast
from agent_relay.terminal.screen.emulator import Emulator
from tests.integration.stage import DEADLINE_S, Agent, Stage, Window, until

pytestmark = pytest.mark.terminals


def begin(stage: Stage, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "agent_relay", *words, *stage.where], cwd=stage.project, env=stage.environ, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def record(stage: Stage, agent: Agent, file: Path, *options: str) -> subprocess.Popen[str]:
    """Returns when the screen as it was is in the file."""
    recording = begin(stage, "record", agent.name, "-o", str(file), *options)
    until(lambda: recording.poll() is not None or (file.exists() and file.read_bytes().count(b"\n") >= 2), "the file begins")
    assert recording.poll() is None, recording.communicate()
    return recording


def replay(stage: Stage, file: Path, *options: str) -> list[dict[str, Any]]:
    done = stage.command("replay", str(file), "--json", *options)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def play(file: Path) -> list[str]:
    """The screen at the end of a recording."""
    cast = read_cast(file)
    emulator = Emulator(cast.header.width, cast.header.height)
    for event in cast.events:
        if event.kind == "o":
            emulator.feed(event.data.encode())
        elif event.kind == "r":
            columns, rows = map(int, event.data.split("x"))
            emulator.resize(columns, rows)
    return [line.text for line in emulator.read().visible]


def shown(stage: Stage, agent: Agent) -> list[str]:
    done = subprocess.run(
        [*stage.tmux, "capture-pane", "-p", "-t", f"={agent.name}:"], capture_output=True, text=True, check=True
    )
    return [row.rstrip() for row in done.stdout.splitlines()]


SAY = [{"when": r"\]: say (.*)", "busy_ms": 60, "line_ms": 20, "say": ["Ünïcode ✓ 漢字", r"->relay:Carol told \1", "done"]}]


@pytest.mark.parametrize("alternate", [False, True])
def test_a_replay_of_the_recording_has_the_messages_that_were_sent(stage: Stage, alternate: bool) -> None:
    bob = stage.start("Bob", "tmux", turns=SAY, alternate=alternate, **({"look": "claude"} if alternate else {}))
    cli = "claude" if alternate else "generic"
    until(lambda: "state: idle" in bob.log)
    file = stage.folder / "bob.cast"
    recording = record(stage, bob, file)
    sent = []
    with stage.daemon.connect_sync("Carol") as carol:
        for number in range(4):
            carol.send("Bob", f"say {number}")
            message = carol.receive(timeout=DEADLINE_S)
            sent.append(message.body)
            message.ack()
        before = until(lambda: (rows := shown(stage, bob)) and rows == shown(stage, bob) and "done" in "".join(rows) and rows)
        until(lambda: play(file) == before, "the recording has caught up")
    recording.send_signal(signal.SIGINT)
    out, err = recording.communicate(timeout=DEADLINE_S)
    assert (recording.returncode, err) == (0, "")
    assert f"agent-relay replay {file} --cli {cli}" in out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    header = read_cast(file).header
    assert (header.width, header.height, header.title) == (120, 40, "claude" if alternate else "Bob.sh")
    told = [(line["to"], line["body"]) for line in replay(stage, file, "--cli", cli) if line["kind"] == "message"]
    assert told == [("Carol", body) for body in sent]
    assert len(sent) == 4


def test_it_begins_with_the_screen_as_it_is_and_ends_with_the_agent(stage: Stage) -> None:
    turns = [{"when": "leave", "busy_ms": 300, "say": ["last words"], "exit": 0}]
    bob = stage.start("Bob", "tmux", start={"busy_ms": 10, "say": [f"line {number}" for number in range(60)]}, turns=turns)
    until(lambda: "state: idle" in bob.log and "line 59" in "".join(shown(stage, bob)))
    file = stage.folder / "bob.cast"
    recording = record(stage, bob, file)
    assert play(file) == shown(stage, bob)
    stage.type_keys(bob, "leave\r")
    out, err = recording.communicate(timeout=DEADLINE_S)
    assert (recording.returncode, err) == (0, "")
    assert "Bob has ended." in out
    assert "last words" in "\n".join(play(file))
    assert "agent-relay-end" not in file.read_text("utf-8")
    assert bob.wait() == 0


def test_a_change_of_size_is_recorded_in_its_place(stage: Stage) -> None:
    bob = stage.start("Bob", "tmux", start={"busy_ms": 10, "say": ["word " * 30 + str(number) for number in range(50)]})
    until(lambda: "state: idle" in bob.log)
    file = stage.folder / "bob.cast"
    recording = record(stage, bob, file)
    for columns, rows in ((70, 20), (130, 45)):
        before = len(read_cast(file).events)
        subprocess.run([*stage.tmux, "resize-window", "-t", "=Bob:", "-x", str(columns), "-y", str(rows)], check=True)
        until(lambda rows=rows: len(play(file)) == rows and play(file) == shown(stage, bob), f"{columns} columns are shown")
        assert read_cast(file).events[before].data == f"{columns}x{rows}"  # before anything is drawn in the new size
    recording.send_signal(signal.SIGTERM)
    recording.communicate(timeout=DEADLINE_S)
    assert [event.data for event in read_cast(file).events if event.kind == "r"] == ["70x20", "130x45"]


def test_it_ends_after_its_time_and_replaces_nothing_unasked(stage: Stage) -> None:
    bob = stage.start("Bob", "tmux")
    done = stage.command("record", "bob", "--seconds", "0.2")
    assert done.returncode == 0, done.stderr
    (file,) = stage.project.glob("Bob-*.cast")
    again = stage.command("record", "Bob", "-o", str(file), "--seconds", "0.2")
    assert (again.returncode, again.stderr) == (1, f"agent-relay: {file} already exists; overwrite it with --force.\n")
    file.write_text("an older recording\n")  # two recordings of a quiet screen within one second are the same to the byte
    assert stage.command("record", "Bob", "-o", str(file), "--seconds", "0.2", "--force").returncode == 0
    assert "an older recording" not in file.read_text()
    assert read_cast(file).events
    assert bob.process.poll() is None


def test_an_agent_without_tmux_is_refused_with_the_way_out(stage: Stage) -> None:
    stage.start("Bob", "pty")
    done = stage.command("record", "Bob")
    assert done.returncode == 1
    assert "agent-relay wrap -n Bob --record FILE" in done.stderr
    assert not list(stage.project.glob("*.cast"))


# --- from the start ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["tmux", "pty"])
def test_a_recording_from_the_start_has_the_messages_that_were_sent(stage: Stage, backend: str) -> None:
    file = stage.folder / "bob.cast"
    turns = [*SAY, {"when": "leave", "busy_ms": 30, "say": ["farewell"], "exit": 0}]
    window = Window(100, 30) if backend == "pty" else False
    bob = stage.start("Bob", backend, "--record", str(file), person=window, turns=turns)
    with stage.daemon.connect_sync("Carol") as carol:
        for number in range(3):
            carol.send("Bob", f"say {number}")
            carol.receive(timeout=DEADLINE_S).ack()
        carol.send("Bob", "leave")
        until(lambda: bob.process.poll() is not None, "it ends")
    cast = read_cast(file)
    assert (cast.header.width, cast.header.height) == ((100, 30) if backend == "pty" else (120, 40))
    assert "farewell" in "".join(event.data for event in cast.events if event.kind == "o")
    told = [line["body"] for line in replay(stage, file, "--cli", "generic") if line["kind"] == "message"]
    assert told == ["told 0", "told 1", "told 2"]


def test_from_the_start_a_file_that_is_there_is_kept(stage: Stage) -> None:
    file = stage.folder / "bob.cast"
    file.write_text("mine")
    program = stage.run(["-n", "Bob", "--backend", "pty", "--record", str(file), *stage.where, "cat", "-u"])
    _, err = program.communicate(timeout=DEADLINE_S)
    assert (program.returncode, file.read_text()) == (1, "mine")
    assert "already exists" in err


# --- following ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["tmux", "pty"])
def test_logs_follow_until_the_end_every_line_once(stage: Stage, backend: str) -> None:
    numbers = range(150)
    turns = [
        {"when": r"\]: count", "busy_ms": 30, "line_ms": 10, "say": [f"number {number}\x07" for number in numbers]},
        {"when": "leave", "busy_ms": 30, "say": ["farewell"], "exit": 3},
    ]
    bob = stage.start("Bob", backend, turns=turns)
    until(lambda: "state: idle" in bob.log)
    following = begin(stage, "logs", "Bob", "-f")
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "count")
        stage.settled("Bob", 1)
        carol.send("Bob", "leave")
        out, err = following.communicate(timeout=DEADLINE_S)
    assert bob.wait() == 3
    assert following.returncode == 0
    assert err == "Bob has ended.\n"
    lines = [line.removeprefix("• ") for line in out.splitlines()]
    assert [line for line in lines if line.startswith("number ")] == [f"number {number}" for number in numbers]
    assert lines.count("farewell") == 1
    assert not set(out) & {"\x07", "\x1b"}


def test_follow_ends_quietly_by_ctrl_c_and_when_the_wrapper_was_killed(stage: Stage) -> None:
    bob = stage.start("Bob", "pty", start={"busy_ms": 10, "say": ["hello there"]})
    until(lambda: "state: idle" in bob.log and "hello there" in stage.command("logs", "Bob").stdout)
    stopped, left = (begin(stage, "logs", "Bob", "--follow") for _ in range(2))
    for following in (stopped, left):
        assert following.stdout is not None
        assert "hello there" in following.stdout.readline()
    stopped.send_signal(signal.SIGINT)
    _, err = stopped.communicate(timeout=DEADLINE_S)
    assert (stopped.returncode, err) == (130, "")
    bob.process.kill()
    _, err = left.communicate(timeout=DEADLINE_S)
    assert (left.returncode, err) == (0, "The logs of Bob end here: its wrapper is gone.\n")
