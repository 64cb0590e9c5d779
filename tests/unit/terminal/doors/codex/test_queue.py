"""`codex queue` with a program that does what Codex was seen to do: keeps a queue, and writes down what the agent was given."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agent_relay.terminal.doors.codex import queue as codex_queue
from agent_relay.terminal.doors.codex.queue import CodexQueue
from agent_relay.terminal.doors.codex.record import Codex
from agent_relay.terminal.doors.door import Decision, DoorShut, NotOpen, NotTaken, Whereabouts
from agent_relay.terminal.profiles.profile import load_profiles
from tests.unit.terminal.doors.codex_cli import message, place
from tests.unit.terminal.doors.heard import Heard, until

MARK = "relay-0a1b2c3d"
THREAD = "01a1df0b-1623-7130-a05d-e0f85a9ec507"
PROGRAM = """#!{python}
import json, os, sqlite3, sys, time
words = sys.argv[1:]
if words == ["--version"]:
    print("codex-cli 0.166.3")
    sys.exit(0)
if words[0] != "queue" or os.path.exists("broken"):
    sys.exit(2)
if os.path.exists("silent"):
    time.sleep(60)
if words[1] == "--help":
    if os.path.exists("prompt"):  # as 0.140 says it, which takes the word for a prompt
        print("Codex CLI. Usage: codex [OPTIONS] [PROMPT], codex [OPTIONS] <COMMAND> [ARGS]")
    else:
        print("Usage: codex queue [OPTIONS] --thread <THREAD> --message <TEXT>")
    sys.exit(0)
thread, text = words[2], words[4]
database = sqlite3.connect(os.path.join(os.environ["CODEX_HOME"], "queue_1.sqlite"))
database.execute("CREATE TABLE IF NOT EXISTS queued_items (thread_id TEXT, payload_json TEXT)")
database.execute("INSERT INTO queued_items VALUES (?, ?)", (thread, json.dumps({{"input": [{{"type": "text", "text": text}}]}})))
database.commit()
if os.path.exists("slow"):
    time.sleep(60)
"""
SLOW_S = 4.0  # longer than the program needs to begin, on a busy machine too


class FakeCodex:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.rollout = self.home / "sessions" / "2026" / "11" / "15" / f"rollout-2026-11-15T11-50-08-{THREAD}.jsonl"
        self.rollout.parent.mkdir(parents=True)
        self.program = folder / "codex"
        self.program.write_text(PROGRAM.format(python=sys.executable))
        self.program.chmod(0o755)

    def begin(self, mark: str = MARK) -> None:
        """The first turn."""
        meta = {"session_id": THREAD, "id": THREAD, "timestamp": "2026-11-15T11:50:08.165Z", "cwd": str(self.folder)}
        self._write("session_meta", meta)
        content = [{"type": "input_text", "text": f"Agent Relay: you are Bob. [{mark}]"}]
        self._write("response_item", {"type": "message", "id": "msg_1", "role": "developer", "content": content})

    def take(self) -> None:
        """The agent is given what is queued."""
        with sqlite3.connect(self.home / "queue_1.sqlite") as database:
            for (payload,) in database.execute("SELECT payload_json FROM queued_items ORDER BY rowid").fetchall():
                content = json.loads(payload)["input"]
                item = {"type": "UserMessage", "id": f"item-{time.monotonic_ns()}", "client_id": "another", "content": content}
                self._write("event_msg", {"type": "item_completed", "thread_id": THREAD, "item": item})
            database.execute("DELETE FROM queued_items")

    def _write(self, kind: str, payload: dict[str, object]) -> None:
        with self.rollout.open("a") as file:
            file.write(json.dumps({"timestamp": "2026-11-15T11:50:08.259Z", "type": kind, "payload": payload}) + "\n")

    @property
    def started(self) -> Codex:
        environment = {"CODEX_HOME": str(self.home), "PATH": "/usr/bin:/bin"}
        return Codex(str(self.program), environment, str(self.folder), self.home, load_profiles()["codex"], MARK, 0)

    def door(self, heard: Heard) -> CodexQueue:
        return CodexQueue(self.started, place(self.folder), heard)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex_queue, "LOOK_S", 0.02)


def play(folder: Path, scene: Callable[[FakeCodex, Heard, CodexQueue], Awaitable[None]], *, begins: bool = True) -> Heard:
    async def run() -> Heard:
        codex, heard = FakeCodex(folder), Heard()
        if begins:
            codex.begin()
        door = codex.door(heard)
        await door.open()
        try:
            async with asyncio.timeout(120):
                await scene(codex, heard, door)
        finally:
            await door.close()
        return heard

    return asyncio.run(run())


def test_messages_are_read_in_order_and_known_by_their_text(tmp_path: Path) -> None:
    async def scene(codex: FakeCodex, heard: Heard, door: CodexQueue) -> None:
        for number in range(5):
            await door.deliver(message(number))
        assert heard.read == []
        assert await door.look_up(message(4)) is Whereabouts.HELD
        codex.take()
        await until(lambda: len(heard.read) == 5, "all are read")
        assert await door.look_up(message(4)) is Whereabouts.READ
        assert await door.look_up(message(5)) is Whereabouts.NOWHERE

    heard = play(tmp_path, scene)
    assert heard.read == [f"msg-{number}" for number in range(5)]
    assert heard.of("session") == [THREAD]


def test_before_the_first_turn_nothing_is_taken(tmp_path: Path) -> None:
    async def scene(codex: FakeCodex, heard: Heard, door: CodexQueue) -> None:
        with pytest.raises(NotTaken, match="not begun"):
            await door.deliver(message(1))
        codex.begin("relay-another1")
        with pytest.raises(NotTaken, match="not begun"):
            await door.deliver(message(1))
        codex.begin()
        await until(lambda: heard.of("session"), "the conversation is known")
        await door.deliver(message(1))
        codex.take()
        await until(lambda: heard.read, "it is read")

    play(tmp_path, scene, begins=False)


def test_what_a_wrapper_that_died_queued_is_found(tmp_path: Path) -> None:
    async def scene(codex: FakeCodex, heard: Heard, door: CodexQueue) -> None:
        await door.deliver(message(1))
        later_heard = Heard()
        later = codex.door(later_heard)
        await later.open()
        assert await later.look_up(message(1)) is Whereabouts.HELD
        codex.take()
        await until(lambda: later_heard.read == ["msg-1"], "the reading is told")
        await later.close()

    play(tmp_path, scene)


def test_a_program_that_does_not_end_is_not_waited_for_and_its_word_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codex_queue, "RUN_S", SLOW_S)

    async def scene(codex: FakeCodex, heard: Heard, door: CodexQueue) -> None:
        (tmp_path / "slow").touch()
        assert await door.deliver(message(1)) == "queued, it seems"
        (tmp_path / "slow").unlink()
        (tmp_path / "silent").touch()
        monkeypatch.setattr(codex_queue, "RUN_S", 0.5)
        with pytest.raises(NotTaken, match="no answer"):
            await door.deliver(message(2))
        codex.take()
        await until(lambda: heard.read, "it is read")
        assert heard.read == [message(1).id]

    play(tmp_path, scene)


def test_garbage_in_the_session_file_is_passed_over(tmp_path: Path) -> None:
    async def scene(codex: FakeCodex, heard: Heard, door: CodexQueue) -> None:
        await door.deliver(message(1))
        with codex.rollout.open("ab") as file:
            file.write(
                b'{"half\n\xff\xfe\n[]\n{"type": "event_msg", "payload": {"item": {"type": "UserMessage"}}}\n'
                + b"[" * 5000
                + b"\n"
            )
        codex.take()
        await until(lambda: heard.read, "it is read")
        assert heard.read == [message(1).id]

    play(tmp_path, scene)


def test_a_codex_that_takes_the_word_for_a_prompt_has_no_such_door(tmp_path: Path) -> None:
    """Its help exits with 0 as well, and is about something else."""

    async def scene(codex: FakeCodex, heard: Heard, door: CodexQueue) -> None:
        (tmp_path / "prompt").touch()
        with pytest.raises(DoorShut, match="has no `codex queue`") as shut:
            await codex.door(Heard()).open()
        assert shut.value.lasts

    play(tmp_path, scene)


def test_trouble(tmp_path: Path) -> None:
    async def scene(codex: FakeCodex, heard: Heard, door: CodexQueue) -> None:
        (tmp_path / "broken").touch()
        with pytest.raises(DoorShut, match="does not take"):  # a usage error: it will not be otherwise the next time
            await door.deliver(message(1))
        with pytest.raises(DoorShut):
            await codex.door(Heard()).open()
        codex.program.unlink()
        with pytest.raises(NotTaken, match="127"):
            await door.deliver(message(1))
        with pytest.raises(NotOpen):
            await door.answer("x", Decision(is_allowed=True))
        (codex.home / "queue_1.sqlite").write_bytes(b"no database at all, but rather long" * 100)
        assert await door.look_up(message(1)) is Whereabouts.UNKNOWN

    assert play(tmp_path, scene).of("read") == []
