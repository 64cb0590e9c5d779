"""What Claude Code asks: answered from outside through a real hook, or by the person at the terminal, whoever is first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_relay.terminal.doors.claude import requests as claude_requests
from agent_relay.terminal.doors.door import Decision, Door, DoorError, NotOpen, Resolution
from tests.unit.terminal.doors.claude_cli import Looks, Stage, play

COMMAND = {"command": "rm -rf build", "description": "Remove the build directory"}
QUESTIONS = {
    "questions": [
        {"question": "Which database?", "multiSelect": False, "options": [{"label": "SQLite"}, {"label": "Postgres"}]},
        {"question": "Which colours?", "multiSelect": True, "options": [{"label": "Red"}, {"label": "Blue"}]},
    ]
}


class Asking:
    """A tool of the agent's that has to be asked about: its call, its dialog, its hook."""

    def __init__(self, stage: Stage, tool: str, given: dict[str, Any], waiting_for: str = "permission prompt") -> None:
        self.stage = stage
        self.call_id = stage.cli.call(tool, given)
        stage.cli.be("waiting", waitingFor=waiting_for)
        self.hook = stage.begin_hook("PermissionRequest", tool_name=tool, tool_input=given)

    async def asked(self, count: int = 1) -> list[Any]:
        return [entry[0] for entry in await self.stage.heard.until("asked", count)]

    async def output(self) -> Any:
        text = await self.hook
        return json.loads(text)["hookSpecificOutput"]["decision"] if text else None

    def decide_by_hook(self, decision: str) -> None:
        made = {"type": "hook_permission_decision", "decision": decision, "toolUseID": self.call_id}
        self.stage.cli.write({"type": "attachment", "attachment": {**made, "hookEvent": "PermissionRequest"}})


async def open_inbox(stage: Stage) -> Door:
    inbox, _ = stage.doors()
    await stage.start()
    await inbox.open()
    return inbox


def test_a_permission_is_given_from_outside() -> None:
    async def scene(stage: Stage) -> None:
        inbox = await open_inbox(stage)
        asking = Asking(stage, "Bash", COMMAND)
        (request,) = await asking.asked()
        assert (request.kind, request.tool, request.subject) == ("permission", "Bash", "rm -rf build")
        assert request.can_allow
        await inbox.answer(request.id, Decision(True, by="Ann"))
        assert await asking.output() == {"behavior": "allow"}
        with pytest.raises(NotOpen):
            await inbox.answer(request.id, Decision(False))
        asking.decide_by_hook("allow")
        assert await stage.heard.until("resolved") == [(request.id, Resolution.ALLOWED, "door")]
        asking.stage.cli.end_call(asking.call_id, source="hook")
        stage.cli.be("idle")
        await stage.heard.until("state", 3)

    assert len(play(scene).heard.of("resolved")) == 1


@pytest.mark.parametrize(
    ("command", "is_exact"),
    [
        ("git status", True),
        ("git status" + " " * 2_000 + "; rm -rf ~", False),  # what is shown of it is harmless
        ("git status\x1b[2K", False),
    ],
    ids=["whole", "cut", "cleaned"],
)
def test_a_command_that_is_not_shown_whole_is_not_taken_for_exact(command: str, is_exact: bool) -> None:
    """No rule may approve what it has seen only a part of."""

    async def scene(stage: Stage) -> None:
        await open_inbox(stage)
        (request,) = await Asking(stage, "Bash", {"command": command}).asked()
        assert request.is_exact == is_exact

    play(scene)


def test_a_permission_is_refused_from_outside_with_the_reason() -> None:
    async def scene(stage: Stage) -> None:
        inbox = await open_inbox(stage)
        asking = Asking(stage, "Bash", COMMAND)
        (request,) = await asking.asked()
        await inbox.answer(request.id, Decision(False, reason="too risky", by="Ann"))
        assert await asking.output() == {"behavior": "deny", "message": "Denied by Ann: too risky"}
        stage.cli.end_call(asking.call_id, source="hook", denial="permission-rule")
        assert await stage.heard.until("resolved") == [(request.id, Resolution.DENIED, "door")]

    play(scene)


@pytest.mark.parametrize(("denial", "resolution"), [("", Resolution.ALLOWED), ("user-rejected", Resolution.DENIED)])
def test_the_person_at_the_terminal_is_first(denial: str, resolution: Resolution) -> None:
    async def scene(stage: Stage) -> None:
        inbox = await open_inbox(stage)
        asking = Asking(stage, "Bash", COMMAND)
        (request,) = await asking.asked()
        stage.cli.end_call(asking.call_id, source="" if denial else "user_temporary", denial=denial)
        with pytest.raises(NotOpen):  # though nobody has told us yet
            await inbox.answer(request.id, Decision(True))
        assert await asking.output() is None
        assert stage.heard.of("resolved") == [(request.id, resolution, "person")]

    play(scene)


def test_the_person_is_believed_where_both_have_answered() -> None:
    async def scene(stage: Stage) -> None:
        inbox = await open_inbox(stage)
        asking = Asking(stage, "Bash", COMMAND)
        (request,) = await asking.asked()
        await inbox.answer(request.id, Decision(True))
        stage.cli.end_call(asking.call_id, source="", denial="user-rejected")
        assert await stage.heard.until("resolved") == [(request.id, Resolution.DENIED, "person")]

    play(scene)


@pytest.mark.parametrize(
    ("status", "resolution", "by"), [("busy", Resolution.ALLOWED, "person"), ("idle", Resolution.GONE, "")]
)  # fmt: skip
def test_a_dialog_that_closed_is_over_though_the_session_file_is_silent(
    status: str, resolution: Resolution, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claude_requests, "GRACE_S", 0.3)
    looks = Looks(monkeypatch, "read_session")

    async def scene(stage: Stage) -> None:
        await open_inbox(stage)
        asking = Asking(stage, "Bash", COMMAND)
        (request,) = await asking.asked()
        await looks.pass_by()  # the dialog is seen while its request is known
        stage.cli.be(status)
        assert await stage.heard.until("resolved") == [(request.id, resolution, by)]
        assert await asking.output() is None

    play(scene)


def test_a_dialog_that_was_never_seen_is_over_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_requests, "UNSEEN_S", 0.3)

    async def scene(stage: Stage) -> None:
        await open_inbox(stage)
        hook = stage.begin_hook("PermissionRequest", tool_name="Bash", tool_input=COMMAND)
        ((request_id, resolution, _),) = await stage.heard.until("resolved")
        assert (request_id, resolution) == (stage.heard.of("asked")[0][0].id, Resolution.GONE)
        assert await hook == ""

    play(scene)


def test_two_at_once_are_told_apart_by_what_they_ask_for() -> None:
    async def scene(stage: Stage) -> None:
        await open_inbox(stage)
        first = Asking(stage, "Bash", COMMAND)
        await first.asked()
        second = Asking(stage, "Bash", {"command": "make"})
        requests = {request.subject: request.id for request in await second.asked(2)}
        stage.cli.end_call(second.call_id, source="", denial="user-rejected")
        assert await stage.heard.until("resolved") == [(requests["make"], Resolution.DENIED, "person")]
        stage.cli.end_call(first.call_id)
        assert (await stage.heard.until("resolved", 2))[1] == (requests["rm -rf build"], Resolution.ALLOWED, "person")

    play(scene)


def test_questions_are_answered_one_by_one_and_handed_in_together() -> None:
    async def scene(stage: Stage) -> None:
        inbox = await open_inbox(stage)
        asking = Asking(stage, "AskUserQuestion", QUESTIONS, "input needed")
        first, second = await asking.asked(2)
        assert (first.kind, first.question, first.options) == ("question", "Which database?", ("SQLite", "Postgres"))
        with pytest.raises(DoorError, match="one of its options, or with text"):
            await inbox.answer(first.id, Decision(True))
        await inbox.answer(first.id, Decision(True, answer="SQLite"))
        assert not asking.hook.done()
        await inbox.answer(second.id, Decision(True, answer="Red, Blue"))
        answers = {"Which database?": "SQLite", "Which colours?": "Red, Blue"}
        assert await asking.output() == {"behavior": "allow", "updatedInput": {**QUESTIONS, "answers": answers}}
        asking.decide_by_hook("allow")
        expected = [(first.id, Resolution.ANSWERED, "door"), (second.id, Resolution.ANSWERED, "door")]
        assert await stage.heard.until("resolved", 2) == expected

    play(scene)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"tool_name": 7, "tool_input": "x"},
        {"tool_name": "AskUserQuestion", "tool_input": {"questions": [7, {"question": []}]}},
    ],
)
def test_a_question_that_is_not_understood_is_still_one(given: dict[str, Any]) -> None:
    async def scene(stage: Stage) -> None:
        inbox = await open_inbox(stage)
        stage.cli.be("waiting")
        hook = stage.begin_hook("PermissionRequest", **given)
        ((request,),) = await stage.heard.until("asked")
        await inbox.answer(request.id, Decision(False))
        assert json.loads(await hook)["hookSpecificOutput"]["decision"]["behavior"] == "deny"

    play(scene)


def test_closing_leaves_the_dialog_to_the_person() -> None:
    async def scene(stage: Stage) -> None:
        inbox = await open_inbox(stage)
        asking = Asking(stage, "Bash", COMMAND)
        (request,) = await asking.asked()
        await inbox.close()
        assert await asking.output() is None
        with pytest.raises(NotOpen):
            await inbox.answer(request.id, Decision(True))

    play(scene)
