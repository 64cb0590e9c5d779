"""Permission dialogs of the real CLIs, answered on their screens: allowed once, refused, and left alone when they changed."""

from __future__ import annotations

import asyncio

import pytest

from agent_relay.terminal.backends.tmux import TmuxTerminal
from agent_relay.terminal.backends.tmux_program import find_tmux
from agent_relay.terminal.backends.tmux_server import TmuxServer
from agent_relay.terminal.doors.door import Decision, DoorError, NotOpen
from agent_relay.terminal.output.watcher import Watcher
from agent_relay.terminal.profiles.profile import load_profiles
from agent_relay.terminal.requests.screen_answers import ScreenAnswerer
from agent_relay.terminal.screen.contents import screen_of_text
from agent_relay.terminal.screen.dialogs import find_dialog
from tests.real_clis.clis import CLIS
from tests.real_clis.harness import DEADLINE_S, Agent, Lab
from tests.real_clis.model.script import Turn, on_message

pytestmark = [pytest.mark.real_clis, pytest.mark.timeout(900)]
every_cli = pytest.mark.parametrize("cli", list(CLIS))
CLEAN = Turn(on_message("clean up"), command="rm -rf build", then="The folder is clean now.")
AGAIN = Turn(on_message("once more"), command="rm -rf other", then="That one is clean too.")


class Deaf:
    def output(self, data: bytes) -> None:
        pass

    def output_lost(self) -> None:
        pass

    def person_typed(self) -> None:
        pass


def answer(lab: Lab, agent: Agent, decision: Decision, *, is_of_another: bool = False) -> None:
    """Beside the wrapper, at the same terminal."""

    async def run() -> None:
        profile = load_profiles()[agent.cli.name]
        server = TmuxServer(find_tmux(), str(lab.daemon.state_dir / "tmux.sock"))
        terminal = TmuxTerminal(server, agent.name, Deaf())
        watcher = Watcher(profile)

        async def read() -> None:
            watcher.saw(await terminal.screen(), asyncio.get_running_loop().time())

        async def has_answered(digest: str) -> bool:
            """A machine so busy that a key is not seen to work in time leaves the dialog open: it is asked once more."""
            try:
                await ScreenAnswerer(terminal, watcher, profile, read).answer(digest, decision)
            except NotOpen:
                raise
            except DoorError:
                return False
            return True

        await terminal.reattach()
        try:
            async with asyncio.timeout(DEADLINE_S):
                while watcher.dialog is None:
                    await read()
                digest = "of another" if is_of_another else watcher.dialog.digest
                while not await has_answered(digest):
                    pass
        finally:
            await terminal.close()

    asyncio.run(run())


def asked(agent: Agent) -> str:
    """What the dialog on its screen is about; nothing where none is open."""
    lines = screen_of_text(agent.screen).lines
    dialog = find_dialog(load_profiles()[agent.cli.name], lines)
    return (dialog.subject or "?") if dialog is not None else ""


def start_asking(lab: Lab, cli: str) -> Agent:
    bob = lab.start(cli, "Bob", [CLEAN, AGAIN])
    (lab.project / "other").mkdir()
    lab.send("Bob", "clean up")
    bob.until(lambda: asked(bob) == "rm -rf build", "it asks")
    return bob


@every_cli
def test_allowed_on_the_screen(lab: Lab, cli: str) -> None:
    bob = start_asking(lab, cli)
    answer(lab, bob, Decision(is_allowed=True))
    bob.until(lambda: not (lab.project / "build").exists(), "it is allowed")
    lab.send("Bob", "once more")
    bob.until(lambda: asked(bob) == "rm -rf other", "it asks again: it was allowed once, and not for ever")
    assert (lab.project / "other").exists()


@every_cli
def test_refused_on_the_screen(lab: Lab, cli: str) -> None:
    bob = start_asking(lab, cli)
    answer(lab, bob, Decision(is_allowed=False))
    assert not asked(bob), bob.describe()
    lab.send("Bob", "once more")
    bob.until(lambda: asked(bob) == "rm -rf other", "it goes on, and asks for the next thing")
    assert (lab.project / "build").exists()
    assert (lab.project / "other").exists()


@every_cli
def test_another_dialog_is_left_alone(lab: Lab, cli: str) -> None:
    bob = start_asking(lab, cli)
    before = bob.dialog
    with pytest.raises(NotOpen):
        answer(lab, bob, Decision(is_allowed=True), is_of_another=True)
    assert bob.dialog == before
    assert (lab.project / "build").exists()
