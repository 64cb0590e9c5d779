"""The launch of a wrapped agent: its place among the project's files, its arguments, its environment, and in which terminal."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence

from msgspec import Struct

from agent_relay.protocol import places
from agent_relay.sdk.peers import check_folder
from agent_relay.terminal.backends.choice import Backend, Choice, choose_backend
from agent_relay.terminal.backends.person_terminal import PersonTerminal
from agent_relay.terminal.backends.pty import PtyTerminal
from agent_relay.terminal.backends.terminal import Terminal, TerminalError, TerminalListener
from agent_relay.terminal.backends.tmux import TmuxTerminal
from agent_relay.terminal.backends.tmux_server import TmuxServer, tmux_socket_path
from agent_relay.terminal.delivery.consoles import runs_what_is_typed
from agent_relay.terminal.profiles.profile import Profile, ProfileError
from agent_relay.terminal.screen.contents import Screen

ENV_OUTBOX = "AGENT_RELAY_OUTBOX"
ENV_INBOX = "AGENT_RELAY_INBOX"
TEAM_FOLDER, OUTBOX_FOLDER = places.TEAM_FOLDER, "outbox"


class WrapFailed(Exception):  # noqa: N818 - named by the condition
    """The agent cannot be wrapped; the text says why."""


class Home(Struct, frozen=True):
    """The folders of one agent's files."""

    state_dir: str
    name: str

    @property
    def team(self) -> str:
        return os.path.join(self.state_dir, TEAM_FOLDER, self.name)

    @property
    def outbox(self) -> str:
        return os.path.join(self.state_dir, OUTBOX_FOLDER, self.name)

    def make(self) -> None:
        """For the user alone, as the folder they are in."""
        for folder in (self.team, self.outbox):
            os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
            os.makedirs(folder, mode=0o700, exist_ok=True)


def check_command(argv: Sequence[str]) -> None:
    """Raises for a program that would run messages as commands."""
    if not argv:
        raise WrapFailed("Give a program to run, such as: agent-relay -n Alice claude")
    if runs_what_is_typed(argv):
        raise WrapFailed(f"{argv[0]} runs what is typed into it, so it would run messages as commands. Wrap the agent itself.")


def arguments(argv: Sequence[str], profile: Profile) -> list[str]:
    """With the flags that help; not before a word that may be a subcommand, which need not know them."""
    program, *rest = argv
    if rest and not rest[0].startswith("-"):
        return list(argv)
    return [program, *(flag for flag in profile.launch.flags if flag not in rest), *rest]


def child_environment(
    environ: Mapping[str, str], profile: Profile, home: Home, *, socket: str, root: str, inbox: str
) -> dict[str, str]:
    own = {
        places.ENV_NAME: home.name,
        places.ENV_SOCKET: socket,
        places.ENV_PROJECT: root,
        ENV_OUTBOX: home.outbox,
        ENV_INBOX: inbox,
    }
    # With the token of the API an agent could approve what it asks itself, and the database's URL may hold a password.
    kept_back = {"TMUX", "TMUX_PANE", places.ENV_TOKEN, places.ENV_API_TOKEN, places.ENV_STORAGE_URL}
    inherited = {name: value for name, value in environ.items() if name not in kept_back}
    return {**profile.launch.environment, **inherited, **own}


def pick_backend(wanted: str) -> Choice:
    try:
        return choose_backend(wanted)
    except TerminalError as error:
        raise WrapFailed(str(error)) from None


def tmux_server(choice: Choice, state_dir: str, project_id: str) -> TmuxServer:
    """Raises StrangerAtSocket: a tmux server can have its clients run commands, so another user's is not talked to."""
    assert choice.tmux is not None
    path = tmux_socket_path(state_dir, project_id, os.getuid())
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # nobody has been there yet
        check_folder(path)
    return TmuxServer(choice.tmux, path)


def make_terminal(choice: Choice, home: Home, project_id: str, listener: TerminalListener) -> Terminal[Screen]:
    if choice.backend is Backend.TMUX:
        return TmuxTerminal(tmux_server(choice, home.state_dir, project_id), home.name, listener)
    return PtyTerminal(listener, PersonTerminal.find())


async def is_running(choice: Choice, home: Home, project_id: str) -> bool:
    """Whether a program runs under this name already, started by a wrapper that has died."""
    if choice.backend is not Backend.TMUX:
        return False
    return await tmux_server(choice, home.state_dir, project_id).find_pane(home.name) is not None


def is_terminal_error(error: BaseException) -> bool:
    """Whether the text of this exception is a sentence for people."""
    return isinstance(error, TerminalError | WrapFailed | ProfileError)
