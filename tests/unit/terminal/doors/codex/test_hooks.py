"""The hooks of ours that Codex is started with: one text for all agents, run only where the person trusts it, and harmless.

As a way in: at the end of a turn, in order, once, and nothing lost with a turn that ends otherwise.
"""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from agent_relay.terminal.doors.codex import hooks as codex_hooks
from agent_relay.terminal.doors.codex.hooks import SCRIPT_FILE, VARIABLE, are_trusted, hook_flags, write_script
from agent_relay.terminal.doors.door import Decision, Door, DoorError, DoorMessage, DoorShut, NotOpen, NotTaken, Whereabouts
from agent_relay.terminal.doors.hooks import marker_path
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.doors.spool import MAX_BYTES
from tests.unit.terminal.doors.codex_hooked import TRUST, Stage, play
from tests.unit.terminal.doors.heard import Heard, message, until


def commands() -> dict[str, str]:
    settings = tomllib.loads("\n".join(hook_flags()[1::2]))["hooks"]
    return {event: groups[0]["hooks"][0]["command"] for event, groups in settings.items()}


def run(event: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", commands()[event]], env={"PATH": os.environ["PATH"], **environment}, input=b"{}",
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip


def test_what_codex_wrote_down_when_a_person_trusted_them_is_read(tmp_path: Path) -> None:
    """Should this fail after a change of the hooks, every user is asked anew: then Codex has to be run again for its digests."""
    (tmp_path / "config.toml").write_text(TRUST)
    assert are_trusted(tmp_path)


@pytest.mark.parametrize(
    "kept",
    [
        "", "half = [", "hooks = 3", "[hooks]\nstate = []", TRUST.replace("491a", "591a"), TRUST.replace(":stop:", ":other:"),
        TRUST.replace(":0:0", ":0:1"), f"{TRUST}enabled = false\n", TRUST.rpartition("[hooks")[0],
    ],
)  # fmt: skip
def test_anything_else_is_no_trust(tmp_path: Path, kept: str) -> None:
    (tmp_path / "config.toml").write_text(kept)
    assert not are_trusted(tmp_path)


def test_no_settings_or_none_that_can_be_read_is_no_trust(tmp_path: Path) -> None:
    assert not are_trusted(tmp_path)
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    assert not are_trusted(tmp_path)
    assert not are_trusted(tmp_path / "config.toml")


def test_the_text_names_no_agent_and_no_place() -> None:
    assert hook_flags()[::2] == ["-c"] * 3
    assert set(commands()) == {"UserPromptSubmit", "PermissionRequest", "Stop"}
    for event, command in commands().items():
        assert command == f'sh -c \'if [ -f "${VARIABLE}" ]; then sh "${VARIABLE}" {event} 2>/dev/null; fi; exit 0\''


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PermissionRequest", "Stop"])
def test_it_says_nothing_and_ends_well_whatever_is_missing(tmp_path: Path, event: str) -> None:
    place = AgentPlace("Bob", str(tmp_path), "0123456789ab")
    script = Path(write_script(place, str(tmp_path / "hooks.sock")))
    (tmp_path / "codex-waiting").touch()
    assert stat.S_IMODE(script.stat().st_mode) == 0o600
    assert run(event).returncode == 0
    for named in ("", str(tmp_path / "none"), str(tmp_path), str(script)):
        done = run(event, **{VARIABLE: named})
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_script_that_fails_is_no_refusal(tmp_path: Path) -> None:
    (tmp_path / "bad.sh").write_text("echo trouble >&2; exit 2\n")
    done = run("PermissionRequest", **{VARIABLE: str(tmp_path / "bad.sh")})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


async def working(stage: Stage) -> Door:
    door = await stage.open()
    await stage.cli.prompt()
    await until(lambda: stage.heard.of("session"), "the conversation is known")
    return door


async def hand(door: Door, *numbers: int) -> list[DoorMessage]:
    some = [message(number) for number in numbers]
    for one in some:
        await door.deliver(one)
    return some


async def refused(stage: Stage, *numbers: int) -> None:
    wanted = [message(number).id for number in numbers]
    await until(lambda: len(stage.heard.of("refused")) >= len(wanted), f"{wanted} are given back")
    assert [entry[0] for entry in stage.heard.of("refused")] == wanted


# --- opening -------------------------------------------------------------------------------------------------------------


def test_it_opens_before_the_first_turn_and_is_heard_of_with_it() -> None:
    async def scene(stage: Stage) -> None:
        queue, door = stage.doors()
        assert (queue.name, door.name, door.can_start_turns) == ("codex queue", "codex stop hook", False)
        probe = await door.open()
        assert (probe.version, probe.introduces) == ("0.166.0", False)
        assert "first turn" in probe.note
        with pytest.raises(NotTaken, match="idle"):
            await door.deliver(message(1))
        await stage.cli.prompt()
        await until(lambda: stage.heard.of("session") == [stage.cli.thread_id], "the conversation is known")
        await hand(door, 1)

    play(scene)


def test_without_the_persons_trust_it_is_shut_and_says_what_to_do() -> None:
    async def scene(stage: Stage) -> None:
        stage.cli.settings.write_text("")
        with pytest.raises(DoorShut, match="not told to trust") as error:
            await stage.open()
        assert error.value.mend == "Start it with `wrap --codex-hooks`, and choose “Trust all and continue”."

    play(scene)


def test_a_place_where_nothing_can_be_listened_to() -> None:
    async def scene(stage: Stage) -> None:
        stage.prepared.facts["hooks"] = "/proc/none/hooks.sock"
        with pytest.raises(DoorShut, match="listened"):
            await stage.open()

    play(scene)


# --- delivering ----------------------------------------------------------------------------------------------------------


def test_what_waits_is_given_at_the_end_of_the_turn_in_order_and_is_read_then() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        one, two, three = await hand(door, 1, 2, 3)
        assert await door.look_up(two) is Whereabouts.HELD
        assert stage.heard.read == []
        assert await stage.cli.end() == f"{one.text}\n\n{two.text}\n\n{three.text}"
        await until(lambda: len(stage.heard.read) == 3, "all are read")
        assert stage.heard.of("read") == [(each.id, "transcript") for each in (one, two, three)]
        assert await door.look_up(two) is Whereabouts.READ
        assert await stage.cli.end() == ""
        with pytest.raises(NotTaken, match="idle"):
            await door.deliver(message(4))
        assert stage.heard.of("refused") == []

    play(scene)


def test_more_than_a_hook_may_say_goes_with_the_next_end() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        long = [message(number, "x" * (MAX_BYTES // 2 - 200)) for number in (1, 2, 3)]
        for one in long:
            await door.deliver(one)
        assert await stage.cli.end() == f"{long[0].text}\n\n{long[1].text}"
        assert await stage.cli.end() == long[2].text
        await until(lambda: stage.heard.read == [one.id for one in long], "all are read")
        assert await stage.cli.end() == ""

    play(scene)


@pytest.mark.parametrize(
    ("body", "reason"), [("x" * MAX_BYTES, "too long"), ("a < b", "angle"), ("a > b", "angle"), ("a & b", "angle")]
)
def test_what_codex_would_change_is_not_taken(body: str, reason: str) -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        with pytest.raises(NotTaken, match=reason):
            await door.deliver(message(1, body))
        assert await stage.cli.end() == ""

    play(scene)


def test_turns_in_which_nothing_waits_ask_nobody() -> None:
    async def scene(stage: Stage) -> None:
        await working(stage)
        Path(stage.prepared.facts["hooks"] + ".token").unlink()  # whoever asked would be turned away
        assert not os.path.exists(marker_path(stage.place.folder, "codex"))
        assert await stage.cli.end() == ""

    play(scene)


# --- turns that end otherwise --------------------------------------------------------------------------------------------


def test_what_waits_when_a_turn_is_broken_off_is_given_back() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, 1, 2)
        stage.cli.break_off()
        await refused(stage, 1, 2)
        assert not os.path.exists(marker_path(stage.place.folder, "codex"))
        assert await door.look_up(message(1)) is not Whereabouts.HELD

    play(scene)


def test_what_was_given_and_not_taken_is_given_back() -> None:
    """Another hook of the user's may end the turn all the same."""

    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, 1)
        output = await stage.cli.hook("Stop")
        assert output["decision"] == "block"
        assert await door.look_up(message(1)) is Whereabouts.HELD
        stage.cli.write("event_msg", type="task_complete")
        await refused(stage, 1)
        assert stage.heard.read == []

    play(scene)


def test_hooks_that_lead_nowhere_block_nothing_and_what_waits_is_given_back() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, 1)
        (Path(stage.place.folder) / SCRIPT_FILE).unlink()
        assert await stage.cli.end() == ""
        await refused(stage, 1)

    play(scene)


def test_a_relay_that_is_gone_blocks_nothing() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, 1)
        await door.close()
        Path(marker_path(stage.place.folder, "codex")).touch()
        assert await stage.cli.end() == ""
        await stage.cli.ask("Bash", "rm -rf build")
        assert stage.heard.of("asked") == []
        with pytest.raises(DoorShut):
            await door.deliver(message(2))

    play(scene)


def test_a_relay_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex_hooks, "ANSWER_S", 0.5)

    async def scene(stage: Stage) -> None:
        Path(marker_path(stage.place.folder, "codex")).touch()
        asked: list[asyncio.StreamWriter] = []
        silent = await asyncio.start_unix_server(lambda _, writer: asked.append(writer), stage.prepared.facts["hooks"])
        Path(stage.prepared.facts["hooks"] + ".token").write_text("x")
        began = time.monotonic()
        assert await stage.cli.end() == ""
        assert time.monotonic() - began < codex_hooks.HOOK_S
        silent.close()
        (writer,) = asked
        writer.close()

    play(scene)


@pytest.mark.parametrize("given", [b"", b"no json", b"[1]", b"{}", b'{"session_id": 3, "transcript_path": []}', b"\xff\xfe"])
def test_garbage_is_answered_with_nothing(given: bytes) -> None:
    async def scene(stage: Stage) -> None:
        door = await stage.open()
        for event in ("UserPromptSubmit", "PermissionRequest", "Stop"):
            assert await stage.cli.run_hook(event, given) == b""
        await stage.cli.prompt()
        await until(lambda: stage.heard.of("session"), "the conversation is known")
        (one,) = await hand(door, 1)
        assert await stage.cli.end() == one.text

    play(scene)


# --- conversations -------------------------------------------------------------------------------------------------------


def test_another_conversation_is_followed_and_a_helpers_is_not() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        first = stage.cli.thread_id
        await stage.cli.hook("UserPromptSubmit", session_id="helper", transcript_path="/x/y.jsonl", agent_id="helper")
        await stage.cli.end()
        stage.cli.begin()
        await stage.cli.prompt()
        await until(lambda: len(stage.heard.of("session")) == 2, "the next conversation is known")
        assert stage.heard.of("session") == [first, stage.cli.thread_id]
        (one,) = await hand(door, 1)
        assert await stage.cli.hook("Stop", agent_id="helper") == {}
        assert await stage.cli.end() == one.text
        await until(lambda: stage.heard.read == [one.id], "it is read")

    play(scene)


def test_turns_that_ended_in_a_conversation_before_it_was_taken_up_give_nothing_back() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        (one,) = await hand(door, 1)
        stage.cli.begin()
        for kind in ("task_started", "task_complete", "task_started", "turn_aborted"):
            stage.cli.write("event_msg", type=kind)
        await stage.cli.prompt()
        await until(lambda: len(stage.heard.of("session")) == 2, "the other conversation is known")
        assert await stage.cli.end() == one.text
        await until(lambda: stage.heard.read == [one.id], "it is read")
        assert stage.heard.of("refused") == []

    play(scene)


def test_a_later_wrapper_takes_it_up_in_the_middle_of_a_turn() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        (one,) = await hand(door, 1)
        assert await stage.cli.end() == one.text
        await until(lambda: stage.heard.read, "it is read")
        await door.close()
        heard = Heard()
        later = await stage.open(heard)
        assert await later.look_up(one) is Whereabouts.READ
        assert await later.look_up(message(2)) is not Whereabouts.READ
        (two,) = await hand(later, 2)
        assert await stage.cli.end() == two.text
        await until(lambda: heard.read == [two.id], "it is read, and the first is not told again")

    play(scene)


def test_what_it_asks_is_not_answered_through_it() -> None:
    async def scene(stage: Stage) -> None:
        door = await stage.open()
        with pytest.raises(NotOpen):
            await door.answer("codex-hook-1", Decision(is_allowed=True))

    play(scene)


def test_the_queue_learns_the_conversation_from_a_hook() -> None:
    """Also of one that holds no words of ours."""

    async def scene(stage: Stage) -> None:
        queue = stage.doors()[0]
        assert "first turn" in (await queue.open()).note
        await stage.cli.prompt()
        await until(lambda: stage.heard.of("session") == [stage.cli.thread_id], "the conversation is known")
        assert await queue.deliver(message(1)) == "queued in the conversation"
        await stage.cli.ask("Bash", "rm -rf build")
        await until(lambda: stage.heard.of("asked"), "what it asks is told")
        with pytest.raises(DoorError, match="on the screen"):
            await queue.answer(stage.heard.of("asked")[0].id, Decision(is_allowed=True))

    play(scene, "-c", 'developer_instructions="mine"')
