"""What opencode asks, answered from outside or by the person: who was first, and what is told of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_relay.terminal.doors.door import Decision, DoorError, NotOpen, Resolution
from agent_relay.terminal.doors.opencode.server import OpencodeServer
from tests.unit.terminal.doors.heard import Heard, until
from tests.unit.terminal.doors.opencode_cli import OpencodeCli, play


async def asked(cli: OpencodeCli, heard: Heard, command: str = "rm -rf build") -> str:
    count = len(heard.of("asked"))
    session = next(iter(cli.sessions), "") or cli.new_session()
    id_ = cli.ask_permission(session, command)
    await until(lambda: len(heard.of("asked")) == count + 1, "it is told")
    return id_


def test_a_permission_is_told_with_its_subject(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        await asked(cli, heard)

    heard = play(tmp_path, scene)
    [request] = heard.of("asked")
    assert (request.kind, request.tool, request.subject) == ("permission", "bash", "rm -rf build")
    assert request.options == ("allow", "deny")
    assert request.can_allow


@pytest.mark.parametrize(
    ("decision", "reply", "resolution"),
    [
        (Decision(True, by="Ann"), {"reply": "once"}, Resolution.ALLOWED),
        (Decision(False, "no", by="Ann"), {"reply": "reject", "message": "Denied by Ann: no"}, Resolution.DENIED),
        (Decision(False), {"reply": "reject", "message": "Denied by the relay."}, Resolution.DENIED),
    ],
)
def test_a_permission_is_answered(tmp_path: Path, decision: Decision, reply: dict[str, str], resolution: Resolution) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        id_ = await asked(cli, heard)
        await door.answer(id_, decision)
        await until(lambda: heard.of("resolved"), "it is resolved")
        assert cli.replies == [(id_, reply)]
        assert heard.of("resolved") == [(id_, resolution, "door")]
        with pytest.raises(NotOpen):
            await door.answer(id_, decision)
        await asyncio.sleep(0)

    heard = play(tmp_path, scene)
    assert len(heard.of("resolved")) == 1


@pytest.mark.parametrize(("reply", "resolution"), [("once", Resolution.ALLOWED), ("reject", Resolution.DENIED)])
def test_a_person_who_is_first_is_told_as_such(tmp_path: Path, reply: str, resolution: Resolution) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        id_ = await asked(cli, heard)
        cli.reply(id_, reply)
        with pytest.raises(NotOpen):  # whether or not it was heard already
            await door.answer(id_, Decision(True))
        await until(lambda: heard.of("resolved"), "it is resolved")
        assert heard.of("resolved") == [(id_, resolution, "person")]

    play(tmp_path, scene)


def test_a_person_who_is_a_moment_faster_than_our_answer_is_not_taken_for_us(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        id_ = await asked(cli, heard)
        answering = asyncio.create_task(door.answer(id_, Decision(True)))
        await asyncio.sleep(0)  # the answer is on its way
        cli.reply(id_, "always")
        with pytest.raises(NotOpen):
            await answering
        await until(lambda: heard.of("resolved"), "it is resolved")
        assert heard.of("resolved") == [(id_, Resolution.ALLOWED, "person")]

    play(tmp_path, scene)


def test_a_refusal_takes_the_others_of_the_session_with_it(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        first, second = await asked(cli, heard), await asked(cli, heard, "ls")
        await door.answer(first, Decision(False))
        await until(lambda: len(heard.of("resolved")) == 2, "both are resolved")
        assert sorted(heard.of("resolved")) == sorted([(id_, Resolution.DENIED, "door") for id_ in (first, second)])

    play(tmp_path, scene)


def test_a_question_of_several_is_answered_when_all_are(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        id_ = cli.ask_question(cli.new_session(), "Which database?", "Really?")
        await until(lambda: len(heard.of("asked")) == 2, "both are told")
        first, second = heard.of("asked")
        assert (first.kind, first.question, first.options) == ("question", "Which database?", ("Yes", "No"))
        with pytest.raises(DoorError, match="one of its options"):
            await door.answer(first.id, Decision(True))
        await door.answer(second.id, Decision(True, answer="No"))
        assert cli.replies == []
        await door.answer(first.id, Decision(True, answer="my own words"))
        assert cli.replies == [(id_, {"answers": [["my own words"], ["No"]]})]
        assert heard.of("resolved") == [(one.id, Resolution.ANSWERED, "door") for one in (first, second)]

    play(tmp_path, scene)


def test_a_question_is_refused_or_answered_by_the_person(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        session = cli.new_session()
        ours, theirs = cli.ask_question(session, "One?"), cli.ask_question(session, "Two?")
        await until(lambda: len(heard.of("asked")) == 2, "both are told")
        await door.answer(ours, Decision(False))
        cli.answer_question(theirs, [["Yes"]])
        await until(lambda: len(heard.of("resolved")) == 2, "both are resolved")
        assert heard.of("resolved") == [(ours, Resolution.DENIED, "door"), (theirs, Resolution.ANSWERED, "person")]

    play(tmp_path, scene)


def test_a_turn_that_was_stopped_asks_nothing_any_more(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        id_ = await asked(cli, heard)
        cli.status(next(iter(cli.sessions)), "idle")
        await until(lambda: heard.of("resolved"), "it is resolved")
        assert heard.of("resolved") == [(id_, Resolution.GONE, "")]
        with pytest.raises(NotOpen):
            await door.answer(id_, Decision(True))
        assert cli.replies == []

    play(tmp_path, scene)


def test_what_was_asked_before_the_door_was_opened_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        cli, heard = OpencodeCli(tmp_path), Heard()
        await cli.start()
        cli.show()
        id_ = cli.ask_permission(cli.new_session(), "ls")
        door = cli.door(heard)
        await door.open()
        assert [request.id for request in heard.of("asked")] == [id_]
        await door.answer(id_, Decision(True))
        await door.close()
        await cli.stop()

    asyncio.run(run())


def test_an_answer_that_is_not_taken_leaves_the_request_open(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        id_ = await asked(cli, heard)
        cli.answers[f"/permission/{id_}/reply"] = (500, b"")
        with pytest.raises(DoorError, match="500"):
            await door.answer(id_, Decision(True))
        assert heard.of("resolved") == []
        del cli.answers[f"/permission/{id_}/reply"]
        await door.answer(id_, Decision(True))
        assert heard.of("resolved") == [(id_, Resolution.ALLOWED, "door")]

    play(tmp_path, scene)
