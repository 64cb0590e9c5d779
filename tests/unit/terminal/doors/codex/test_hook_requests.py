"""What Codex's hook tells of a permission: the exact words, and from the session file what became of it."""

from __future__ import annotations

import pytest

from agent_relay.terminal.doors.door import Decision, Door, DoorError, NotOpen, Resolution
from tests.unit.terminal.doors.codex_hooked import Stage, play
from tests.unit.terminal.doors.heard import until

PATCH = "*** Begin Patch\n*** Add File: notes.txt\n+hello\n*** Update File: /srv/b.txt\n*** End Patch"


async def asking(stage: Stage, tool: str = "Bash", command: str = "rm -rf build") -> Door:
    door = await stage.open()
    await stage.cli.prompt()
    await stage.cli.ask(tool, command)
    await until(lambda: stage.heard.of("asked"), "it is asked")
    return door


async def resolved(stage: Stage, *wanted: Resolution) -> None:
    await until(lambda: len(stage.heard.of("resolved")) == len(wanted), "it is resolved")
    assert [(resolution, by) for _, resolution, by in stage.heard.of("resolved")] == [(each, "person") for each in wanted]


@pytest.mark.parametrize(
    ("tool", "command", "told"),
    [
        ("Bash", "rm -rf build", ("Codex asks to run rm -rf build", "shell", "rm -rf build", True)),
        ("Bash", "printf '\x1b[2J'", ("Codex asks to run printf '\ufffd[2J'", "shell", "printf '\ufffd[2J'", False)),
        ("mcp__disk__wipe", "", ("Codex asks to use mcp__disk__wipe", "mcp__disk__wipe", "", True)),
        ("", "", ("Codex asks to use a tool", "", "", True)),
    ],
)
def test_it_is_told_word_for_word_and_can_be_answered_on_the_screen_alone(
    tool: str, command: str, told: tuple[str, str, str, bool]
) -> None:
    async def scene(stage: Stage) -> None:
        door = await asking(stage, tool, command)
        (request,) = stage.heard.of("asked")
        assert (request.description, request.tool, request.subject, request.is_exact) == told
        assert (request.kind, request.options, request.can_allow) == ("permission", (), False)
        for is_allowed in (True, False):
            with pytest.raises(DoorError, match="on the screen"):
                await door.answer(request.id, Decision(is_allowed=is_allowed))

    play(scene)


def test_a_change_of_files_names_them_by_their_whole_paths() -> None:
    async def scene(stage: Stage) -> None:
        call = stage.cli.call(f"apply_patch <<END\n{PATCH}\nEND")
        await asking(stage, "apply_patch", PATCH)
        (request,) = stage.heard.of("asked")
        assert (request.tool, request.subject) == ("apply_patch", f"{stage.cli.cwd}/notes.txt, /srv/b.txt")
        assert request.description == f"Codex asks to change {request.subject}"
        stage.cli.result(call, "Success. Updated the following files:\nA notes.txt\n")
        await resolved(stage, Resolution.ALLOWED)

    play(scene)


def test_one_that_ran_was_permitted_and_one_that_was_rejected_was_not() -> None:
    async def scene(stage: Stage) -> None:
        door = await asking(stage)
        other, mine = stage.cli.call("ls"), stage.cli.call("rm -rf build")
        stage.cli.result(other, 'exec_command failed: Rejected("rejected by user")')
        stage.cli.result(mine, "Process exited with code 0")
        await resolved(stage, Resolution.ALLOWED)
        with pytest.raises(NotOpen):
            await door.answer(stage.heard.of("asked")[0].id, Decision(is_allowed=True))
        await stage.cli.ask("Bash", "rm -rf src")
        await until(lambda: len(stage.heard.of("asked")) == 2, "the next is asked")
        stage.cli.result(stage.cli.call("rm -rf src"), 'exec_command failed: Rejected("rejected by user")')
        await resolved(stage, Resolution.ALLOWED, Resolution.DENIED)

    play(scene)


def test_a_turn_that_a_person_broke_off_at_the_dialog_is_a_refusal() -> None:
    async def scene(stage: Stage) -> None:
        await asking(stage)
        stage.cli.result(stage.cli.call("rm -rf build"), "Wall time: 2.0 seconds\naborted by user")
        stage.cli.break_off()
        await resolved(stage, Resolution.DENIED)

    play(scene)


def test_one_of_which_nothing_was_heard_is_gone_with_its_turn() -> None:
    async def scene(stage: Stage) -> None:
        await asking(stage)
        await stage.cli.end()
        await resolved(stage, Resolution.GONE)

    play(scene)


def test_a_helpers_is_told_too() -> None:
    async def scene(stage: Stage) -> None:
        await stage.open()
        await stage.cli.prompt()
        await stage.cli.ask("Bash", "make", agent_id="helper", session_id="another")
        await until(lambda: stage.heard.of("asked") and stage.heard.of("session"), "it is asked")
        assert stage.heard.of("session") == [stage.cli.thread_id]

    play(scene)
