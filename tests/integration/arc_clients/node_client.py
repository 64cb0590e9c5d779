"""A program that shares nothing with our clients, Node.js with `ws`, told what to do by lines of JSON."""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

DRIVER = Path(__file__).parent / "node" / "driver.cjs"
MODULES = Path(sys.prefix) / "websocket" / "node_modules"
DEADLINE_S = 60.0
Event = dict[str, Any]


class Node:
    """The program, and what it tells."""

    def __init__(self, url: str, api_token: str = "", **environ: str) -> None:
        assert (MODULES / "ws").exists(), "build it first: make generator"
        self.url = url
        self.api_token = api_token  # what registering needs
        self._process = subprocess.Popen(
            ["node", str(DRIVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "NODE_PATH": str(MODULES), **environ},
        )  # fmt: skip
        self._lines: queue.Queue[Event] = queue.Queue()
        self._kept: list[Event] = []
        self._refs = itertools.count()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Node:
        self.hear("", "ready")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(json.loads(line))

    def do(self, what: str, name: str, **more: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": what, "name": name, **more}) + "\n")
        self._process.stdin.flush()

    def hear(self, name: str, event: str, wanted: Callable[[Event], bool] = lambda _: True) -> Event:
        """The next of that kind; others are kept for who asks for them."""
        deadline = time.monotonic() + DEADLINE_S
        for at, kept in enumerate(self._kept):
            if kept["name"] == name and kept["event"] == event and wanted(kept):
                return self._kept.pop(at)
        while True:
            try:
                said = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"{name} did not tell of {event}; there is {self._kept}") from None
            if said["name"] == name and said["event"] == event and wanted(said):
                return said
            self._kept.append(said)

    def hear_frame(self, name: str, **wanted: Any) -> Event:
        """The next frame with these fields."""

        def is_it(event: Event) -> bool:
            return all(event["frame"].get(field) == value for field, value in wanted.items())

        return dict(self.hear(name, "message", is_it)["frame"])

    def heard_nothing(self, name: str, **wanted: Any) -> bool:
        return not [
            kept for kept in self._kept
            if kept["name"] == name and kept["event"] == "message"
            and all(kept["frame"].get(field) == value for field, value in wanted.items())
        ]  # fmt: skip

    def request(self, method: str, path: str, *, token: str | None = None, body: str | None = None) -> Event:
        given = {name: value for name, value in (("token", token), ("body", body)) if value is not None}
        self.do("request", "http", method=method, url=self.url + path, **given)
        return self.hear("http", "answer")

    def try_to_register(self, body: Any) -> Event:
        """`body`: a text as it stands, or what becomes one."""
        return self.request("POST", "/register", token=self.api_token, body=body if isinstance(body, str) else json.dumps(body))

    def register(self, agent_id: str | None = None) -> tuple[str, str]:
        answer = self.try_to_register({} if agent_id is None else {"agent_id": agent_id})
        assert answer["status"] == 200, answer
        return answer["body"]["agent_id"], answer["body"]["token"]

    def open(self, name: str, **how: Any) -> None:
        self.do("open", name, url=self.url.replace("http", "ws", 1) + "/arc", **how)

    def join(self, name: str) -> str:
        """Registered and connected under that name; its token."""
        agent_id, token = self.register(name)
        assert agent_id == name
        self.come(name, token)
        return token

    def come(self, name: str, token: str, **how: Any) -> Event:
        """Connected under that name; its welcome, which comes first."""
        self.open(name, token=token, **how)
        self.hear(name, "open")
        welcome = self.hear_frame(name)
        assert welcome["type"] == "welcome"
        return welcome

    def try_to_come(self, token: str) -> Event:
        """How it was refused."""
        self.open("refused", token=token)
        return self.hear("refused", "refused")

    def say(self, name: str, to: list[str], payload: Any, **more: Any) -> None:
        self.do("say", name, frame=json.dumps({"to": to, "payload": payload, **more}))

    def ask(self, name: str, kind: str, payload: Any = None, **more: Any) -> Event:
        """The relay's answer to a command."""
        ref = f"r{next(self._refs)}"
        given = {} if payload is None else {"payload": payload}
        self.do("say", name, frame=json.dumps({"to": ["relay"], "type": kind, "ref": ref, **given, **more}))
        return self.hear_frame(name, ref=ref)

    def hear_payloads(self, name: str, count: int) -> list[Any]:
        """Of that many frames, as they come."""
        return [self.hear(name, "message")["frame"]["payload"] for _ in range(count)]
