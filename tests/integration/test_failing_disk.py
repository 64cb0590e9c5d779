"""A disk that fails under a daemon at work: an error at a commit says nothing about what is stored, so nobody is told anything
before it is known, no number is used twice, and reads go on."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from agent_relay.interpreter import run_module
from agent_relay.protocol.places import ENV_HOME
from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient
from tests.faults import Faults

DEADLINE_S = 60.0
WAL = "messages.sqlite-wal"


class Scene:
    """Alice writes to Bob; every message is followed to its end, over restarts of the daemon."""

    def __init__(self) -> None:
        self.daemon = DaemonProcess("--heartbeat-ms=60s", "--port=0")
        self.faults = Faults(self.daemon.directory)
        self.daemon.environ = self.faults.environ
        self.daemon.start()
        self.tokens: dict[str, str] = {}
        self.stored: dict[str, str] = {}  # the body of each message that was said to be stored, by its id
        self.refused: set[str] = set()
        self.unanswered: dict[str, dict[str, Any]] = {}
        self.count = 0
        self.join()

    def join(self) -> None:
        self.alice, self.bob = RawClient(self.daemon.socket), RawClient(self.daemon.socket)
        for name, client in (("Alice", self.alice), ("Bob", self.bob)):
            client.hello(name, token=self.tokens.get(name))
            client.flush()
            self.tokens[name] = client.token

    def send(self, body: str | None = None) -> str:
        """One message; its id. The answer is for `answer`."""
        self.count += 1
        frame = self.alice.message("Bob", body or f"m{self.count}")
        self.unanswered[frame["id"]] = frame
        return self.alice.write_frame(frame)

    def answer(self, request: str) -> str:
        frame = self.alice.answer(request)
        said = self.unanswered.pop(request)
        if frame["type"] == "ACK":
            self.stored[request] = said["payload"]["body"]
        else:
            assert frame["payload"]["code"] == "SERVICE_UNAVAILABLE", frame
            assert frame["payload"]["retry_after_ms"] > 0
            self.refused.add(request)
        return str(frame["type"])

    def say(self) -> str:
        return self.answer(self.send())

    def say_until(self, kind: str) -> None:
        wait_until(lambda: self.say() == kind, f"no {kind} came")

    def fail_the_disk(self) -> None:
        """Every flush from now on; returns when the daemon says that it does not know what is stored."""
        self.faults.set(f"fdatasync EIO {WAL} *", "fsync EIO messages.sqlite *", "fdatasync EIO messages.sqlite *")
        self.send()
        wait_until(lambda: "Nothing is accepted until" in self.status()["storage"]["problem"], "the status says nothing")

    def repeat_unanswered(self) -> None:
        """As a client does that lost its connection before the answer: the same ids."""
        for request, frame in list(self.unanswered.items()):
            self.alice.write_frame(frame)
            self.answer(request)

    def status(self) -> dict[str, Any]:
        with RawClient(self.daemon.socket) as watcher:
            watcher.hello("watcher", mode="observer")
            server: dict[str, Any] = watcher.request("LIST_AGENTS", {})["server"]
            return server

    def command(self, *words: str) -> tuple[int, str]:
        """What `agent-relay` does and says; on one line, however it was wrapped."""
        where = ["--socket", self.daemon.socket, "--state-dir", str(self.daemon.state_dir)]
        environ = os.environ | {ENV_HOME: str(self.daemon.directory / "home"), "COLUMNS": "1000"}
        done = subprocess.run(
            [*run_module("agent_relay"), *words, *where], env=environ, capture_output=True, text=True, check=False, timeout=60
        )
        return done.returncode, done.stdout + done.stderr

    def restart(self) -> None:
        self.alice.close()
        self.bob.close()
        self.daemon.kill()
        self.faults.clear()
        self.daemon.start()
        self.join()

    def check(self) -> None:
        """Bob gets everything that is stored, each once, under numbers of their own; and of what was refused, nothing."""
        until = self.send("the last")
        assert self.answer(until) == "ACK"
        seen: dict[str, str] = {}
        numbers: dict[int, str] = {}
        while not seen or list(seen.values())[-1] != "the last":
            frame = self.bob.deliveries(1)[0]
            message_id, seq, body = frame["delivery"]["message_id"], frame["delivery"]["seq"], frame["payload"]["body"]
            assert numbers.setdefault(seq, message_id) == message_id, f"number {seq} was given to two messages"
            seen.setdefault(message_id, body)
        self.bob.expect_none("DELIVER")
        bodies = list(seen.values())
        assert bodies == list(self.stored.values())

    def close(self) -> None:
        self.alice.close()
        self.bob.close()
        self.daemon.remove()


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.close()


@pytest.mark.parametrize(
    "rule", [f"fdatasync EIO {WAL} 1", f"pwrite EIO {WAL} 1", f"pwrite HALF {WAL} 1", f"pwrite HALF {WAL} 1 1"]
)
def test_an_error_that_happens_once_is_told_truly(scene: Scene, rule: str) -> None:
    for _ in range(3):
        assert scene.say() == "ACK"
    while not scene.refused:  # it may as well hit a write that nobody waits for
        scene.faults.set(rule.format(WAL))
        scene.say()
    scene.faults.clear()
    scene.say_until("ACK")
    for _ in range(3):
        assert scene.say() == "ACK"
    scene.restart()  # what was in the WAL behind its end would come back now
    scene.check()


def test_what_was_refused_does_not_come_back_with_a_crash(scene: Scene) -> None:
    for _ in range(3):
        scene.say()
        scene.alice.request("HISTORY", {"limit": 1})  # who reads has the file open, and the WAL outlives the writer's connection
        refused = len(scene.refused)
        while len(scene.refused) == refused:
            scene.faults.set(f"fdatasync EIO {WAL} 1")
            scene.say()
        scene.restart()  # nothing was written over it meanwhile
    scene.check()


def test_what_was_refused_can_be_sent_again_and_arrives_once(scene: Scene) -> None:
    scene.say()
    scene.faults.set(f"fdatasync EIO {WAL} 1")
    frame = scene.alice.message("Bob", "again")
    answers = []
    while not answers or answers[-1] != "ACK":
        scene.alice.write_frame(frame)
        answers.append(scene.alice.answer(frame["id"])["type"])
    assert answers in (["NACK", "ACK"], ["ACK"])  # the one write that failed may have been that of a cursor
    scene.stored[frame["id"]] = "again"
    scene.restart()
    scene.check()


def test_while_the_disk_fails_nothing_is_accepted_and_everything_can_be_read(scene: Scene) -> None:
    for _ in range(3):
        scene.say()
    scene.bob.deliveries(3)
    scene.fail_the_disk()
    (waiting,) = scene.unanswered  # its batch, or one of a cursor before it, is in doubt
    problem = scene.status()["storage"]["problem"]
    assert "messages.sqlite" in problem
    code, said = scene.command("status")
    assert (code, f"WARNING: {problem}" in said) == (0, True), said
    code, said = scene.command("doctor")
    assert (code, "not yet known" in said) == (1, True), said
    with httpx.Client(base_url=scene.daemon.wait_for_url(), headers=scene.daemon.api_headers) as http:
        assert http.get("/api/v1/status").json()["storage"]["problem"] == problem
        assert http.get("/ready").status_code == 503
        sent = http.post("/api/v1/messages", json={"to": "Bob", "body": "over HTTP"})
        assert (sent.status_code, "not yet known" in sent.text) == (503, True), sent.text
    refused = scene.send()
    assert scene.answer(refused) == "NACK"
    history = [message["payload"]["body"] for message in scene.alice.request("HISTORY", {"limit": 10})["messages"]]
    assert history[-3:] == ["m3", "m2", "m1"]
    scene.faults.wait_for("fdatasync", 10)  # it tries again and again
    scene.faults.clear()
    scene.answer(waiting)
    wait_until(lambda: not scene.status()["storage"]["problem"], "the status still says it")
    assert scene.say() == "ACK"
    scene.alice.close()
    scene.bob.close()
    scene.daemon.restart()
    scene.join()
    newest = scene.send("the newest")
    scene.answer(newest)
    bodies = [message["payload"]["body"] for message in scene.alice.request("HISTORY", {"limit": 100})["messages"]]
    assert sorted(bodies) == sorted(scene.stored.values())


def test_killed_while_in_doubt(scene: Scene) -> None:
    """Whatever was in the file: the sender was told nothing, and its repetition is one message."""
    for _ in range(3):
        scene.say()
    scene.fail_the_disk()
    scene.send()
    scene.answer(list(scene.unanswered)[-1])
    scene.restart()
    scene.repeat_unanswered()
    scene.check()


def test_a_foreign_reader_does_not_keep_the_truth_from_being_found(scene: Scene) -> None:
    for _ in range(3):
        scene.say()
    reader = sqlite3.connect(scene.daemon.state_dir / "messages.sqlite", isolation_level=None)
    try:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM messages").fetchone()
        while not scene.refused:
            scene.faults.set(f"fdatasync EIO {WAL} 2")
            scene.say()
        scene.say_until("ACK")
        for _ in range(3):
            assert scene.say() == "ACK"
    finally:
        reader.close()
    scene.restart()
    scene.check()


def test_it_ends_within_seconds_while_in_doubt(scene: Scene) -> None:
    scene.say()
    scene.fail_the_disk()
    assert scene.daemon.terminate() == 0
    scene.restart()
    scene.repeat_unanswered()
    scene.check()
