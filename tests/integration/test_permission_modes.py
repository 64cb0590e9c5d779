"""A permission mode from whoever asks for it to the program it is for, over the socket, over HTTP and by command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError

from .http_api.server import Server
from .stage import Stage, until

pytestmark = pytest.mark.terminals


class Scene:
    """The program is called as a CLI is whose modes are known, and writes down what it is started with."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.program, self.given = folder / "aider", folder / "given"
        self.stage = Stage(folder, f"--spawn-allow={self.program}", "--port=0", *flags)
        played = self.stage.play("Bob", turns=[])[0]
        self.program.write_text(
            f'#!/bin/sh\nfor word; do echo "$word"; done > {self.given}.part\nmv {self.given}.part {self.given}\nexec {played}\n'
        )
        self.program.chmod(0o755)
        self.server = Server(self.stage.daemon)

    def start(self, mode: str, name: str = "Bob") -> Any:
        asked = {"agent": name, "cli": str(self.program), "permissionMode": mode}
        return self.server.http.post("/api/v1/sessions", json=asked)

    def started(self) -> list[dict[str, Any]]:
        found = self.server.http.get("/api/v1/events", params={"types": "session.started"}).json()["events"]
        return list(found)

    def words(self) -> list[str]:
        until(self.given.exists, "the program has started")  # the terminal it starts in was there first
        return self.given.read_text().split()

    def close(self) -> None:
        for session in self.server.http.get("/api/v1/sessions").json()["sessions"]:
            if session["status"] in {"starting", "running"}:
                self.server.http.delete(f"/api/v1/sessions/{session['sessionId']}")
        self.server.close()
        self.stage.close()


@pytest.fixture
def scene(folder: Path) -> Iterator[Scene]:
    made = Scene(folder)
    yield made
    made.close()


def test_over_http(scene: Scene) -> None:
    made = scene.start("ask")
    assert made.status_code == 201, made.text
    assert scene.words()[-2:] == ["--chat-mode", "ask"]
    path = f"/api/v1/sessions/{made.json()['sessionId']}"
    assert scene.server.http.get(path).json()["permissionMode"] == "ask"
    (event,) = until(scene.started, "the start is told")
    assert event["config"]["permissionMode"] == "ask"


def test_by_command_and_over_the_socket(scene: Scene) -> None:
    done = scene.stage.command("spawn", "Bob", str(scene.program), "--permission-mode", "ask", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["name"] == "Bob"
    assert scene.words()[-2:] == ["--chat-mode", "ask"]
    refused = scene.stage.command("spawn", "Carol", str(scene.program), "--permission-mode", "plan")
    assert (refused.returncode, refused.stderr) == (
        1, f"agent-relay: '{scene.program}' has no permission mode 'plan': it has ask, yes-always.\n"
    )  # fmt: skip
    with scene.stage.daemon.connect_sync("Lead") as lead:
        with pytest.raises(RelayError) as error:
            lead.spawn("Carol", str(scene.program), permission_mode="yes-always")
        assert (error.value.code, error.value.details["reason"]) == (ErrorCode.INVALID_TARGET, "mode_not_allowed")


def test_what_the_cli_does_not_know_or_nobody_may_choose_is_refused(scene: Scene) -> None:
    unknown = scene.start("plan")
    assert (unknown.status_code, unknown.json()["error"]["details"]) == (
        422, {"field": "permissionMode", "reason": "mode_unknown", "known": ["ask", "yes-always"]}
    )  # fmt: skip
    silent = scene.start("yes-always")
    assert (silent.status_code, silent.json()["error"]["details"]) == (
        422, {"field": "permissionMode", "reason": "mode_not_allowed", "setting": "spawn_unattended"}
    )  # fmt: skip
    assert "spawn_unattended" in silent.json()["error"]["message"]
    assert not scene.given.exists()
    assert scene.started() == []


def test_whoever_runs_the_daemon_may_allow_it(folder: Path) -> None:
    scene = Scene(folder, "--spawn-unattended=yes-always")
    try:
        assert scene.start("yes-always").status_code == 201
        assert "--yes-always" in scene.words()
    finally:
        scene.close()
