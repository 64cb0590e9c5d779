"""Codex's app-server against its recorded other end: delivering, the proof of reading, other conversations, trouble."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.doors.codex import app_server as codex_app_server
from agent_relay.terminal.doors.codex import server as codex_server
from agent_relay.terminal.doors.codex.server import CodexServer
from agent_relay.terminal.doors.door import DoorShut, DoorState, NotTaken, Whereabouts
from tests.unit.terminal.doors.codex_cli import VERSION, CodexCli, message, only, place, play
from tests.unit.terminal.doors.heard import Heard, until


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"POLL_S": 0.01, "GREETING_S": 0.05, "TEND_S": 0.05, "SOON_S": 0.02, "WRITTEN_S": 0.05}.items():
        monkeypatch.setattr(codex_server, name, value)


# --- delivering ----------------------------------------------------------------------------------------------------------


def test_an_idle_agent_reads_it_at_once_and_before_its_first_turn(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        assert await door.deliver(message(1)) == "queued in the conversation"
        await until(lambda: heard.read, "it is read, though nothing could be subscribed to when it was handed over")
        await door.deliver(message(2))
        await until(lambda: len(heard.read) == 2, "the next is read")
        assert only(cli).given == [message(1).text, message(2).text]
        assert heard.of("session") == [only(cli).id]

    heard = play(tmp_path, scene)
    assert heard.of("read") == [("msg-1", "transcript"), ("msg-2", "transcript")]
    assert heard.of("refused") == heard.of("lost") == []


def test_a_burst_while_it_works_is_read_in_order_and_once(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        cli.is_working = True
        await door.deliver(message(0))
        await until(lambda: heard.read == ["msg-0"], "it works")
        for number in range(1, 21):
            await door.deliver(message(number))
        assert await door.look_up(message(20)) is Whereabouts.HELD
        assert heard.read == ["msg-0"]
        cli.is_working = False
        cli.finish(only(cli))
        await until(lambda: len(heard.read) == 21, "all are read")
        assert only(cli).given == [message(number).text for number in range(21)]

    heard = play(tmp_path, scene)
    assert heard.read == [f"msg-{number}" for number in range(21)]


def test_what_it_does_is_told(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        cli.is_working = True
        await door.deliver(message(1))
        await until(lambda: heard.of("state")[-1] == (DoorState.WORKING, ""), "it works")
        cli.set_flags(only(cli), ["waitingOnUserInput"])
        await until(lambda: heard.of("state")[-1] == (DoorState.WAITING, "question"), "it waits")
        cli.finish(only(cli))
        await until(lambda: heard.of("state")[-1] == (DoorState.IDLE, ""), "it is idle")

    play(tmp_path, scene)


def test_a_message_is_refused_with_the_reason(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        cli.refuses["thread/queue/add"] = "the queue is full"
        with pytest.raises(NotTaken, match="the queue is full"):
            await door.deliver(message(1))
        cli.refuses.clear()
        await door.deliver(message(1))
        await until(lambda: heard.read == ["msg-1"], "it is read")

    play(tmp_path, scene)


def test_after_a_turn_that_a_person_broke_off_the_queue_is_set_going(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex_server, "STALLED_S", 0.1)

    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        cli.is_working = True
        await door.deliver(message(1))
        await until(lambda: heard.read == ["msg-1"], "it works")
        await door.deliver(message(2))
        await door.deliver(message(3))
        cli.is_working = False
        cli.interrupt(only(cli))
        await until(lambda: len(heard.read) == 3, "the rest is read")

    assert play(tmp_path, scene).read == ["msg-1", "msg-2", "msg-3"]


def test_a_message_that_comes_after_it_was_broken_off_is_set_going_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex_server, "STALLED_S", 0.1)

    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        cli.is_working = True
        await door.deliver(message(1))
        await until(lambda: heard.read == ["msg-1"], "it works")
        cli.is_working = False
        cli.interrupt(only(cli))
        await until(lambda: heard.of("state")[-1] == (DoorState.IDLE, ""), "it is idle, and nothing is on its way")
        await asyncio.sleep(0.3)  # longer than anything is waited for
        await door.deliver(message(2))
        await until(lambda: heard.read == ["msg-1", "msg-2"], "it is read")

    play(tmp_path, scene)


# --- conversations -------------------------------------------------------------------------------------------------------


def test_messages_follow_the_person_to_the_next_conversation(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        first = only(cli)
        cli.begin("thread_title")
        cli.is_working = True
        await door.deliver(message(1))
        await until(lambda: heard.read == ["msg-1"], "it is read")
        await door.deliver(message(2))
        second = cli.begin()
        await until(lambda: heard.of("session")[-1] == second.id, "the next conversation is known")
        await until(lambda: "msg-2" in heard.read, "what waited in the first is read in the second")
        assert (first.given, second.given) == ([message(1).text], [message(2).text])
        cli.finish(second)
        cli.set_flags(first, None)
        cli.set_flags(first, [])  # the person has gone back, and typed something
        await until(lambda: heard.of("session")[-1] == first.id, "the first is the agent's again")
        await door.deliver(message(3))
        cli.finish(first)
        await until(lambda: "msg-3" in heard.read, "the next is read in the first")

    heard = play(tmp_path, scene)
    assert len(heard.of("session")) == 3


def test_a_conversation_is_waited_for(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        cli.begin("thread_title")
        opening = asyncio.create_task(door.open())
        await until(lambda: cli.calls.count("thread/loaded/list") > 2, "it is looked for")
        assert not opening.done()
        thread = cli.begin()
        assert (await opening).version == VERSION
        assert heard.of("session") == [thread.id]

    play(tmp_path, scene, begins=False)


# --- looking up ----------------------------------------------------------------------------------------------------------


def test_what_a_wrapper_that_died_handed_over_is_found(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        cli.is_working = True
        await door.deliver(message(1))
        await until(lambda: heard.read, "it is read")
        await door.deliver(message(2))
        later_heard = Heard()
        later = CodexServer(str(cli.socket), place(tmp_path), later_heard)
        await later.open()
        found = [await later.look_up(message(number)) for number in (1, 2, 3)]
        assert found == [Whereabouts.READ, Whereabouts.HELD, Whereabouts.NOWHERE]
        cli.finish(only(cli))
        await until(lambda: later_heard.read == ["msg-2"], "the reading is told to who looked it up")
        await later.close()

    play(tmp_path, scene)


def test_what_is_still_queued_is_taken_back_at_the_end(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        cli.is_working = True
        await door.deliver(message(1))
        await until(lambda: heard.read, "it is read")
        await door.deliver(message(2))
        await door.close()
        assert only(cli).queue == []
        assert await door.look_up(message(1)) is Whereabouts.READ
        with pytest.raises(DoorShut):
            await door.deliver(message(3))

    play(tmp_path, scene)


# --- trouble -------------------------------------------------------------------------------------------------------------


def test_a_server_that_is_started_anew_is_found_again(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        cli.is_working = True
        await door.deliver(message(1))
        await until(lambda: heard.read, "it is read")
        await door.deliver(message(2))
        threads, cli.threads = cli.threads, {}
        await cli.crash()
        await until(lambda: door._rpc is not None and door._rpc.lost.is_set(), "the end is noticed")
        with pytest.raises(NotTaken):
            await door.deliver(message(3))
        await cli.start()
        await until(lambda: cli.calls.count("initialize") == 2, "it is greeted again")
        assert "thread/resume" not in cli.calls[cli.calls.index("initialize", 1) :], "opened by us it has other permissions"
        cli.threads = threads
        await until(lambda: cli.calls[-1] == "thread/resume", "the terminal has opened the conversation, and it is followed")
        await door.deliver(message(3))
        cli.is_working = False
        cli.finish(only(cli))
        await until(lambda: len(heard.read) == 3, "all are read")

    heard = play(tmp_path, scene)
    assert heard.read == ["msg-1", "msg-2", "msg-3"]
    assert heard.of("lost") == []


def test_a_message_whose_answer_was_lost_is_not_handed_over_twice(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        cli.is_working = True
        await door.deliver(message(1))
        await until(lambda: heard.read, "it is read")
        cli.loses.add("thread/queue/add")
        assert await door.deliver(message(2)) == "held"
        cli.is_working = False
        cli.finish(only(cli))
        await until(lambda: len(heard.read) == 2, "it is read")
        assert only(cli).given == [message(1).text, message(2).text]

    play(tmp_path, scene)


def test_a_server_that_does_not_come_back_is_lost_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex_server, "RELINK_S", 0.2)

    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        await cli.crash()
        await until(lambda: heard.of("lost"), "it is lost")
        with pytest.raises(DoorShut):
            await door.deliver(message(1))
        assert await door.look_up(message(1)) is Whereabouts.UNKNOWN

    [reason] = play(tmp_path, scene).of("lost")
    assert "did not come back" in reason


def test_a_silent_server_is_let_go_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex_server, "RELINK_S", 0.3)
    monkeypatch.setattr(codex_app_server, "CALL_S", 0.2)

    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        cli.ignores |= {"thread/queue/add", "initialize"}
        with pytest.raises(DoorShut):
            await door.deliver(message(1))

    assert play(tmp_path, scene).of("lost") == [], "who was handing something over knows it"


def test_garbage_is_passed_over(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        await door.deliver(message(1))
        await until(lambda: heard.read, "it is read")
        garbage = [
            "", "null", "[]", "{", "7", b"\xff\x00", "[" * 100_000, '{"id":[],"result":1}', '{"id":999,"error":7}',
            '{"method":7,"params":{}}', '{"method":"thread/started","params":{"thread":{"id":{}}}}',
            '{"method":"turn/completed","params":[]}',
        ]  # fmt: skip
        ours = {"threadId": only(cli).id}
        garbage += [
            json.dumps({"method": "item/completed", "params": {**ours, "item": []}}),
            json.dumps({"method": "thread/status/changed", "params": {**ours, "status": {"type": "active", "activeFlags": 7}}}),
            json.dumps({"method": "item/tool/requestUserInput", "id": 5, "params": {**ours, "questions": "x"}}),
        ]
        for text in garbage:
            cli.say(text)
        await door.deliver(message(2))
        await until(lambda: len(heard.read) == 2, "the next is read")

    heard = play(tmp_path, scene)
    assert heard.of("lost") == heard.of("asked") == []


@pytest.mark.parametrize("method", ["initialize", "thread/loaded/list", "thread/queue/list"])
def test_a_version_that_knows_something_else_is_not_used(tmp_path: Path, method: str) -> None:
    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        cli.begin()
        cli.refuses[method] = "Invalid request: unknown variant"
        with pytest.raises(DoorShut, match="unknown variant"):
            await door.open()

    play(tmp_path, scene, begins=False)


@pytest.mark.parametrize("answer", [{}, {"data": {"items": []}}, {"items": []}])
def test_a_version_that_lists_its_queue_in_another_shape_is_not_used(tmp_path: Path, answer: dict[str, Any]) -> None:
    async def scene(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        cli.begin()
        cli.answers_otherwise["thread/queue/list"] = answer
        with pytest.raises(DoorShut, match="lists its queue in an unknown format") as error:
            await door.open()
        assert error.value.mend.startswith("Update Codex")

    play(tmp_path, scene, begins=False)


def test_without_a_server_it_does_not_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex_server, "START_S", 0.1)

    async def run() -> None:
        door = CodexServer(str(tmp_path / "codex.sock"), place(tmp_path), Heard())
        with pytest.raises(DoorShut, match="no app-server"):
            await door.open()
        (tmp_path / "codex.sock").write_text("no socket")
        with pytest.raises(DoorShut, match="not a socket that you own"):
            await door.open()
        await door.close()

    asyncio.run(run())


def test_the_terminal_greets_the_server_first(tmp_path: Path) -> None:
    async def run() -> None:
        cli = CodexCli(tmp_path)
        await cli.start(has_terminal=False)
        cli.begin()
        door = CodexServer(str(cli.socket), place(tmp_path), Heard())
        opening = asyncio.create_task(door.open())
        await asyncio.sleep(codex_server.GREETING_S * 4)
        assert cli.calls == []
        await cli.connect_terminal()
        await opening
        await door.close()
        await cli.close()

    asyncio.run(run())
