"""The command line as a person uses it: real processes, a real daemon, in a project of its own."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_relay.cli.main import main
from agent_relay.cli.person import person
from agent_relay.cli.project.daemon_process import Answer, knock
from agent_relay.protocol.short_ids import short_id
from agent_relay.sdk.owner import read_api_token
from agent_relay.testing.raw_client import RawClient

DEADLINE_S = 60.0
ME = person()


@dataclass(frozen=True)
class Done:
    status: int
    stdout: str
    stderr: str


def flushed(*streams: io.TextIOWrapper) -> Iterator[Any]:
    for stream in streams:
        stream.flush()
        yield stream


class Shell:
    """A project with nothing in it, and the program run in it."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="ar-"))
        self.project = self.root / "project"
        (self.project / ".git").mkdir(parents=True)
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_RELAY_")}
        self.environ.update(HOME=str(self.root), AGENT_RELAY_HOME=str(self.root / "home"), LOGNAME="tester")
        for name in ("NO_COLOR", "FORCE_COLOR"):
            self.environ.pop(name, None)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "agent_relay", *words]

    def popen(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*words), cwd=self.project, env=self.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, **options,
        )  # fmt: skip

    def __call__(self, *words: str, status: int = 0, given: str | bytes = b"") -> Done:
        """Runs the program in this process: the same code, without the half second an interpreter takes to start."""
        if words[0] == "up":
            return self.real(*words, status=status)  # it leaves a child behind, which is for no test to inherit
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n") for _ in range(2))
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.project)
            for name in [name for name in os.environ if name not in self.environ]:
                patch.delenv(name)
            for name, value in self.environ.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode() if isinstance(given, str) else given)))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            ended = main(list(words))
        return self._check(words, status, Done(ended, *(stream.buffer.getvalue().decode() for stream in flushed(out, err))))

    def real(self, *words: str, status: int = 0) -> Done:
        """Runs the program as a process of its own."""
        process = self.popen(*words)
        out, err = process.communicate(timeout=DEADLINE_S)
        return self._check(words, status, Done(process.returncode, out, err))

    def _check(self, words: Sequence[str], status: int, done: Done) -> Done:
        assert done.status == status, f"{words}: exit {done.status}, expected {status}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        assert status or not done.stderr
        return done

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json").stdout)

    @property
    def state_dir(self) -> Path:
        (found,) = (self.root / "home" / "projects").iterdir()
        return found

    @property
    def owner_token(self) -> str:
        return str(read_api_token(self.state_dir))

    def kill_daemon(self) -> None:
        """`kill -9` of the daemon this project's own socket leads to."""
        pid = knock(str(self.state_dir / "relay.sock"), 5).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: knock(str(self.state_dir / "relay.sock"), 5).answer is Answer.NOBODY)

    def close(self) -> None:
        subprocess.run(
            self.command("down", "--timeout", "5"), cwd=self.project, env=self.environ, capture_output=True, check=False
        )
        shutil.rmtree(self.root, ignore_errors=True)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@pytest.fixture
def shell() -> Iterator[Shell]:
    made = Shell()
    yield made
    made.close()


@pytest.fixture(scope="module")
def relay() -> Iterator[Shell]:
    """One that is up, with Alice and Bob known, for tests that leave it so."""
    made = Shell()
    made("up")
    for name in ("Alice", "Bob"):
        made("inbox", "--as", name)
    yield made
    made.close()


# --- up, down, status ---------------------------------------------------------------------------------------------------


def test_a_whole_cycle(shell: Shell) -> None:
    assert shell.real("status", status=3).stdout == "down\n"
    assert json.loads(shell("status", "--json", status=3).stdout)["up"] is False
    shown = shell.real("up").stdout
    pid = int(re.search(r"pid (\d+)", shown)[1])  # type: ignore[index]
    assert str(shell.state_dir / "relay.sock") in shown
    assert shell("up").stdout.startswith(f"already up  pid {pid}\n")

    assert shell("inbox", "--as", "Bob").stdout == "Nothing is waiting for Bob.\n"
    receipt = shell.real("send", "bob", "Please review auth.py.", "--from", "Alice", "--thread", "review").stdout
    message_id = re.search(r"[0-9a-f]{8}", receipt)[0]  # type: ignore[index]
    assert re.fullmatch(
        rf"stored  {message_id}  1 recipient, 1 offline\n"
        r"waits  Bob: offline since \d\d:\d\d; delivered when it comes back\n", receipt
    )  # fmt: skip
    assert message_id in shell("inbox", "--as", "Bob", "--peek").stdout
    shown = shell.real("inbox", "--as", "Bob").stdout
    assert re.fullmatch(rf"\d\d:\d\d:\d\d  Alice → Bob  {message_id}  thread review\n    Please review auth\.py\.\n", shown)
    assert shell("inbox", "--as", "Bob", "--peek").stdout == "Nothing is waiting for Bob.\n"

    assert "delivered" in shell("history", "--with", "Bob", "--since", "1h").stdout
    life = shell("explain", message_id).stdout
    for step in ("stored from Alice to Bob", "sent to Bob, number 1", "acknowledged by Bob"):
        assert step in life
    assert shell("read", message_id).stdout.endswith("\n\nPlease review auth.py.\n")

    status = shell.json("status")
    assert (status["up"], status["pid"], status["accepted"]) == (True, pid, 1)
    assert {agent["name"]: agent["state"] for agent in status["agents"]} == {"Alice": "offline", "Bob": "offline"}
    for part in ("up for", f"pid {pid}", "sqlite, 1 message", "1 accepted", "0 dead letters", "2 offline hidden: --all"):
        assert part in shell("status").stdout
    assert re.search(r"Alice +offline", shell("status", "--all").stdout)
    assert "0 agents connected" in shell("doctor").stdout

    assert shell.real("down").stdout == f"down  pid {pid} stopped\n"
    assert not list(shell.state_dir.glob("relay.*"))
    assert shell("down", status=3).stdout == "not running\n"


@pytest.mark.parametrize(
    "words",
    [["agents"], ["who"], ["send", "Bob", "x"], ["inbox"], ["inbox", "--peek"], ["history"], ["read", "x"], ["dead-letters"]],
)
def test_without_a_daemon_the_way_to_start_it_is_named(shell: Shell, words: list[str]) -> None:
    done = shell(*words, status=3)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("agent-relay: The daemon is not running; start it with: agent-relay up (")


def test_after_kill_9_everything_is_still_there(shell: Shell) -> None:
    shell("up")
    shell("inbox", "--as", "Bob")
    shell("send", "Bob", "survives", "--from", "Alice")
    shell.kill_daemon()
    assert (shell.state_dir / "relay.sock").exists()
    assert shell("status", status=3).stdout == "down\n"
    shell("up")
    assert "survives" in shell("inbox", "--as", "Bob").stdout
    shell.kill_daemon()
    assert "left behind" in shell("down", status=3).stdout
    assert not (shell.state_dir / "relay.sock").exists()
    assert not (shell.state_dir / "relay.pid").exists()


def test_two_ups_at_once_start_one_daemon(shell: Shell) -> None:
    both = [shell.popen("up", "--json") for _ in range(2)]
    said = [json.loads(one.communicate(timeout=DEADLINE_S)[0]) for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert said[0]["pid"] == said[1]["pid"]
    assert sum(not one["already_up"] for one in said) <= 1


def test_a_daemon_that_hangs_is_seen_and_ended(shell: Shell) -> None:
    pid = shell.json("up")["pid"]
    os.kill(pid, signal.SIGSTOP)
    assert "does not answer" in shell("status", status=1).stderr
    assert "killed" in shell("down", "--timeout", "0.2").stdout
    assert not (shell.state_dir / "relay.sock").exists()


def test_down_ends_nobody_else(shell: Shell) -> None:
    """A socket that leads to another program must not cost that program its life."""
    path = shell.root / "other.sock"
    code = """
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("up", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "up\n"
        assert "nothing was stopped" in shell("down", "--socket", str(path), status=1).stderr
        assert other.poll() is None
        other.kill()


def test_places_and_settings_that_cannot_be_used(shell: Shell) -> None:
    (shell.root / "file").touch()
    for mode in ([], ["--foreground"]):
        assert "cannot be created" in shell("up", *mode, "--state-dir", str(shell.root / "file" / "x"), status=1).stderr
        assert "must be a whole number" in shell("up", *mode, "--max-frame-bytes", "many", status=2).stderr
    assert "is not a socket" in shell("up", "--socket", str(shell.root / "file"), status=1).stderr


def test_another_place_by_option(shell: Shell) -> None:
    place = ["--socket", str(shell.root / "s.sock"), "--state-dir", str(shell.root / "state")]
    shell("up", *place, "--no-http", "--storage", "memory")
    assert shell.json("status", *place)["storage"]["kind"] == "memory"
    shell("status", status=3)
    shell("inbox", "--as", "Bob", *place)
    assert "stored" in shell("send", "Bob", "x", "--socket", str(shell.root / "s.sock")).stdout
    shell("down", *place)


def test_in_the_foreground_until_ctrl_c(shell: Shell) -> None:
    daemon = shell.popen("up", "--foreground")
    wait_until(lambda: is_up(shell))
    daemon.send_signal(signal.SIGINT)
    out, err = daemon.communicate(timeout=DEADLINE_S)
    assert (daemon.returncode, out, err) == (0, "", "")
    assert not is_up(shell)


def test_the_foreground_beside_a_running_daemon_leaves_it_alone(shell: Shell) -> None:
    first = shell.json("up", "--no-http")
    for mode in ([], ["--foreground"]):
        said = shell("up", *mode, "--queue-capacity", "7", "--max-attempts", "9", "--no-http").stdout
        assert "already up" in said
        assert "agent-relay restart " in said
        assert all(flag in said for flag in ("--queue-capacity 7", "--max-attempts 9"))
        assert "--no-http" not in said  # it has it
        again = shell.json("up", *mode, "--max-attempts", "9")
        assert (again["already_up"], again["pid"], again["need_restart"]) == (True, first["pid"], ["--max-attempts"])
        assert "agent-relay restart" not in shell("up", *mode).stdout
    assert shell.json("status")["pid"] == first["pid"]
    shell("down")


def is_up(shell: Shell) -> bool:
    sockets = list((shell.root / "home").glob("projects/*/relay.sock"))
    return bool(sockets) and knock(str(sockets[0]), 5).answer is Answer.RELAY


# --- sending and receiving ------------------------------------------------------------------------------------------------


def test_refusals_say_what_to_do(relay: Shell) -> None:
    assert "Did you mean Bob?" in relay("send", "Bobb", "x", status=1).stderr
    assert "cannot be an agent's name" in relay("send", "a/b", "x", status=1).stderr
    assert "cannot be an agent's name" in relay("send", "Bob", "x", "--from", "a/b", status=1).stderr
    assert "There is no channel #dev" in relay("send", "#dev", "x", status=1).stderr
    assert "There is no message" in relay("read", "msg_01KA2V8Z5T7Q4M9C3XKJ0000A1", status=1).stderr
    assert "msg_" in relay("explain", "x", status=1).stderr
    assert "No agent Nemo" in relay("inbox", "--as", "Nemo", "--peek", status=1).stderr


def test_a_message_of_2_mib_is_refused_with_the_limit(relay: Shell) -> None:
    done = relay("send", "Bob", "-", status=1, given=b"x" * 2 * 1024 * 1024)
    assert "1048576" in done.stderr


def test_text_from_standard_input_and_its_control_characters(relay: Shell) -> None:
    relay("inbox", "--as", "Bob")
    text = "first\nsecond \x1b]0;title\x07\x1b[2J Grüße"
    message_id = json.loads(relay("send", "Bob", "-", "--json", given=text + "\n").stdout)["message_id"]
    for words in (["history"], ["read", message_id], ["explain", message_id], ["inbox", "--as", "Bob", "--peek"]):
        shown = relay(*words).stdout
        assert "\x1b" not in shown
        assert "\x07" not in shown
        assert "second \\x1b]0;title\\x07\\x1b[2J Grüße" in shown
    (line,) = relay("inbox", "--as", "Bob", "--json").stdout.splitlines()
    assert json.loads(line)["payload"]["body"] == text


def test_lists_are_json_of_one_shape(relay: Shell) -> None:
    relay("inbox", "--as", "Bob")
    sent = [
        relay.json("send", "Bob", f"number {number}", "--topic", "shape", "--from", "Alice")["message_id"] for number in range(3)
    ]
    page = relay.json("history", "--topic", "shape", "--limit", "2")
    assert [message["message_id"] for message in page["messages"]] == [sent[2], sent[1]]
    rest = relay.json("history", "--topic", "shape", "--cursor", page["next_cursor"])
    assert ([message["message_id"] for message in rest["messages"]], rest["next_cursor"]) == ([sent[0]], None)
    shown = relay("history", "--topic", "shape").stdout
    assert shown.index("number 0") < shown.index("number 2"), "newest last"
    relay("send", "Alice", "I count.", "--kind", "action", "--topic", "shape", "--from", "Bob")
    page = relay.json("history", "--topic", "shape", "--kind", "action")
    assert [message["payload"]["body"] for message in page["messages"]] == ["I count."]
    assert {"Alice", "Bob"} <= {agent["name"] for agent in relay.json("agents")["agents"]}
    assert relay.json("who") == {"agents": [], "next_cursor": None}
    dead = relay.json("dead-letters")
    assert (set(dead), dead["next_cursor"]) == ({"dead_letters", "next_cursor"}, None)
    assert [letter for letter in dead["dead_letters"] if letter["message_id"] in sent] == []  # other tests may have left some
    life = relay.json("explain", sent[0])
    assert (life["message"]["message_id"], life["trail"][0]["event"]) == (sent[0], "stored")
    assert life["trail"][0]["at"] == life["message"]["ts"]
    assert relay.json("version")["daemon"] is not None
    assert [
        json.loads(line)["message_id"] for line in relay("inbox", "--as", "Bob", "--limit", "2", "--json").stdout.splitlines()
    ] == sent[:2]
    assert [
        json.loads(line)["message_id"] for line in relay("inbox", "--as", "Bob", "--peek", "--json").stdout.splitlines()
    ] == sent[2:]


def test_several_recipients(relay: Shell) -> None:
    receipt = relay.json("send", "Alice, Bob", "to both", "--from", "Carol")
    assert (receipt["recipients"], receipt["queued"]) == (2, 2)
    for name in ("Alice", "Bob"):
        assert "to both" in relay("inbox", "--as", name).stdout


def test_waiting_for_an_answer(relay: Shell) -> None:
    silent = relay("send", "Bob", "Anybody?", "--await", "300ms", "--from", "Alice", status=1).stderr
    assert "note: --await is now called --reply" in silent
    assert "No reply within 300 ms" in silent
    assert "Bob: queued. Bob waits: offline since " in silent
    with RawClient(str(relay.state_dir / "relay.sock")) as bob:
        bob.hello("Bob")
        asking = relay.popen("send", "Bob", "Ready?", "--reply", "20s", "--from", "Alice")
        question = bob.expect("DELIVER")
        while question["payload"]["body"] != "Ready?":
            question = bob.expect("DELIVER")
        correlation = question["payload_meta"]["sync"]["correlationId"]
        bob.ack(question, correlationId=correlation, response="Yes.")
        out, err = asking.communicate(timeout=DEADLINE_S)
    assert (asking.returncode, err) == (0, "")
    assert re.fullmatch(r"answered  [0-9a-f]{8}  by Bob\n    Yes\.\n", out)


def test_waiting_for_the_delivery(relay: Shell) -> None:
    late = relay("send", "Bob", "Anybody?", "--wait", "50ms", "--from", "Alice", status=1)
    assert "Not delivered within 50 ms. The message is stored (" in late.stderr
    assert relay("send", "Bob", "x", "--wait", "--reply", "--from", "Alice", status=2).stdout == ""
    with RawClient(str(relay.state_dir / "relay.sock")) as bob:
        bob.hello("Bob")
        waiting = relay.popen("send", "Bob", "Ready?", "--wait", "--from", "Alice", "--json")
        delivery = bob.expect("DELIVER")
        while delivery["payload"]["body"] != "Ready?":
            bob.ack(delivery)
            delivery = bob.expect("DELIVER")
        bob.ack(delivery)
        out, err = waiting.communicate(timeout=DEADLINE_S)
    assert (waiting.returncode, err) == (0, "")
    assert json.loads(out) | {"message_id": ""} == {
        "message_id": "", "stage": "delivered", "recipients": 1, "delivered": True, "by": ["Bob"],
    }  # fmt: skip


def test_channels(relay: Shell) -> None:
    assert relay.json("join", "dev", "--as", "Bob") == {"agent": "Bob", "channel": "#dev", "stage": "joined"}
    assert "Did you mean Bob?" in relay("join", "#dev", "--as", "Bop", status=1).stderr
    assert "is not a valid channel" in relay("join", "#d v", "--as", "Bob", status=2).stderr
    assert relay("join", "#dev").stdout == f"done  {ME} joined #dev\n"
    relay("send", "#dev", "The build is green.", "--from", "Alice")
    assert "The build is green." in relay("inbox", "--as", "Bob").stdout
    assert "The build is green." in relay("inbox").stdout
    listed = {each["name"]: each for each in relay.json("channels")["channels"]}
    assert (listed["#dev"]["members"], listed["#dev"]["messages"]) == (["Bob", ME], 1)
    assert "#dev  1 message, last" in relay("channels").stdout
    for words in (("--as", "Bob"), ()):
        relay("leave", "dev", *words)
    assert relay.json("send", "#dev", "nobody", "--from", "Alice")["recipients"] == 0
    assert "There is no channel #nowhere." in relay("leave", "nowhere", "--as", "Bob", status=1).stderr


def test_the_history_is_followed_until_ctrl_c(relay: Shell) -> None:
    relay("send", "Bob", "before", "--from", "Alice")
    following = relay.popen("history", "--to", "Bob", "--from", "Alice", "-f", "--json", "--limit", "1")
    assert following.stdout is not None
    assert json.loads(following.stdout.readline())["payload"]["body"] == "before"
    relay("send", "Bob", "not this one", "--from", "Carol")
    relay("send", "Bob", "after", "--from", "Alice")
    assert json.loads(following.stdout.readline())["payload"]["body"] == "after"
    following.send_signal(signal.SIGINT)
    assert following.communicate(timeout=DEADLINE_S) == ("", "")
    assert following.returncode in {130, -signal.SIGINT}
    relay("inbox", "--as", "Bob")


def test_the_default_name_gives_way_and_a_given_one_does_not(relay: Shell) -> None:
    with RawClient(str(relay.state_dir / "relay.sock")) as tester, RawClient(str(relay.state_dir / "relay.sock")) as carol:
        tester.hello(ME, session={"owner_token": relay.owner_token})
        carol.hello("Carol")
        sent = relay.json("send", "Bob", "x")
        assert relay.json("explain", sent["message_id"])["message"]["from"] == f"{ME}-2"
        assert "Carol is connected elsewhere" in relay("send", "Bob", "x", "--from", "Carol", status=1).stderr
        assert "--peek" in relay("inbox", "--as", "Carol", status=1).stderr
        assert [agent["name"] for agent in relay.json("who")["agents"]] == ["Carol", ME]
    relay("inbox", "--as", "Bob")


def test_dead_letters_come_back_to_life(relay: Shell) -> None:
    relay("inbox", "--as", "Bob")
    message_id = relay.json("send", "Bob", "too late", "--ttl", "50ms", "--from", "Alice")["message_id"]
    wait_until(lambda: bool(relay.json("dead-letters")["dead_letters"]))
    assert "DELIVERY_TIMEOUT for Bob" in relay("dead-letters").stdout
    assert "expired: Bob" in relay("explain", message_id).stdout
    (retried,) = relay.json("dead-letters", "retry", "--all")["retried"]
    assert retried["message_id"] == message_id
    assert "There is no dead letter" in relay("dead-letters", "retry", short_id(message_id), status=1).stderr
    relay("dead-letters", "list", "--limit", "5")


# --- terminals, pipes, signals --------------------------------------------------------------------------------------------


def test_ctrl_c_ends_following_quietly(relay: Shell) -> None:
    following = relay.popen("inbox", "--as", "Dora", "--follow")
    wait_until(lambda: any(agent["name"] == "Dora" for agent in relay.json("who")["agents"]))
    relay("send", "Dora", "live", "--from", "Alice")
    assert following.stdout is not None
    assert "Alice → Dora" in following.stdout.readline()
    assert following.stdout.readline() == "    live\n"
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=DEADLINE_S)
    assert (following.returncode, out, err) == (130, "", "")


def test_a_reader_that_has_seen_enough(relay: Shell) -> None:
    body = "x" * 900_000  # more than a pipe holds, so that the writer meets the closed end
    message_id = json.loads(relay("send", "Bob", "-", "--json", given=body).stdout)["message_id"]
    reading = relay.popen("read", message_id)
    assert reading.stdout is not None
    reading.stdout.readline()
    reading.stdout.close()
    assert reading.stderr is not None
    assert reading.stderr.read() == ""
    assert reading.wait(DEADLINE_S) == 0
    reading.stderr.close()
    relay("inbox", "--as", "Bob")


@pytest.mark.parametrize("no_color", [False, True])
def test_colours_only_on_a_terminal_and_only_if_wanted(relay: Shell, no_color: bool) -> None:
    environ = {**relay.environ, "TERM": "xterm-256color", "COLUMNS": "80"} | ({"NO_COLOR": "1"} if no_color else {})
    ours, theirs = pty.openpty()
    try:
        child = subprocess.Popen(
            relay.command("status"), cwd=relay.project, env=environ, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        shown = read_terminal(ours)
        assert child.wait(DEADLINE_S) == 0
    finally:
        os.close(ours)
    assert "up" in shown
    assert ("\x1b[1;32mup" in shown) is not no_color
    assert "\x1b" not in relay("status").stdout


def read_terminal(descriptor: int) -> str:
    shown = b""
    while select.select([descriptor], [], [], DEADLINE_S)[0]:
        try:
            chunk = os.read(descriptor, 65_536)
        except OSError:  # Linux reports the other side's end so
            break
        if not chunk:
            break
        shown += chunk
    return shown.decode()


def test_names_are_completed(relay: Shell) -> None:
    words = "agent-relay send Al"
    environ = {**relay.environ, "_AGENT_RELAY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "2"}
    wait_until(lambda: "Alice" in (relay.state_dir / "agents.json").read_text())
    done = subprocess.run(
        relay.command(), cwd=relay.project, env=environ, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["Alice"])


# --- agents the relay runs ----------------------------------------------------------------------------------------------


@pytest.fixture
def wrapped(relay: Shell) -> Iterator[RawClient]:
    """An agent that takes commands, in the hands of the test."""
    with RawClient(str(relay.state_dir / "relay.sock")) as client:
        client.hello("Wrapped", cli="claude", capabilities={"control": True}, session={"owner_token": relay.owner_token})
        yield client


@pytest.mark.parametrize(
    ("words", "said", "shown"),
    [
        (["pause", "wrapped"], {"command": "pause", "by": ME}, "Asked Wrapped to pause.\n"),
        (["resume", "wrapped"], {"command": "resume"}, "Asked Wrapped to resume.\n"),
        (["interrupt", "wrapped"], {"command": "interrupt"}, "Interrupted Wrapped.\n"),
        (["stop", "wrapped"], {"command": "stop"}, "Asked Wrapped to stop.\n"),
        (["input", "wrapped", "go on"], {"command": "input", "text": "go on\n"}, "Typed to Wrapped.\n"),
        (["input", "wrapped", "go on\n"], {"command": "input", "text": "go on\n"}, "Typed to Wrapped.\n"),
        (["input", "wrapped", "--no-enter", "y"], {"command": "input", "text": "y"}, "Typed to Wrapped.\n"),
    ],
)
def test_a_controlled_agent_gets_its_command(
    relay: Shell, wrapped: RawClient, words: list[str], said: dict[str, str], shown: str
) -> None:
    assert relay(*words).stdout == shown
    assert wrapped.expect("CONTROL")["payload"] == said
    assert relay.json(*words) == {"agent": "Wrapped", "command": words[0], "stage": "controlled"}
    assert wrapped.expect("CONTROL")["payload"] == said


def test_what_is_typed_may_come_from_a_pipe(relay: Shell, wrapped: RawClient) -> None:
    relay("input", "Wrapped", "-", given="one\ntwo\n")
    assert wrapped.expect("CONTROL")["payload"]["text"] == "one\ntwo\n"


def test_a_command_that_cannot_be_carried_out_says_why(relay: Shell, wrapped: RawClient) -> None:
    assert "Did you mean Wrapped?" in relay("pause", "Wraped", status=1).stderr
    assert "Bob is not connected." in relay("stop", "Bob", status=1).stderr
    assert "text to type is empty" in relay("input", "Wrapped", "", status=2).stderr
    with RawClient(str(relay.state_dir / "relay.sock")) as client:
        client.hello("Plain")
        assert "Plain is not run by the relay, so it cannot be interrupted." in relay("interrupt", "Plain", status=1).stderr
    assert "TEXT" in relay("input", "Wrapped", status=2).stderr
    wrapped.expect_none("CONTROL")


def test_a_command_needs_a_daemon(shell: Shell) -> None:
    assert "agent-relay up" in shell("pause", "Bob", status=3).stderr


def test_what_an_agent_reports_is_shown(relay: Shell, wrapped: RawClient) -> None:
    plain = relay("agents").stdout
    assert "door" not in plain
    state = {"state": "waiting", "waitingFor": "a permission", "door": "typing", "doorNote": "no socket", "paused": True}
    wrapped.say("AGENT_EVENT", {"type": "agent.state", "fields": state})
    wrapped.flush()
    for command in ("agents", "who", "status"):
        shown = relay(command).stdout
        row = next(line for line in shown.splitlines() if line.startswith("Wrapped"))
        assert "waiting, paused" in row
        assert "typing" in row
        assert "Wrapped  waits for a permission; no socket" in shown.splitlines()
    (found,) = [agent for agent in relay.json("agents")["agents"] if agent["name"] == "Wrapped"]
    assert (found["state"], found["waiting_for"], found["paused"]) == ("waiting", "a permission", True)


def test_the_life_of_a_message_inside_an_agent_is_explained(relay: Shell, wrapped: RawClient) -> None:
    message_id = relay.json("send", "Wrapped", "look at this", "--from", "Alice")["message_id"]
    deliver = wrapped.expect("DELIVER")
    wrapped.say("AGENT_EVENT", {"type": "message.received", "fields": {"messageId": message_id}})
    wrapped.ack(deliver, door="typing", evidence="composer")
    wrapped.say("AGENT_EVENT", {"type": "message.read", "fields": {"messageId": message_id, "evidence": "transcript"}})
    wait_until(lambda: "  read by Wrapped, seen: transcript" in relay("explain", message_id).stdout)
    shown = relay("explain", message_id).stdout
    steps = ["received by Wrapped", "injected into Wrapped, door typing, seen: composer", "read by Wrapped, seen: transcript"]
    assert sorted(steps, key=shown.index) == steps
    assert re.search(r"^Wrapped  read, .* after it was stored$", shown, re.MULTILINE)
