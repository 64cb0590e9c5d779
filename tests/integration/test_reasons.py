"""Why a message waits: every place that shows it says the same, in the words of the glossary."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from agent_relay.cli.main import main
from agent_relay.cli.person import person
from agent_relay.protocol.short_ids import short_id
from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient

ME = person()


class Scene:
    """A daemon and the command line; Bob is what a wrapper would be."""

    def __init__(self, daemon: DaemonProcess, capsys: pytest.CaptureFixture[str]) -> None:
        self.daemon = daemon
        self._capsys = capsys
        self.http = httpx.Client(base_url=daemon.wait_for_url(), headers=daemon.api_headers, timeout=20)

    def run(self, *words: str, status: int = 0) -> str:
        """Standard output, or where it fails, standard error."""
        where = ["--socket", str(self.daemon.socket), "--state-dir", str(self.daemon.state_dir)]
        ended = main([*words, *where])
        shown = self._capsys.readouterr()
        assert ended == status, shown
        return shown.err if status else shown.out

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json"))

    def join(self, name: str = "Bob") -> RawClient:
        client = RawClient(str(self.daemon.socket))
        session = {"owner_token": self.daemon.api_token}
        client.hello(name, capabilities={"ack": True, "control": True, "events": True}, session=session)
        return client

    def line(self, name: str = "Bob") -> str:
        """Of the HTTP API, which the page shows."""
        return str(self.http.get(f"/api/v1/agents/{name}").json()["hold"]["line"])

    def last_id(self, to: str) -> str:
        return str(self.json("history", "--to", to, "--limit", "1")["messages"][0]["message_id"])

    def check_everywhere(self, line: str, *, in_doctor: bool = False) -> None:
        sent = self.json("send", "Bob", "look at this", "--as", "Alice")
        assert sent["waits"] == [{"name": "Bob", "line": line}]
        assert f"waits  Bob: {line}" in self.run("send", "Bob", "and at this", "--as", "Alice")
        for command in ("agents", "status"):
            assert re.search(rf"^Bob  {re.escape(line)}$", self.run(command, "--all"), re.MULTILINE)
            (bob,) = [agent for agent in self.json(command)["agents"] if agent["name"] == "Bob"]
            assert bob["hold"]["line"] == line
        assert f"waits  Bob: {line}" in self.run("explain", short_id(sent["message_id"]))
        assert self.line() == line
        assert self.http.get(f"/api/v1/messages/{short_id(sent['message_id'])}").json()["messageId"] == sent["message_id"]
        if in_doctor:
            assert f"messages wait: {line}" in self.run("doctor")


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess("--port=0", "--loop-slow-after=0", "--loop-hold-after=2") as daemon:
        yield daemon


@pytest.fixture
def scene(daemon: DaemonProcess, capsys: pytest.CaptureFixture[str]) -> Iterator[Scene]:
    scene = Scene(daemon, capsys)
    with scene.http:
        yield scene


def report(client: RawClient, kind: str, **fields: Any) -> None:
    client.say("AGENT_EVENT", {"type": kind, "fields": fields})
    client.flush()


def test_offline(scene: Scene) -> None:
    with scene.join():
        pass
    scene.check_everywhere(scene.line())
    assert re.fullmatch(r"offline since \d\d:\d\d; delivered when it comes back", scene.line())


def test_paused_by_you(scene: Scene) -> None:
    with scene.join() as bob:
        report(bob, "agent.state", state="idle")
        scene.run("pause", "Bob")
        control = bob.expect("CONTROL")["payload"]
        assert control == {"command": "pause", "by": ME}
        report(bob, "agent.state", state="idle", paused=True, pausedBy=control["by"])
        scene.check_everywhere("paused by you: `agent-relay resume Bob`")


def test_a_dialog(scene: Scene) -> None:
    with scene.join() as bob:
        report(bob, "agent.state", state="waiting", waitingFor="a permission")
        report(bob, "permission.requested", requestId="3f9c2a11bb", description="may I?", tool="bash", command="make")
        scene.check_everywhere(
            "Bob has a dialog open: approve it with `agent-relay permissions approve 3f9c2a11`", in_doctor=True
        )
        path = "/api/v1/agents/Bob/permissions/3f9c2a11/deny"  # by the short id, over HTTP as well
        with ThreadPoolExecutor() as pool:
            denied = pool.submit(scene.http.post, path)
            assert bob.expect("CONTROL")["payload"]["id"] == "3f9c2a11bb"
            report(bob, "permission.resolved", requestId="3f9c2a11bb", resolution="denied", resolvedBy="door")
            assert denied.result().status_code == 200


def test_a_prompt_that_is_not_recognised(scene: Scene) -> None:
    with scene.join() as bob:
        report(bob, "agent.state", state="starting", hold="prompt", holdDetail="its prompt is not to be seen")
        scene.check_everywhere("Bob's prompt was not recognised: see `agent-relay profile new`")


def test_the_loop_guard(scene: Scene) -> None:
    with scene.join("Eve") as eve, scene.join("Finn") as finn:
        for client in (eve, finn):
            report(client, "agent.state", state="idle")
        report(finn, "agent.input")
        finn.send_stored("Eve", "one")
        eve.deliveries(1)
        eve.flush()
        eve.send_stored("Finn", "two, which is held")
        assert scene.line("Finn") == "loop guard: 2 answers in a row, `agent-relay resume Finn`"
        assert "waits for Finn, loop guard: 2 answers in a row" in scene.run("explain", scene.last_id("Finn"))


# --- errors, for programs ------------------------------------------------------------------------------------------------


def test_errors_are_json_where_json_was_asked_for(scene: Scene) -> None:
    error = json.loads(scene.run("send", "Nobody", "x", "--json", status=1))["error"]
    assert (error["code"], error["category"], error["retryable"]) == ("AGENT_NOT_FOUND", "routing", False)
    assert json.loads(scene.run("explain", "00000000", "--json", status=1))["error"]["code"] == "ROUTE_NOT_FOUND"
    assert json.loads(scene.run("history", "--nonsense", "--json", status=2))["error"]["code"] == "INVALID_FORMAT"


# --- your own name -------------------------------------------------------------------------------------------------------


def test_your_name_is_yours_on_the_command_line_and_over_http(scene: Scene) -> None:
    with scene.join("Dora") as dora:
        scene.run("send", "Dora", "from the command line")
        assert scene.http.post("/api/v1/messages", json={"to": "Dora", "body": "over HTTP"}).status_code == 201
        scene.run("send", "Dora", "again")  # the page's name, which gives way
        assert [(each["from"], each["payload"]["body"]) for each in dora.deliveries(3)] == [
            (ME, "from the command line"), (ME, "over HTTP"), (ME, "again"),
        ]  # fmt: skip
        dora.send_stored(ME, "an answer")
        shown = scene.run("inbox")
        assert re.search("Dora → you .*\n +an answer", shown)
        assert f"Nothing is waiting for {ME}." in scene.run("inbox")
    assert scene.http.get("/api/v1/status").json()["you"] == ME
    assert "you → Dora" in scene.run("history", "--from", ME)


def test_an_agent_cannot_have_your_name(scene: Scene) -> None:
    for session in ({}, {"owner_token": "guess"}):
        with RawClient(str(scene.daemon.socket)) as stranger:
            stranger.say("HELLO", {"agent": ME.upper(), "session": session})
            assert stranger.expect("ERROR")["payload"]["code"] == "INVALID_TARGET"
    words = ["wrap", "-n", ME, "--socket", str(scene.daemon.socket), "--state-dir", str(scene.daemon.state_dir), "cat"]
    done = subprocess.run(
        [sys.executable, "-m", "agent_relay", *words], capture_output=True, text=True, timeout=60, check=False
    )  # fmt: skip
    assert done.returncode == 1, done
    assert "Give the agent another name with -n." in done.stderr
