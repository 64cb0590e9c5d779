"""What an agent asked for, carried out against a real daemon: in order, once, and never in silence."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.headers import parse_headers
from agent_relay.protocol.payloads import BusyPayload
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.messages import Message
from agent_relay.sdk.requests import Question
from agent_relay.terminal.agent.command_runner import CommandRunner, OpenQuestions, describe_busy, explain
from agent_relay.terminal.agent.launch import Home
from agent_relay.terminal.files.run_file import begin_run
from agent_relay.terminal.output.commands import (
    Command,
    FileCommand,
    JoinCommand,
    LeaveCommand,
    ReleaseCommand,
    ResultCommand,
    SendCommand,
    SpawnCommand,
)
from agent_relay.terminal.output.watcher import SCREEN, TRANSCRIPT, CommandSeen
from agent_relay.terminal.reports.relay_link import RelayLink
from agent_relay.terminal.reports.reporter import Reporter
from agent_relay.terminal.requests.open_requests import Confirmations
from agent_relay.testing.daemon import DaemonProcess


class Stage:
    """Alice speaks through a CommandRunner, Bob hears her as a client."""

    def __init__(self, folder: Path, daemon: DaemonProcess, alice: RelayClient, bob: RelayClient) -> None:
        self.daemon, self.alice, self.bob = daemon, alice, bob
        self.home = Home(str(folder), "Alice")
        self.home.make()
        self.run_file = begin_run(self.home.team)
        self.told: list[str] = []
        self.answered: list[str] = []
        self.asked: list[Question] = []
        self.runner = self.another()
        self._places = 0

    def signed(self, text: str) -> str:
        """With the token of this run among its headers."""
        return f"SESSION: {self.run_file.token}\n{text}"

    def another(self) -> CommandRunner:
        confirmations = self.confirmations = Confirmations(Reporter(RelayLink(self.alice, lambda: self.alice)))
        self.questions = OpenQuestions()
        return CommandRunner(
            self.home, RelayLink(self.alice, lambda: self.alice), self.run_file, self.told.append, self.questions,
            self.answered.append, confirmations,
        )  # fmt: skip

    def say(self, command: Command, source: str = SCREEN, place: str = "") -> None:
        self._places += 1
        self.runner.say(CommandSeen(0.0, command, source, place or f"line:{self._places}"))

    async def hear(self) -> Message:
        message = await self.bob.receive()
        await message.ack()
        return message

    async def is_asked(self) -> Message:
        """A question of Bob's that Alice was given."""
        self.asked.append(await self.bob.ask("Alice", "well?"))
        message = await self.alice.receive()
        await message.ack()
        self.questions.add(message)
        return message

    async def hears_nothing_more(self) -> None:
        """Whatever else was to come would be here before this."""
        self.say(SendCommand(("Bob",), "END"))
        assert (await self.hear()).body == "END"


def play(folder: Path, scene: Callable[[Stage], Awaitable[None]]) -> None:
    async def run(daemon: DaemonProcess) -> None:
        async with asyncio.timeout(40), daemon.connect("Alice") as alice, daemon.connect("Bob") as bob:
            stage = Stage(folder, daemon, alice, bob)
            running = asyncio.create_task(stage.runner.run())
            try:
                await scene(stage)
            finally:
                running.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await running

    with DaemonProcess() as daemon:
        asyncio.run(run(daemon))


async def passes(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_messages_go_out_in_order_with_all_that_was_said(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        for number in range(50):
            stage.say(SendCommand(("Bob",), f"{number}"))
        stage.say(SendCommand(("bob",), "hm", "thinking", "t", {"a": 1}))
        assert [(await stage.hear()).body for _ in range(50)] == [str(number) for number in range(50)]
        last = await stage.hear()
        assert (last.body, last.kind, last.thread, last.data) == ("hm", "thinking", "t", {"a": 1})
        assert stage.told == []

    play(tmp_path, scene)


def test_who_is_not_there_is_said_so_with_who_may_be_meant(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        stage.say(SendCommand(("Bbo",), "hi"))
        await passes(lambda: len(stage.told) == 1)
        assert "Your message to Bbo was not sent." in stage.told[0]
        assert "Did you mean Bob?" in stage.told[0]
        await stage.hears_nothing_more()

    play(tmp_path, scene)


def test_what_is_not_possible_is_said_so(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        for command in (SpawnCommand("Eve", "no-such-cli", "x"), ReleaseCommand("Bob", "x"), FileCommand("none")):
            stage.say(command, TRANSCRIPT)
        await passes(lambda: len(stage.told) == 3)
        assert [text.split()[0] for text in stage.told] == ["Eve", "Bob", "There"]
        assert "Eve was not started. 'no-such-cli' may not be started here" in stage.told[0]
        assert "Bob was not released. Bob was not started by the daemon" in stage.told[1]
        await stage.hears_nothing_more()

    play(tmp_path, scene)


def test_a_file_that_was_named_is_sent_and_one_that_is_wrong_is_answered(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        outbox = Path(stage.home.outbox)
        (outbox / "note").write_text(stage.signed("TO: Bob\nTHREAD: t\nPRIORITY: 1\n\nlong text\n"))
        (outbox / "bad").write_text(stage.signed("TO: Nobody\n\nx\n"))
        (outbox / "spawn").write_text(stage.signed("KIND: spawn\nNAME: Eve\nCLI: no-such-cli\n\nx\n"))
        for name in ("note", "bad", "spawn"):
            stage.say(FileCommand(name))
        message = await stage.hear()
        assert (message.body, message.thread, message.meta.priority) == ("long text", "t", 1)
        await stage.hears_nothing_more()
        codes = {name: parse_headers((outbox / f"{name}.error").read_text()).code for name in ("bad", "spawn")}
        assert codes == {"bad": "AGENT_NOT_FOUND", "spawn": "INVALID_TARGET"}

    play(tmp_path, scene)


def test_an_answer_is_tied_to_the_question_that_came_first(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        first, second = [await stage.is_asked() for _ in range(2)]
        stage.questions.add(first)  # given again after a reconnection
        stage.say(SendCommand(("Bob", "Bob"), "to a list"))
        stage.say(SendCommand(("Bob",), "hm", "thinking"))
        for body in ("one", "two", "three"):
            stage.say(SendCommand(("bob",), body))
        assert [(await stage.bob.answer_to(question)).body for question in stage.asked] == ["one", "two"]
        heard = {message.body: message.meta.reply_to for message in [await stage.hear() for _ in range(3)]}
        assert heard == {"to a list": None, "hm": None, "three": None}
        assert stage.answered == [first.id, second.id]

    play(tmp_path, scene)


def test_headers_say_which_question_a_file_answers(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        outbox = Path(stage.home.outbox)
        first, second, third = [await stage.is_asked() for _ in range(3)]
        files = {
            "a": f"TO: Bob\nKIND: ack\nCORRELATION: {third.correlation_id}\n\nthird\n",
            "b": f"TO: Bob\nCORRELATION: {second.correlation_id}\n\nsecond\n",
            "c": f"TO: Bob\nKIND: ack\nREPLY-TO: {first.id}\n\nfirst\n",
            "again": f"TO: Bob\nCORRELATION: {second.correlation_id}\n\nsecond\n",
            "which": "TO: Bob\nKIND: ack\n\nyes\n",
        }
        for name, text in files.items():
            (outbox / name).write_text(stage.signed(text))
            stage.say(FileCommand(name))
        answers = [await stage.bob.answer_to(question) for question in stage.asked]
        assert [(answer.by, answer.body) for answer in answers] == [("Alice", "first"), ("Alice", "second"), ("Alice", "third")]
        assert stage.answered == [third.id, second.id, first.id]
        await stage.hears_nothing_more()
        errors = {name: parse_headers((outbox / f"{name}.error").read_text()) for name in ("again", "which")}
        assert {name: error.code for name, error in errors.items()} == {"again": "INVALID_HEADER", "which": "MISSING_HEADER"}
        assert "REPLY-TO" in errors["again"].body

    play(tmp_path, scene)


def test_channels_are_joined_left_and_written_to_and_topics_too(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        stage.say(JoinCommand("#dev"))
        await stage.bob.join("#dev")
        await passes(lambda: stage.told == ["You joined #dev: messages to it now come to you too."])
        stage.say(SendCommand(("#dev",), "hello"))
        message = await stage.hear()
        assert (message.to, message.body) == ("#dev", "hello")
        stage.say(LeaveCommand("#dev"))
        await passes(lambda: stage.told[-1] == "You left #dev.")
        assert [channel.members for channel in await stage.bob.channels() if channel.name == "#dev"] == [("Bob",)]
        stage.say(LeaveCommand("#dve"))
        await passes(lambda: "Did you mean #dev?" in stage.told[-1])
        async with stage.bob.subscribe("code.>") as feed:
            stage.say(SendCommand((), "ready", topic="code.review"))
            async with await feed.receive() as message:
                assert (message.topic, message.body) == ("code.review", "ready")
        outbox = Path(stage.home.outbox)
        (outbox / "join").write_text(stage.signed("KIND: join\nTO: #ops\n\n"))
        stage.say(FileCommand("join"))
        await stage.hears_nothing_more()
        assert "#ops" in [channel.name for channel in await stage.bob.channels()]

    play(tmp_path, scene)


def test_a_warning_says_who_is_busy_and_what_to_do() -> None:
    text = describe_busy(BusyPayload("Bob", 812, 1000, 500, 40_000, accepting=True))
    assert "Bob is busy: 812 of at most 1000 messages wait for it." in text
    assert "Yours are refused" in describe_busy(BusyPayload("Bob", 1000, 1000, 500, 40_000, accepting=False))


def test_a_question_in_a_file_is_told_its_answer_or_that_there_is_none(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        outbox = Path(stage.home.outbox)
        (outbox / "send-1").write_text(stage.signed("TO: Bob\nAWAIT: 30s\n\nwhy?\n"))
        (outbox / "send-2").write_text(stage.signed("TO: Bob\nAWAIT: 100ms\n\nreally?\n"))
        stage.say(FileCommand("send-1"))
        question = await stage.bob.receive()
        assert question.correlation_id is not None
        await question.reply("because")
        await question.ack()
        await passes(lambda: len(stage.told) == 1)
        assert stage.told[0].startswith("Bob answered your question [")
        assert stage.told[0].endswith("]: because")
        assert '"await_ms":30000' in (outbox / "send-1.sent").read_text()
        stage.say(FileCommand("send-2"))
        await passes(lambda: len(stage.told) == 2)
        assert "Bob did not answer your question" in stage.told[1]

    play(tmp_path, scene)


def test_a_place_of_the_session_file_is_said_once_whoever_reads_it(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        stage.say(SendCommand(("Bob",), "hi"), TRANSCRIPT, "record:7")
        assert (await stage.hear()).body == "hi"
        await passes(lambda: stage.run_file.was_said("record:7"))
        stage.say(SendCommand(("Bob",), "hi"), TRANSCRIPT, "record:7")  # read again
        # One that was killed after the sending and before it noted it: the same id, and the daemon knows it.
        stage.say(SendCommand(("Bob",), "again"), TRANSCRIPT, "record:8")
        assert (await stage.hear()).body == "again"
        other = stage.another()
        await other._carry_out(CommandSeen(0.0, SendCommand(("Bob",), "again"), TRANSCRIPT, "record:8"))
        await stage.hears_nothing_more()

    play(tmp_path, scene)


def test_the_same_line_of_the_screen_is_another_message_for_another_wrapper(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        seen = CommandSeen(0.0, SendCommand(("Bob",), "yes"), SCREEN, "line:3")
        for runner in (stage.runner, stage.another()):
            await runner._carry_out(seen)
        assert [(await stage.hear()).body for _ in range(2)] == ["yes", "yes"]

    play(tmp_path, scene)


def test_a_daemon_that_is_away_is_waited_for_and_nothing_is_doubled(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        stage.daemon.kill()
        for number in range(5):
            stage.say(SendCommand(("Bob",), f"{number}"))
        await asyncio.to_thread(stage.daemon.start)
        assert [(await stage.hear()).body for _ in range(5)] == [str(number) for number in range(5)]
        await stage.runner.drain(10)
        await stage.hears_nothing_more()
        assert stage.told == []

    play(tmp_path, scene)


def test_draining_ends_when_all_is_said_or_the_time_is_over(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        (Path(stage.home.outbox) / "note").write_text(stage.signed("TO: Bob\n\nfile\n"))
        stage.say(SendCommand(("Bob",), "said"))
        await stage.runner.drain(20)
        assert [(await stage.hear()).body for _ in range(2)] == ["said", "file"]
        stage.daemon.kill()
        stage.say(SendCommand(("Bob",), "lost"))
        await stage.runner.drain(0.1)

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("details", "end"),
    [({}, "No."), ({"did_you_mean": ["Bob", "Bo"]}, "No. Did you mean Bob or Bo?"), ({"did_you_mean": "Bob"}, "No.")],
)
def test_a_refusal_is_a_sentence(details: dict[str, Any], end: str) -> None:
    assert explain(RelayError(ErrorCode.AGENT_NOT_FOUND, "No.", **details)) == end


def test_a_file_that_shows_the_secret_of_another_run_is_not_sent(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        sessions = {"old": "run_" + "x" * 43, "other": "ses_1", "none": "", "own": stage.run_file.token}
        for name, session in sessions.items():
            Path(stage.home.outbox, name).write_text(f"TO: Bob\nSESSION: {session}\n\n{name}\n".replace("SESSION: \n", ""))
            await stage.runner.outbox.take(name)
        assert (await stage.hear()).body == "own"
        for name in ("old", "other", "none"):
            answer = parse_headers(Path(stage.home.outbox, f"{name}.error").read_text("utf-8"))
            assert (answer.code, "AGENT_RELAY_TOKEN" in answer.body) == ("PERMISSION_DENIED", True)

    play(tmp_path, scene)


def test_the_result_of_a_task_is_the_answer_to_its_question(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        asked = await stage.bob.ask("Alice", "Count them.", 40, thread="task-1", kind="task")
        stage.questions.add(await stage.alice.receive())
        stage.say(ResultCommand("task-1", "three"))
        reply = await stage.bob.answer_to(asked, 40)
        assert (reply.body, reply.data, reply.by) == ("three", {"task": "task-1"}, "Alice")
        assert stage.answered == [asked.message_id]
        assert stage.questions.of("Bob") is None
        stage.say(ResultCommand("task-1", "three"))  # the same once more: nothing happens
        stage.say(ResultCommand("task-1", "four"))
        stage.say(ResultCommand("task-2", "four"))
        await passes(lambda: len(stage.told) == 2)
        assert "already has a result" in stage.told[0]
        assert "was given no task 'task-2'" in stage.told[1]
        await stage.hears_nothing_more()

    play(tmp_path, scene)


def test_a_file_gives_a_result_or_says_why_there_is_none(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        outbox = Path(stage.home.outbox)
        asked = await stage.bob.ask("Alice", "Count them.", 40, thread="task-1", kind="task")
        (outbox / "one").write_text(stage.signed("KIND: result\nTHREAD: task-1\nTYPE: error\n\nThere is no list.\n"))
        await stage.runner.outbox.sweep()
        reply = await stage.bob.answer_to(asked, 40)
        assert (reply.body, reply.data) == ("There is no list.", {"task": "task-1", "error": "There is no list."})
        (outbox / "two").write_text(stage.signed("KIND: result\nTHREAD: task-9\n\nx\n"))
        await stage.runner.outbox.sweep()
        assert "was given no task 'task-9'" in (outbox / "two.error").read_text()

    play(tmp_path, scene)
