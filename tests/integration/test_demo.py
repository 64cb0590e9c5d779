"""The demonstration as a person runs it: real terminals, a real daemon, and nothing left of either afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.cli.demo.game import all_sayings
from tests.integration.stage import until

pytestmark = pytest.mark.terminals

DEADLINE_S = 100.0
DELIVERIES = sum(len(saying.to) for saying in all_sayings())


class Place:
    """A folder for everything the demonstration makes, with a name that no other process has in its arguments."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ar-demo-test-", dir="/tmp"))
        self.temporary = self.folder / "tmp"
        self.home = self.folder / "home"
        for folder in (self.temporary, self.home):
            folder.mkdir()
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith(("AGENT_RELAY_", "TMUX"))}
        self.environ.update(TMPDIR=str(self.temporary), HOME=str(self.home))
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        demo = subprocess.Popen(
            [sys.executable, "-m", "agent_relay", "demo", *words], env=self.environ, cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
        )  # fmt: skip
        self.started.append(demo)
        return demo

    def run(self, *words: str) -> str:
        demo = self.start(*words)
        out, err = demo.communicate(timeout=DEADLINE_S)
        assert (demo.returncode, err) == (0, ""), out + err
        return out

    def processes(self, part: str = "") -> list[int]:
        """Those of the demonstration, by its folder in their arguments."""
        listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
        mine = [line.split(maxsplit=1) for line in listed.splitlines() if f"{self.temporary}/agent-relay-demo-" in line]
        return [int(pid) for pid, arguments in mine if part in arguments]

    def has_no_traces(self) -> None:
        until(lambda: not self.processes(), f"no process is left: {self.processes()}")
        assert list(self.temporary.iterdir()) == []
        assert list(self.home.iterdir()) == []

    def close(self) -> None:
        for demo in self.started:
            demo.kill()
            demo.communicate()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def place() -> Iterator[Place]:
    made = Place()
    yield made
    made.close()


# --- without a person ------------------------------------------------------------------------------------------------


def check_transcript(shown: str) -> None:
    assert "\x1b" not in shown
    for saying in all_sayings():
        for name in saying.to:
            assert len([line for line in shown.splitlines() if f"{saying.sender} → {name} " in line and saying.text in line]) == 1
    order = [
        "1. Three agents", "in a browser, live", "a dialog is open", "3 messages wait", "the person answers", "Does it float?",
        "kill -9", "it was down for", "Every message arrived once and in order", f"{DELIVERIES} of {DELIVERIES}", "typed 0 keys",
    ]  # fmt: skip
    places = [shown.index(part) for part in order]
    assert places == sorted(places)
    explained = shown.split("agent-relay explain")[1]
    assert "injected into Alice" in explained
    assert "seen: composer" in explained


def test_the_transcript_is_plain_and_complete_and_nothing_is_left(place: Place) -> None:
    shown = place.run("--fast")
    check_transcript(shown)
    assert "is there (tmux)" in shown
    place.has_no_traces()


def test_with_stay_the_dashboard_is_there_until_ctrl_c(place: Place) -> None:
    demo = place.start("--fast", "--stay")
    assert demo.stdout is not None
    shown = ""
    while "Press Ctrl-C to stop" not in shown:
        line = demo.stdout.readline()
        assert line, "it ended by itself"
        shown += line
    url, _, code = shown.split("; watch them at ")[1].split(". ")[0].partition("/#code=")
    ask = urllib.request.Request(
        f"{url}/api/v1/page-keys", json.dumps({"code": code}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(ask, timeout=60) as answer:
        cookie, key = answer.headers["Set-Cookie"].partition(";")[0], json.load(answer)["key"]
    ask = urllib.request.Request(f"{url}/api/v1/agents", headers={"Cookie": cookie, "X-Relay-Page": key})
    with urllib.request.urlopen(ask, timeout=60) as answer:
        assert {agent["name"] for agent in json.load(answer)["agents"]} >= {"Alice", "Bob", "Carol"}
    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=DEADLINE_S)
    assert demo.returncode == 0
    place.has_no_traces()


def test_without_tmux_it_plays_all_the_same_and_says_what_is_missed(place: Place) -> None:
    tools = place.folder / "tools"
    tools.mkdir()
    for tool in ("sh", "stty", "env", "cat"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    place.environ["PATH"] = str(tools)
    shown = place.run("--fast")
    assert shown.startswith("With tmux installed")
    check_transcript(shown)
    assert "is there (pty)" in shown
    place.has_no_traces()


def test_the_summary_for_programs(place: Place) -> None:
    told = json.loads(place.run("--fast", "--json"))
    assert told["holds"] is True
    assert (told["delivered"], told["lost"], told["doubled"], told["out_of_order"]) == (DELIVERIES, 0, 0, 0)
    assert told["dialog"]["keys"] == "1"
    assert told["crash"]["gone_s"] > 0
    assert len(told["arrivals"]) == DELIVERIES
    assert all(arrival["print_to_screen_ms"] >= 0 for arrival in told["arrivals"])
    assert told["explained"]["trail"][-1]["event"] == "injected"
    place.has_no_traces()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_and_nothing_is_left(place: Place, number: signal.Signals, status: int) -> None:
    demo = place.start()
    assert demo.stdout is not None
    until_line(demo, "Bob → Alice")
    assert place.processes("relay.daemon"), "the daemon is found where the test looks for what is left"
    demo.send_signal(number)
    _, err = demo.communicate(timeout=DEADLINE_S)
    assert (demo.returncode, err) == (status, "")
    place.has_no_traces()


def test_a_wrapper_that_is_killed_is_named_and_nothing_is_left(place: Place) -> None:
    demo = place.start()
    until_line(demo, "Bob → Alice")
    (pid,) = place.processes("wrap --name=Bob")
    os.kill(pid, signal.SIGKILL)
    _, err = demo.communicate(timeout=DEADLINE_S)
    assert demo.returncode == 1
    assert err.startswith("agent-relay: The wrapper of Bob exited")
    place.has_no_traces()


def until_line(demo: subprocess.Popen[str], part: str) -> None:
    assert demo.stdout is not None
    for line in demo.stdout:
        if part in line:
            return
    raise AssertionError(f"it ended without {part!r}: {demo.communicate()}")


# --- at a person's terminal ------------------------------------------------------------------------------------------


class Person:
    """Sits at a tmux of their own, in which the demonstration is run."""

    def __init__(self, place: Place, columns: int, rows: int, *words: str) -> None:
        self._base = ["tmux", "-f", "/dev/null", "-S", str(place.folder / "person.sock")]
        self._folder = place.folder
        demo = shlex.join([sys.executable, "-m", "agent_relay", "demo", *words])
        line = f"trap : INT; stty -g >before; {demo}; echo $? >status; stty -g >after; echo =over=; exec cat"
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "sh", "-c", line, env=place.environ, cwd=place.folder)

    def tmux(self, *words: str, **options: Any) -> str:
        done = subprocess.run([*self._base, *words], capture_output=True, text=True, check=True, **options)
        return str(done.stdout)

    @property
    def sees(self) -> str:
        return self.tmux("capture-pane", "-p")

    def sees_all(self, *parts: str) -> None:
        seen: list[str] = []

        def look() -> bool:
            seen[:] = [self.sees]
            return all(part in seen[0] for part in parts)

        try:
            until(look, deadline_s=DEADLINE_S)
        except AssertionError:
            raise AssertionError(f"{parts} are not on the screen, where there is:\n{seen[0]}") from None

    def ended_with(self) -> int:
        """The status; the terminal is as it was."""
        self.sees_all("=over=")
        assert (self._folder / "after").read_text() == (self._folder / "before").read_text()
        modes = self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_flag}").split()
        assert modes == ["0", "1", "0", "0"]
        return int((self._folder / "status").read_text())

    def leave(self) -> None:
        subprocess.run([*self._base, "kill-server"], capture_output=True, check=False)


@contextlib.contextmanager
def at_terminal(place: Place, columns: int, rows: int, *words: str) -> Iterator[Person]:
    person = Person(place, columns, rows, *words)
    try:
        yield person
    finally:
        person.leave()


def test_the_terminals_are_shown_side_by_side_and_the_summary_stays(place: Place) -> None:
    with at_terminal(place, 80, 24, "--fast") as person:
        person.sees_all("── Alice ", "── Bob ", "── Carol ", "── What happens ")
        person.sees_all("Read notes.txt to answer?", "❯ 1. Yes", "› ")
        assert person.ended_with() == 0, person.sees
        assert "Every message arrived once and in order" in person.sees
        assert "── Alice" not in person.sees
    place.has_no_traces()


@pytest.mark.parametrize("key", ["C-c", "q"])
def test_the_person_leaves_and_nothing_is_left(place: Place, key: str) -> None:
    with at_terminal(place, 160, 48) as person:
        person.sees_all("── Carol ", "->relay:Alice")
        person.tmux("send-keys", "x", "C-b", "d")  # nothing else that is typed does anything
        person.tmux("send-keys", key)
        assert person.ended_with() == 130
    place.has_no_traces()


@pytest.mark.parametrize("victim", ["view.sock start-server", "view.sock attach-session", "wrap --name=Alice"])
def test_the_terminal_is_put_back_when_a_part_is_killed(place: Place, victim: str) -> None:
    with at_terminal(place, 100, 30) as person:
        person.sees_all("── Carol ", "->relay:Alice")
        until(lambda: len(place.processes(victim)) == 1, f"one process is {victim}", DEADLINE_S)
        (pid,) = place.processes(victim)
        os.kill(pid, signal.SIGKILL)
        assert person.ended_with() == 1
        assert "agent-relay: The " in person.sees
    place.has_no_traces()


def test_a_closed_window_ends_it_too(place: Place) -> None:
    with at_terminal(place, 100, 30) as person:
        person.sees_all("── Carol ", "->relay:Alice")
    until(lambda: not place.processes(), "everything ends", DEADLINE_S)
    until(lambda: not list(place.temporary.iterdir()), "its folder is removed")


def test_a_terminal_too_small_for_that_gets_the_transcript(place: Place) -> None:
    with at_terminal(place, 50, 24) as person:
        person.sees_all("2. A game", "Bob → Alice")
        assert "What happens" not in person.sees
        person.tmux("send-keys", "C-c")
        assert person.ended_with() == 130
    place.has_no_traces()
