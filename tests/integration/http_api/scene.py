"""A scripted agent in a real terminal, started, seen and answered over HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import httpx

from tests.integration.stage import Stage, until

from .server import ME, Server

DIALOG = {
    "question": "Do you want to proceed?",
    "options": ["Yes", "No"],
    "keys": {},
    "say": {"Yes": ["it was allowed"], "No": ["it was refused"], "": ["it was refused"]},
}
TASK = "please begin"
ASKS = {"when": TASK, "busy_ms": 20, "dialog": DIALOG, "say": [f"->relay:{ME} went on"]}


class Scene:
    """A daemon that may start one scripted agent, Bob. `settings` are the text of its config.toml."""

    def __init__(self, folder: Path, *turns: dict[str, Any], settings: str = "") -> None:
        self.stage = Stage(folder, f"--spawn-allow={folder / 'Bob.sh'}", "--port=0")
        self.program = self.stage.play("Bob", turns=turns)[0]
        self.record = folder / "Bob.jsonl"
        if settings:
            home = self.stage.daemon.directory / "home"
            home.mkdir(exist_ok=True)
            (home / "config.toml").write_text(settings)
            self.stage.daemon.restart()
        self.server = Server(self.stage.daemon)

    @property
    def http(self) -> httpx.Client:
        return self.server.http

    def restart(self) -> None:
        """SIGKILL, and another daemon; its HTTP server is at another port."""
        self.server.http.close()
        self.stage.daemon.restart()
        self.server = Server(self.stage.daemon)

    # --- Bob ---------------------------------------------------------------------------------------------------------------

    def spawn(self, task: str | None = None) -> str:
        """The session's id."""
        made = self.http.post("/api/v1/sessions", json={"agent": "Bob", "cli": self.program, "task": task})
        assert made.status_code == 201, made.text
        return str(made.json()["sessionId"])

    def asked(self) -> dict[str, Any]:
        """The permission that Bob asks for, once he does."""
        found: dict[str, Any] = until(self.permissions, "Bob asks")[0]
        return found

    def permissions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.http.get("/api/v1/agents/Bob/permissions").json().get("permissions", [])
        return found

    def decide(self, asked: dict[str, Any], verdict: str, reason: str | None = None) -> httpx.Response:
        return self.http.post(
            f"/api/v1/agents/Bob/permissions/{asked['requestId']}/{verdict}", json={} if reason is None else {"reason": reason}
        )

    def events(self, *types: str) -> list[dict[str, Any]]:
        query = {"types": ",".join(types), "limit": "1000"}
        found: list[dict[str, Any]] = self.http.get("/api/v1/events", params=query).json()["events"]
        return [event for event in found if event["type"] != "stream.gap"]  # that is told to everybody

    def recorded(self, kind: str) -> list[dict[str, Any]]:
        lines = self.record.read_text().splitlines() if self.record.exists() else []
        return [event for event in (json.loads(line) for line in lines if line.endswith("}")) if event["event"] == kind]

    def chosen(self) -> list[str]:
        return [event["option"] for event in self.recorded("answered")]

    def typed_into_dialogs(self) -> bool:
        return any(event["mode"] == "dialog" for event in self.recorded("input"))

    def said_over_http(self) -> list[str]:
        found = self.http.get("/api/v1/messages", params={"from": "Bob", "to": ME}).json()["messages"]
        return [message["body"] for message in found]

    def close(self) -> None:
        if self.stage.daemon.running:
            for session in self.http.get("/api/v1/sessions").json()["sessions"]:
                if session["status"] in {"starting", "running"}:
                    self.http.delete(f"/api/v1/sessions/{session['sessionId']}")
        self.server.close()
        self.stage.close()


@contextlib.contextmanager
def stopped(pid: int) -> Any:
    """The process does nothing meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
