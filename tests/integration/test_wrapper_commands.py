"""A wrapped agent and the commands around it: the outbox, the environment, attaching, running in the background."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading

import pytest

from agent_relay.terminal.backends.tmux_program import find_tmux
from agent_relay.terminal.backends.tmux_server import TmuxServer
from tests.integration.stage import BACKENDS, DEADLINE_S, Stage, Window, until

pytestmark = pytest.mark.terminals


def test_files_in_the_outbox_are_sent_and_bad_ones_are_answered(stage: Stage) -> None:
    bob = stage.start("Bob", "pty", turns=[{"when": "go", "busy_ms": 50, "say": ["->relay-file:note"]}])
    with stage.daemon.connect_sync("Carol") as carol:
        session = f"SESSION: {bob.token}\n"
        (bob.outbox / "plain").write_text(f"TO: Carol\nTHREAD: t1\n{session}\nfrom a file\n")
        message = carol.receive(timeout=60)
        assert (message.body, message.thread, message.from_) == ("from a file", "t1", "Bob")
        message.ack()
        (bob.outbox / "bad").write_text("no header\n")
        until((bob.outbox / "bad.error").exists)
        assert "CODE: INVALID_HEADER" in (bob.outbox / "bad.error").read_text()
        (bob.outbox / ".note.tmp").write_text(f"TO: Carol\n{session}\nnamed\n")
        os.rename(bob.outbox / ".note.tmp", bob.outbox / "note")
        carol.send("Bob", "go")
        assert carol.receive(timeout=60).body == "named"


def test_a_result_is_given_in_the_agents_words_and_in_its_shell(stage: Stage) -> None:
    turns = [
        {
            "when": r"Say (\w+)[\s\S]*result (task-1) <<<",
            "busy_ms": 20,
            "say": [r"->relay:result \2 <<<", r'{"said":', r'"\1"}', ">>>"],
        }
    ]
    bob = stage.start("Bob", "pty", turns=turns)
    with stage.daemon.connect_sync("Carol") as carol:
        spoken = carol.ask("Bob", "Say yes.", 60, thread="task-1", kind="task")
        reply = carol.answer_to(spoken, 60)
        assert (reply.by, json.loads(reply.body), reply.data) == ("Bob", {"said": "yes"}, {"task": "task-1"})
        typed = carol.ask("Bob", "Again.", 60, thread="task-2", kind="task")
        bad = stage.command("result", "task-2", "{", "--json-value", **bob.shell)
        assert (bad.returncode, "The result is not JSON" in bad.stderr) == (2, True)
        both = stage.command("result", "task-2", "x", "--error", "y", **bob.shell)
        assert (both.returncode, "either the result or --error" in both.stderr) == (2, True)
        done = stage.command("result", "task-2", '{"n": 1}', "--json-value", "--json", **bob.shell)
        assert (done.returncode, json.loads(done.stdout)["task"]) == (0, "task-2"), done.stderr
        assert carol.answer_to(typed, 60).body == '{"n": 1}'
        other = stage.command("result", "task-3", "x", **bob.shell)
        assert (other.returncode, "Bob was given no task 'task-3'" in other.stderr) == (1, True)


def test_send_inside_a_wrapped_agent_speaks_as_that_agent(stage: Stage) -> None:
    bob = stage.start("Bob", "pty")
    with stage.daemon.connect_sync("Carol") as carol:
        inside = bob.shell
        done = stage.command("send", "Carol", "from my shell", **inside)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("stored  ")
        message = carol.receive(timeout=40)
        assert (message.from_, message.body) == ("Bob", "from my shell")
        message.ack()
        answering = threading.Thread(target=lambda: carol.receive(timeout=40).reply("quite"), daemon=True)
        answering.start()
        asked = stage.command("send", "Carol", "ready?", "--reply", "40s", **inside)
        assert (asked.returncode, asked.stdout.splitlines()[1:]) == (0, ["    quite"])
        answering.join(40)
        late = stage.command("send", "Carol", "and now?", "--wait", "100ms", **inside)
        assert (late.returncode, "Not delivered within 100 ms. The message is stored" in late.stderr) == (1, True)
        joined = stage.command("join", "dev", **inside)
        assert (joined.returncode, joined.stdout) == (0, "done  Bob joined #dev\n")
        assert carol.send("#dev", "welcome").recipients == 1
        failed = stage.command("send", "Karol", "x", **inside)
    assert failed.returncode == 1
    assert "Did you mean Carol?" in failed.stderr
    assert list(bob.outbox.iterdir()) == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_program_is_told_who_it_is(stage: Stage, backend: str) -> None:
    shown = stage.folder / "shown"
    show = f"import json, os; open({str(shown)!r}, 'w').write(json.dumps(dict(os.environ)))"
    words = ["-n", "Bob", "--backend", backend, *stage.where, sys.executable, "-c", show]
    done = subprocess.run(
        [sys.executable, "-m", "agent_relay", *words], cwd=stage.project, env=stage.environ | {"AGENT_RELAY_TOKEN": "x"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    environ = json.loads(shown.read_text())
    state = stage.daemon.state_dir
    own = {name: value for name, value in environ.items() if name.startswith("AGENT_RELAY_") and name != "AGENT_RELAY_HOME"}
    assert own.pop("AGENT_RELAY_TOKEN").startswith("run_")  # of this run, not whatever we have ourselves
    assert own == {
        "AGENT_RELAY_NAME": "Bob",
        "AGENT_RELAY_SOCKET": stage.daemon.socket,
        "AGENT_RELAY_OUTBOX": str(state / "outbox/Bob"),
        "AGENT_RELAY_INBOX": str(state / "team/Bob/inbox.md"),
        "AGENT_RELAY_PROJECT": str(stage.project),
    }


def test_it_can_be_seen_from_outside(stage: Stage) -> None:
    bob = stage.start("Bob", "tmux", start={"busy_ms": 10, "say": [f"line {number}" for number in range(100)]})
    until(lambda: "state: idle" in bob.log)
    until(lambda: "line 99" in stage.command("logs", "bob").stdout)
    shown = [line for line in stage.command("logs", "Bob").stdout.splitlines() if "line" in line]
    assert shown == [f"{'• ' * (number == 0)}line {number}" for number in range(100)]
    agents = json.loads(stage.command("agents", "--json").stdout)["agents"]
    assert [(agent["name"], agent["connected"], agent["meta"]["backend"]) for agent in agents] == [("Bob", True, "tmux")]
    attached = stage.command("attach", "Bob")
    assert (attached.returncode, attached.stderr) == (1, "agent-relay: attach needs a terminal; run it in one.\n")


@pytest.mark.parametrize("words", [("attach",), ("logs",), ("record",), ("profile", "new", "mine", "--agent")])
def test_a_name_that_nobody_has_is_said_to_be_none(stage: Stage, words: tuple[str, ...]) -> None:
    nobody = stage.command(*words, "Nobody")
    assert nobody.returncode == 1
    assert nobody.stderr == (
        "agent-relay: There is no agent Nobody. No agent has connected to this project yet; "
        "`agent-relay projects` lists your projects.\n"
    )
    for name in ("Alice", "Bob"):
        assert stage.command("send", "*", "I am here.", "--as", name).returncode == 0
    until(lambda: "Bob" in stage.command(*words, "Nobody").stderr)  # the daemon writes its list down when it has a moment
    for name, hint in (("Nobody", "The project's agents: Alice, Bob."), ("Alise", "Did you mean Alice?")):
        refused = stage.command(*words, name)
        assert (refused.returncode, refused.stderr) == (1, f"agent-relay: There is no agent {name}. {hint}\n")


def test_an_agent_without_a_terminal_cannot_be_attached_to(stage: Stage) -> None:
    assert stage.command("send", "*", "I am here.", "--as", "Alice").returncode == 0
    until(lambda: "no agent" not in stage.command("attach", "alice").stderr)
    refused = stage.command("attach", "alice")
    assert refused.returncode == 1
    assert refused.stderr == (
        "agent-relay: Alice is not running under the relay, so there is no terminal to attach to. "
        "Its state: agent-relay agents --all\n"
    )


def test_in_the_background_it_has_a_name_of_its_own_and_starts_the_daemon(stage: Stage) -> None:
    script = stage.folder / "quiet.json"
    script.write_text("{}")
    state = stage.folder / "fresh"
    where = ["--state-dir", str(state)]
    words = ["wrap", "--detach", "--no-intro", *where, sys.executable, "-m", "agent_relay.cli.demo.scripted_agent"]
    done = subprocess.run(
        [sys.executable, "-m", "agent_relay", *words, "--script", str(script)], cwd=stage.project, env=stage.environ,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    try:
        assert done.returncode == 0, done.stderr
        name = re.match(r"(\w+) is running  pid (\d+)", done.stdout)
        assert name is not None
        who = subprocess.run(
            [sys.executable, "-m", "agent_relay", "who", *where, "--json"], cwd=stage.project, env=stage.environ,
            capture_output=True, text=True, timeout=DEADLINE_S, check=True,
        )  # fmt: skip
        assert [agent["name"] for agent in json.loads(who.stdout)["agents"]] == [name[1]]
        os.kill(int(name[2]), signal.SIGTERM)
    finally:
        tmux = TmuxServer(find_tmux(), str(state / "tmux.sock"))
        until(lambda: subprocess.run([*tmux.base, "list-sessions"], capture_output=True, check=False).returncode != 0)
        subprocess.run([sys.executable, "-m", "agent_relay", "down", *where], cwd=stage.project, env=stage.environ, check=True)


def test_what_cannot_be_run_is_said_in_one_sentence(stage: Stage) -> None:
    def run(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "agent_relay", "wrap", *stage.where, *words], cwd=stage.project, env=stage.environ,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        return done.returncode, done.stderr

    assert run("no-such-program-here")[0] == 1
    assert "no-such-program-here is not on PATH" in run("no-such-program-here")[1]
    assert "no-such-program-here is not on PATH" in run("--detach", "no-such-program-here")[1]
    assert "bash runs what is typed" in run("bash")[1]
    stage.start("Bob", "pty")
    status, said = run("-n", "Bob", "cat")
    assert (status, said.count("\n")) == (1, 1)
    assert "Bob is already connected" in said


def test_a_person_attaches_detaches_and_comes_back(stage: Stage) -> None:
    bob = stage.start("Bob", "tmux", person=True, turns=[{"when": "quit", "busy_ms": 20, "say": ["broken"], "exit": 9}])
    assert bob.window is not None
    until(lambda: "›".encode() in bob.window.shown, "the person sees its prompt")
    bob.window.type(b"hello\r")
    until(lambda: bob.submitted == ["hello"])
    # tmux takes keys that it finds together for a paste, and not for its own: on a loaded machine any two may be.
    subprocess.run([*stage.tmux, "set-option", "-g", "assume-paste-time", "0"], check=True, capture_output=True)
    bob.window.type(b"\x02")
    has_seen = [*stage.tmux, "list-clients", "-F", "#{client_prefix}"]
    until(lambda: "1" in subprocess.run(has_seen, check=True, capture_output=True, text=True).stdout, "tmux has seen the prefix")
    bob.window.type(b"d")
    assert bob.wait() == 0
    until(lambda: b"Bob keeps running" in bob.window.shown)
    with stage.daemon.connect_sync("Carol") as carol:
        carol.send("Bob", "still there?")
        until(lambda: bob.messages == ["still there?"])
    stage.settled("Bob", 1)

    window = Window()
    again = subprocess.Popen(
        [sys.executable, "-m", "agent_relay", "attach", "Bob", *stage.where], cwd=stage.project, env=stage.environ,
        stdin=window.slave, stdout=window.slave, stderr=window.slave,
    )  # fmt: skip
    until(lambda: b"still there?" in window.shown)
    window.type(b"quit\r")
    assert again.wait(DEADLINE_S) == 0
    until(lambda: not json.loads(stage.command("who", "--json").stdout)["agents"])
    assert "broken" in stage.command("logs", "Bob").stdout
    window.close()


def test_who_stays_attached_is_given_the_status_and_the_last_screen(stage: Stage) -> None:
    turns = [{"when": "quit", "busy_ms": 20, "say": ["it broke"], "exit": 9}]
    bob = stage.start("Bob", "tmux", person=True, turns=turns)
    assert bob.window is not None
    until(lambda: "›".encode() in bob.window.shown)
    bob.window.type(b"quit\r")
    assert bob.wait() == 9
    until(lambda: b"it broke" in bob.window.shown.partition(b"[exited]")[2])
