"""opencode's server against its recorded other end: delivering, the proof of reading, hearing the agent, trouble, its end."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agent_relay.terminal.doors.door import Decision, DoorShut, DoorState, NotTaken, Whereabouts
from agent_relay.terminal.doors.opencode import events as opencode_events
from agent_relay.terminal.doors.opencode import loopback_http
from agent_relay.terminal.doors.opencode import server as opencode_server
from agent_relay.terminal.doors.opencode import sessions as opencode_sessions
from agent_relay.terminal.doors.opencode.server import OpencodeServer
from tests.unit.terminal.doors.heard import Heard, until
from tests.unit.terminal.doors.opencode_cli import PASSWORD, OpencodeCli, message, play


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencode_events, "AGAIN_S", 0.02)
    monkeypatch.setattr(opencode_events, "REFUSED_S", 0.2)
    monkeypatch.setattr(opencode_sessions, "SHOWN_S", 0.5)


# --- delivering ----------------------------------------------------------------------------------------------------------


def test_an_idle_agent_reads_it_in_a_session_that_is_begun_and_shown(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        seen = await door.deliver(message(1))
        assert seen == "stored in the session"
        await until(lambda: heard.read, "it is read")
        [session] = cli.sessions
        assert cli.given(session) == [message(1).text]
        assert ("POST /tui/select-session") in cli.paths
        await door.deliver(message(2))
        await until(lambda: len(heard.read) == 2, "the next is read")
        assert list(cli.sessions) == [session]

    heard = play(tmp_path, scene)
    assert heard.of("read") == [("msg-1", "session"), ("msg-2", "session")]
    assert heard.of("refused") == heard.of("lost") == []


def test_a_message_goes_where_the_terminal_is_and_follows_it(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        first, second = cli.new_session(), cli.new_session()
        child = cli.new_session(parent=second)
        cli.show(first)
        await door.deliver(message(1))
        cli.show(child)  # the person looks at what a tool of the agent's does
        await door.deliver(message(2))
        cli.show()  # and begins anew
        await door.deliver(message(3))
        await until(lambda: len(heard.read) == 3, "all are read")
        third = next(iter(set(cli.sessions) - {first, second, child}))
        assert [cli.given(session) for session in (first, second, third)] == [[message(n).text] for n in (1, 2, 3)]
        assert cli.messages[child] == []

    play(tmp_path, scene)


def test_it_goes_on_with_the_agent_and_the_model_of_the_session(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        cli.show(cli.new_session(agent="plan", model={"id": "m", "providerID": "p", "variant": "high"}))
        await door.deliver(message(1))
        [prompt] = cli.prompts
        assert (prompt["agent"], prompt["model"], prompt["variant"]) == ("plan", {"providerID": "p", "modelID": "m"}, "high")

    play(tmp_path, scene)


def test_a_burst_keeps_its_order_and_is_read_once_each(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        cli.is_held = True
        await asyncio.gather(*(door.deliver(message(number)) for number in range(20)))
        assert heard.read == []
        cli.release()
        await until(lambda: len(heard.read) == 20, "all are read")
        [session] = cli.sessions
        assert cli.given(session) == [message(number).text for number in range(20)]

    heard = play(tmp_path, scene)
    assert heard.read == [message(number).id for number in range(20)]


def test_nothing_is_read_before_an_answer_has_begun_whose_request_held_it(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        cli.is_held = True
        cli.show(session := cli.new_session())
        await door.deliver(message(1))
        await until(lambda: len(cli.messages[session]) == 2, "the first request is made")
        await door.deliver(message(2))  # it waits: the request was made without it
        answer = cli.messages[session][1]["info"]
        assert heard.read == []
        cli.put_part(answer, "step-start")
        await until(lambda: heard.read, "the first is read")
        assert heard.read == ["msg-1"]
        assert await door.look_up(message(2)) is Whereabouts.HELD
        cli.release()
        await until(lambda: len(heard.read) == 2, "the second is read by the next answer")

    play(tmp_path, scene)


def test_a_summary_proves_nothing(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        cli.is_held = True
        cli.show(session := cli.new_session())
        await door.deliver(message(1))
        given = cli.messages[session][0]["info"]["id"]
        summary = cli.begin_answer(session, given, summary=True)
        cli.put_text(summary, "->relay:Carol this is what was said before")
        cli.complete(summary)
        cli.ask_permission(session, "ls")
        await until(lambda: heard.of("asked"), "what follows was heard")
        assert heard.read == []
        assert heard.of("heard") == []

    play(tmp_path, scene)


def test_a_message_that_is_not_stored_is_not_taken_and_stays_one(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        cli.fails_to_store = True
        with pytest.raises(NotTaken, match="Agent not found"):
            await door.deliver(message(1))
        cli.fails_to_store = False
        await door.deliver(message(1))
        await until(lambda: heard.read, "it is read")
        await door.deliver(message(2))
        [session] = cli.sessions
        assert cli.given(session) == [message(1).text, message(2).text]
        assert cli.prompts[0]["messageID"] == cli.prompts[1]["messageID"]

    play(tmp_path, scene)


def test_a_try_that_arrived_after_all_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencode_server, "STORED_S", 0.1)

    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        cli.is_held = True
        cli.show(session := cli.new_session())
        cli.answers[f"/session/{session}/prompt_async"] = (204, b"")
        with pytest.raises(NotTaken):
            await door.deliver(message(1))
        made = door._given[message(1).uuid]
        cli._store(session, {"messageID": made.message, "parts": [{"type": "text", "text": message(1).text}]})
        assert await door.deliver(message(1)) == "stored in the session"
        cli.release()
        await until(lambda: heard.read, "it is read")
        assert cli.given(session) == [message(1).text]
        assert cli.paths.count(f"POST /session/{session}/prompt_async") == 1

    play(tmp_path, scene)


@pytest.mark.parametrize("answer", [(500, b"oops"), (400, b"{}"), (404, b"")])
def test_a_refusal_is_told(tmp_path: Path, answer: tuple[int, bytes]) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        cli.show(session := cli.new_session())
        cli.answers[f"/session/{session}/prompt_async"] = answer
        with pytest.raises(NotTaken, match=str(answer[0])):
            await door.deliver(message(1))

    play(tmp_path, scene)


def test_a_terminal_that_does_not_follow_gets_no_second_session(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        cli.follows_selection = False
        await door.deliver(message(1))
        await door.deliver(message(2))
        assert len(cli.sessions) == 1
        assert cli.paths.count("POST /tui/select-session") == 2

    play(tmp_path, scene)


def test_a_session_that_is_being_loaded_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencode_sessions, "SHOWN_S", 10.0)

    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        session = cli.new_session()
        cli.show("dummy")  # what --continue shows at first
        delivering = asyncio.create_task(door.deliver(message(1)))
        await asyncio.sleep(0)
        assert cli.prompts == []
        cli.show(session)
        await delivering
        assert cli.given(session) == [message(1).text]
        assert list(cli.sessions) == [session]

    play(tmp_path, scene)


def test_a_person_who_leaves_the_session_that_was_begun_is_given_another(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        await door.deliver(message(1))
        cli.show()
        await door.deliver(message(2))
        assert [cli.given(session) for session in cli.sessions] == [[message(1).text], [message(2).text]]

    play(tmp_path, scene)


def test_without_a_view_it_goes_where_the_person_wrote_last(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        os.unlink(tmp_path / "opencode-view.json")
        first, second = cli.new_session(), cli.new_session()
        cli.person_types(first, "hello")
        cli.person_types(second, "hello")
        await until(lambda: heard.of("heard") and not cli._busy, "both were answered")
        await until(lambda: len(heard.of("heard")) == 2, "both were heard")
        await door.deliver(message(1))
        assert cli.given(second) == ["hello", message(1).text]

    play(tmp_path, scene, view="")


# --- looking up ----------------------------------------------------------------------------------------------------------


def test_a_later_wrapper_finds_what_was_handed_over(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        await door.deliver(message(1))
        await until(lambda: heard.read, "the first is read")
        cli.is_held = True
        await door.deliver(message(2))
        await door.close()
        later = Heard()
        other = cli.door(later)
        await other.open()
        assert await other.look_up(message(1)) is Whereabouts.READ
        assert await other.look_up(message(2)) is Whereabouts.HELD
        assert await other.look_up(message(3)) is Whereabouts.NOWHERE
        cli.release()
        await until(lambda: later.read, "what was held is told like any other")
        assert later.read == ["msg-2"]
        await other.close()

    heard = play(tmp_path, scene)
    assert heard.read == ["msg-1"]


def test_another_agents_copy_of_a_message_is_not_ours(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        await door.deliver(message(1))
        await until(lambda: heard.read, "it is read")
        other = cli.door(Heard(), secret="another run")
        assert await other.look_up(message(1)) is Whereabouts.NOWHERE

    play(tmp_path, scene)


def test_an_old_message_is_found_in_a_long_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencode_server, "LATEST", 4)

    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        for number in range(5):
            await door.deliver(message(number))
        await until(lambda: len(heard.read) == 5, "all are read")
        assert await door.look_up(message(0)) is Whereabouts.READ

    play(tmp_path, scene)


@pytest.mark.parametrize("answer", [(500, b""), (200, b"{"), (200, b"{}")])
def test_messages_that_are_not_told_are_not_taken_for_none(tmp_path: Path, answer: tuple[int, bytes]) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        await door.deliver(message(1))
        [session] = cli.sessions
        cli.answers[f"/session/{session}/message?limit={opencode_server.LATEST}"] = answer
        assert await door.look_up(message(1)) is Whereabouts.UNKNOWN

    play(tmp_path, scene)


def test_a_program_that_is_gone_cannot_be_asked(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        await cli.stop()
        assert await door.look_up(message(1)) is Whereabouts.UNKNOWN

    play(tmp_path, scene)


# --- hearing -------------------------------------------------------------------------------------------------------------


def test_the_agent_is_heard_verbatim_and_once(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        cli.say = "Well.\n\n->relay:Carol <<<\n  two\n\nlines>>>"
        cli.show(session := cli.new_session())
        cli.person_types(session, "hello")
        await until(lambda: heard.of("heard"), "it is heard")
        cli.break_streams()
        await until(lambda: cli.events_served == 2, "the door is back")
        await door.deliver(message(1))
        await until(lambda: len(heard.of("heard")) == 2, "the next is heard")
        texts = [part["id"] for one in cli.messages[session] for part in one["parts"] if one["info"]["role"] == "assistant"]
        assert [id_ for _, id_ in heard.of("heard")] == [texts[1], texts[4]]
        assert {text for text, _ in heard.of("heard")} == {cli.say}

    play(tmp_path, scene)


def test_a_text_is_heard_before_the_tool_after_it_is_permitted(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        session = cli.new_session()
        answer = cli.begin_answer(session, "msg_0")
        cli.put_text(answer, "->relay:Carol may I?")
        cli.put_part(answer, "tool", state={"status": "pending"})
        await until(lambda: heard.of("heard"), "it is heard")

    play(tmp_path, scene)


def test_words_that_were_broken_off_are_not_passed_on(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        session = cli.new_session()
        answer = cli.begin_answer(session, "msg_0")
        cli.put_part(answer, "step-start")
        cli.put_text(answer, "->relay:Carol delete everything but")
        cli.complete(answer, error="MessageAbortedError")
        cli.status(session, "busy")
        await until(lambda: heard.of("state")[-1:] == [(DoorState.WORKING, "")], "what follows was heard")
        assert heard.of("heard") == []

    play(tmp_path, scene)


def test_tools_of_the_agent_and_what_was_put_in_its_mouth_are_not_heard(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        session = cli.new_session()
        child = cli.new_session(parent=session)
        inner = cli.begin_answer(child, "msg_0")
        cli.put_text(inner, "->relay:Carol from within")
        cli.complete(inner)
        answer = cli.begin_answer(session, "msg_0")
        cli.put_part(answer, "text", text="->relay:Carol made up", synthetic=True, time={"start": 1, "end": 2})
        cli.put_text(answer, "the agent's own")
        cli.complete(answer)
        await until(lambda: heard.of("heard"), "the agent is heard")

    heard = play(tmp_path, scene)
    assert [text for text, _ in heard.of("heard")] == ["the agent's own"]


def test_a_later_wrapper_hears_what_was_said_meanwhile_and_no_history(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        await door.close()
        other_agents = cli.new_session()  # of the same project, in another program
        cli.person_types(other_agents, "x")
        cli.show(session := cli.new_session())
        answer = cli.begin_answer(session, "msg_0")
        cli.put_part(answer, "text", text="before it was started", time={"start": 1, "end": 2})
        cli.put_text(answer, "said meanwhile")
        cli.complete(answer)
        await until(lambda: cli.requests, "the other agent has answered")
        later = Heard()
        other = cli.door(later, since_ms="1000")
        await other.open()
        assert [text for text, _ in later.of("heard")] == ["said meanwhile"]
        await other.close()

    play(tmp_path, scene)


def test_states_are_told_when_they_change(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        session = cli.new_session()
        cli.status(session, "busy")
        id_ = cli.ask_permission(session, "rm -rf build")
        await until(lambda: heard.of("asked"), "it asks")
        cli.reply(id_, "once")
        cli.status(session, "idle")
        await until(lambda: heard.of("state")[-1][0] is DoorState.IDLE and len(heard.of("state")) == 5, "it is idle again")

    heard = play(tmp_path, scene)
    states = [state for state, _ in heard.of("state")]
    assert states == [DoorState.IDLE, DoorState.WORKING, DoorState.WAITING, DoorState.WORKING, DoorState.IDLE]
    assert heard.of("state")[2][1] == "opencode asks to use bash: rm -rf build"


# --- opening -------------------------------------------------------------------------------------------------------------


def test_a_program_that_is_only_starting_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []
    monkeypatch.setattr(opencode_server, "owner_of_port", tries.append)

    async def run() -> None:
        cli = OpencodeCli(tmp_path)
        await cli.start()
        await cli.stop()
        door = cli.door(Heard())
        opening = asyncio.create_task(door.open())
        await until(lambda: len(tries) >= 3, "it was tried in vain")
        await cli.start(cli.port)
        await until(lambda: "GET /event" in cli.paths, "the server is found")
        assert not opening.done()
        cli.show()
        probe = await opening
        assert (probe.version, probe.note) == ("1.18.33", "")
        await door.close()
        await cli.stop()

    asyncio.run(run())


def test_a_server_that_forgets_the_first_who_ask_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencode_server, "FIRST_ANSWER_S", 0.05)

    async def run() -> None:
        cli = OpencodeCli(tmp_path)
        await cli.start()
        cli.show()
        cli.ignores = 2
        door = cli.door(Heard())
        async with asyncio.timeout(loopback_http.REQUEST_S / 2):
            await door.open()
        assert cli.paths.count("GET /global/health") == 3
        await door.close()
        await cli.stop()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "answer", "reason"),
    [
        ("/global/health", (200, b"<html>hello</html>"), "Something unknown"),
        ("/global/health", (200, b'{"healthy":"yes"}'), "Something unknown"),
        ("/global/health", (401, b""), "password"),
        ("/permission", (404, b""), "in an unknown way"),
        ("/session/status", (200, b"[1]"), "in an unknown way"),
        ("/event", (404, b""), "sends no events"),
    ],
)
def test_what_is_not_opencode_as_it_is_known_is_not_opened(
    tmp_path: Path, path: str, answer: tuple[int, bytes], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencode_server, "START_S", 0.5)

    async def run() -> Heard:
        cli, heard = OpencodeCli(tmp_path), Heard()
        await cli.start()
        cli.show()
        cli.answers[path] = answer
        door = cli.door(heard)
        with pytest.raises(DoorShut, match=reason):
            await door.open()
        await door.close()
        await cli.stop()
        return heard

    assert asyncio.run(run()).all == []


def test_somebody_elses_server_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencode_server, "owner_of_port", lambda _: os.getuid() + 1)

    async def run() -> None:
        cli = OpencodeCli(tmp_path)
        await cli.start()
        with pytest.raises(DoorShut, match="Another user"):
            await cli.door(Heard()).open()
        assert cli.paths == []
        await cli.stop()

    asyncio.run(run())


def test_the_owner_of_a_port_is_known() -> None:
    async def run() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        assert loopback_http.owner_of_port(port) == (os.getuid() if Path("/proc/net/tcp").exists() else None)
        server.close()

    asyncio.run(run())


def test_a_server_that_was_never_there_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencode_server, "START_S", 0.3)

    async def run() -> None:
        cli = OpencodeCli(tmp_path)
        await cli.start()
        await cli.stop()
        with pytest.raises(DoorShut, match="does not answer"):
            await cli.door(Heard()).open()

    asyncio.run(run())


# --- trouble -------------------------------------------------------------------------------------------------------------


def test_garbage_in_the_events_is_passed_over(tmp_path: Path) -> None:
    garbage = [
        b"{", b"[1,2]", b"null", b"\xff\xfe", b'{"type":"message.updated"}', b'{"type":7,"properties":[]}',
        b'{"type":"message.updated","properties":{"info":{"role":"user","id":5}}}',
        b'{"type":"message.part.updated","properties":{"part":{"messageID":["x"]}}}',
        b'{"type":"session.status","properties":{"sessionID":{},"status":"busy"}}',
        b'{"type":"permission.asked","properties":{"id":"../../x"}}',
        b'{"type":"permission.asked","properties":{"id":[1]}}',
        b'{"type":"question.asked","properties":{"id":"que_1","questions":"?"}}',
        b'{"type":"session.updated","properties":{"info":{"id":"ses_1/../x","parentID":1}}}',
        b"[" * 100_000,
    ]  # fmt: skip

    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        for data in garbage:
            cli.tell_raw(data)
        await door.deliver(message(1))
        await until(lambda: heard.read, "it still works")

    heard = play(tmp_path, scene)
    assert heard.of("lost") == heard.of("asked") == []


def test_what_happened_during_a_break_is_told_after_it(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        cli.is_held = True
        cli.show(session := cli.new_session())
        await door.deliver(message(1))
        gone = cli.ask_permission(session, "ls")
        await until(lambda: heard.of("asked"), "it asks")
        cli.break_streams()
        cli.permissions.pop(gone)
        asked = cli.ask_permission(session, "rm -rf build")
        cli.release()
        await until(lambda: heard.read and len(heard.of("heard")) == 1, "the reading and the answer are told")
        await until(lambda: len(heard.of("asked")) == 2, "the question is told")
        assert heard.of("asked")[1].id == asked
        assert [id_ for id_, *_ in heard.of("resolved")] == [gone]

    heard = play(tmp_path, scene)
    assert heard.of("lost") == []


def test_the_end_of_the_program_is_told_once_and_nothing_after_it(tmp_path: Path) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        cli.is_held = True
        await door.deliver(message(1))
        await cli.stop()
        await until(lambda: heard.of("lost"), "it is lost")
        with pytest.raises(DoorShut):
            await door.deliver(message(2))
        with pytest.raises(DoorShut):
            await door.answer("per_1", Decision(True))

    heard = play(tmp_path, scene)
    assert len(heard.of("lost")) == 1
    assert heard.all[-1][0] == "lost"
    assert heard.read == []


def test_a_delivery_into_a_program_that_just_ended_shuts_the_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencode_events, "REFUSED_S", 20.0)

    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        await cli.stop()
        with pytest.raises(DoorShut, match="gone"):
            await door.deliver(message(1))

    heard = play(tmp_path, scene)
    assert len(heard.of("lost")) == 1


def test_a_silent_server_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencode_events, "SILENCE_S", 0.1)
    monkeypatch.setattr(opencode_events, "BROKEN_S", 0.0)

    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        await until(lambda: heard.of("lost"), "it is lost")

    heard = play(tmp_path, scene)
    assert "nothing was heard" in heard.of("lost")[0]


def test_the_password_is_in_no_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scene(cli: OpencodeCli, heard: Heard, door: OpencodeServer) -> None:
        await cli.stop()
        await until(lambda: heard.of("lost"), "it is lost")

    heard = play(tmp_path, scene)
    assert PASSWORD not in str(heard.all)
    assert PASSWORD not in caplog.text
