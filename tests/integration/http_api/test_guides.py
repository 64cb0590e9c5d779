"""The programs of docs/guides.md, run as they stand there, and every `curl` of docs/http.md."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.transports.http.route import SSE

from .server import ME, Server, until

DOCS = Path(__file__).parents[3] / "docs"
TOKEN = "Geheim-42"
USED = {"sessionId": "s", "inputTokens": 1000, "outputTokens": 200}
CURLS = [
    line.strip() for line in (DOCS / "http.md").read_text("utf-8").replace("\\\n", " ").splitlines() if line.startswith("curl ")
]


def program(heading: str) -> str:
    """The Python of that section."""
    (section,) = [part for part in (DOCS / "guides.md").read_text("utf-8").split("\n## ") if part.startswith(heading)]
    (found,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return str(found)


@pytest.fixture
def server() -> Iterator[Server]:
    """With a token, and a port that stays the same."""
    daemon = DaemonProcess("--port=0")
    daemon.environ = {"AGENT_RELAY_API_TOKEN": TOKEN}
    with daemon:
        found = Server(daemon)
        daemon.flags = (f"--port={httpx.URL(found.url).port}",)  # when it is started again
        found.http.headers["Authorization"] = f"Bearer {TOKEN}"
        yield found
        found.close()


@contextmanager
def running(code: str, server: Server, folder: Path) -> Iterator[subprocess.Popen[str]]:
    environ = os.environ | {"RELAY": server.url, "AGENT_RELAY_API_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, env=environ, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield process
        process.kill()


def test_approve_from_the_phone(server: Server, tmp_path: Path) -> None:
    code = program("Approve from your phone")
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    bob = server.wrap("Bob")
    bob.ask_permission("p1")
    with running(code, server, tmp_path) as phone:
        assert phone.stdin is not None
        assert phone.stdout is not None

        def says(words: str) -> None:
            assert phone.stdin is not None
            phone.stdin.write(words)
            phone.stdin.flush()

        assert phone.stdout.readline() == "Bob asks (medium): make install\n"
        says("y\n")
        until(lambda: [(told.command, told.id) for told in bob.told] == [("approve", "p1")], "what waited is approved")
        bob.ask_permission("p2", command="rm -rf build")
        assert phone.stdout.readline() == "allow? [y/N] Bob asks (critical): rm -rf build\n"
        says("\n")
        until(lambda: [told.command for told in bob.told] == ["approve", "deny"], "what comes is denied")
        assert bob.told[1].text == "decided on the phone"
        bob.ask_permission("p3", command="make test")
        assert phone.stdout.readline().endswith("make test\n")
        bob.client.report("permission.resolved", requestId="p3", resolution="denied", resolvedBy="person")
        bob.client.agents()
        says("y\n")
        assert phone.stdout.readline() == "allow? [y/N] It is already closed (denied by human).\n"


def test_stream_events_to_a_file(server: Server, tmp_path: Path) -> None:
    code, file = program("Stream events to a file"), tmp_path / "everything.jsonl"
    alice = server.join("Alice")

    def send(count: int) -> None:
        for _ in range(count):
            alice.send("Alice", "a note")

    def numbers() -> list[int]:
        return [json.loads(line)["_seq"] for line in file.read_text().splitlines()] if file.exists() else []

    def is_written(notes: int) -> bool:
        return file.exists() and file.read_text().count('"a note"') == notes

    send(20)
    with running(code, server, tmp_path):
        until(lambda: is_written(20), "what was, is written")
        send(20)
        until(lambda: is_written(40), "what comes, too")
        server.daemon.restart()
        server.daemon.wait_for_url()
        send(20)
        until(lambda: is_written(60), "it goes on after the daemon was killed")
    send(20)
    with running(code, server, tmp_path):
        until(lambda: is_written(80), "it goes on after it was killed itself")
    assert numbers() == list(range(1, len(numbers()) + 1))


def test_see_what_was_spent(server: Server, tmp_path: Path) -> None:
    alice = server.join("Alice")
    alice.report("tokens.used", agentName="Alice", model="claude-opus-4-5", **USED)
    alice.report("tokens.used", agentName="Alice", model="our-own-model", **USED)
    until(lambda: server.http.get("/api/v1/costs").json()["total"]["totalTokens"] == 2400, "the usage is recorded")
    with running(program("See what was spent"), server, tmp_path) as report:
        shown, _ = report.communicate(timeout=60)
    assert [line.split() for line in shown.splitlines()] == [
        ["Alice", "2,400", "tokens", "0.01", "USD,", "and", "1,200", "tokens", "of", "unknown", "price"],
        ["claude-opus-4-5", "1,200", "tokens", "0.01", "USD"],
        ["our-own-model", "1,200", "tokens", "0.00", "USD,", "and", "1,200", "tokens", "of", "unknown", "price"],
        ["altogether", "2,400", "tokens", "0.01", "USD,", "and", "1,200", "tokens", "of", "unknown", "price"],
    ]


def test_every_curl_of_the_page_is_answered(server: Server) -> None:
    assert len(CURLS) > 5
    alice, bob = server.join("Alice"), server.wrap("Bob")
    alice.send("Bob", "hello")
    threading.Thread(target=lambda: list(bob.client.messages()), daemon=True).start()  # takes what it is sent
    for command in CURLS:
        bob.ask_permission("REQUEST")
        bob.ask_question("QUESTION")
        asked = alice.propose("Agree", [ME, "Alice"]).id if "PROPOSAL" in command else ""
        request = read_curl(command.replace("PROPOSAL", asked), server)
        with server.http.stream(request.method, request.url, headers=request.headers, content=request.content) as answer:
            if answer.headers["content-type"] != SSE:
                answer.read()
            assert answer.status_code in {200, 201}, command


def read_curl(command: str, server: Server) -> httpx.Request:
    """As curl reads the words that our pages use."""
    words = iter(shlex.split(re.split(r" \| | >>? ", command)[0])[1:])
    url, headers, body, method = "", {}, None, ""
    for word in words:
        match word:
            case "-s" | "-N":
                pass
            case "-H":
                name, _, value = next(words).partition(": ")
                headers[name] = value
            case "-X":
                method = next(words)
            case "-d":
                body = next(words).encode()
            case _:
                assert word.startswith("localhost:3888/"), word
                url = word.removeprefix("localhost:3888")
    assert url, command
    return httpx.Request(method or ("GET" if body is None else "POST"), server.url + url, headers=headers, content=body)
