"""An agent behind a wall: its program in bubblewrap, where the relay's files, tokens and other agents are not to be found.

The whole file system is there to read, but for the home where it was asked to be hidden, and what the relay keeps; writable are
the project, the CLI's own folder, and a /tmp of its own. Of the relay the agent has its outbox, its own folder to read, and the
socket, at which it is known by its processes like every other. Other processes are not visible.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from msgspec import Struct

from agent_relay.terminal.agent.launch import Home, WrapFailed
from agent_relay.terminal.output.transcripts.find import home_of
from agent_relay.terminal.profiles.profile import Profile

NETWORK = ("on", "off")
HOME_RULES = ("ro", "rw", "none")
DOORS_THROUGH_A_WALL = frozenset({"claude", "gemini"})  # hooks, which come to us
_TRY_S = 10.0
# What CLIs keep beside their session files.
_OWN_FOLDERS = {
    "claude": (".claude", ".claude.json"), "codex": (".codex",), "gemini": (".gemini",), "aider": (".aider",),
    "opencode": (".local/share/opencode", ".local/state/opencode", ".config/opencode", ".cache/opencode"),
}  # fmt: skip
# Ways out of the box, or into somebody else's: a session bus starts programs for whoever asks.
_LEFT_BEHIND = frozenset(
    {"DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DISPLAY", "WAYLAND_DISPLAY"}
)
_TMP = "/tmp"  # noqa: S108 - of its own
_RESOLVER = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager")  # where /etc/resolv.conf may point to


class Sandbox(Struct, frozen=True):
    network: str = "on"
    home: str = "ro"  # or `rw`, `none`, or paths below it that are there and writable, separated by commas

    @property
    def words(self) -> list[str]:
        """The same, as options of `wrap`."""
        return ["--sandbox", f"--sandbox-network={self.network}", f"--sandbox-home={self.home}"]

    @property
    def paths(self) -> list[str]:
        if self.home in HOME_RULES:
            return []
        return [os.path.abspath(os.path.expanduser(part.strip())) for part in self.home.split(",") if part.strip()]


class Reach(Struct, frozen=True):
    """Places that the agent is to reach, and those it is not."""

    home: Home
    relay_home: str
    project: str
    cwd: str
    socket: str
    work: str = ""  # the worktree that `cwd` lies in, where that is not below the project


def check_sandbox() -> str:
    """The program; raises WrapFailed with what to do where there is none, or the system does not let it work."""
    if sys.platform != "linux":
        raise WrapFailed(
            "--sandbox needs bubblewrap, which exists only on Linux. Leave it out, or run the agent as another user."
        )
    program = shutil.which("bwrap")
    if program is None:
        raise WrapFailed("--sandbox needs the program bwrap; install it with: sudo apt-get install bubblewrap")
    words = [program, "--ro-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--dev", "/dev", "true"]
    try:
        tried = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TRY_S, check=False)  # noqa: S603
        said = tried.stderr.strip()
    except subprocess.SubprocessError as error:
        said = str(error)
    else:
        if tried.returncode == 0:
            return program
    raise WrapFailed(
        f"--sandbox does not work here: {said[:200] or 'bwrap failed'}. This system may not let users create namespaces. As "
        "root: "
        "sysctl -w kernel.unprivileged_userns_clone=1; with AppArmor (Ubuntu): sysctl -w "
        "kernel.apparmor_restrict_unprivileged_userns=0."
    )


def enclose(
    bwrap: str, sandbox: Sandbox, reach: Reach, profile: Profile, argv: Sequence[str], environment: Mapping[str, str]
) -> tuple[str, ...]:
    """The words that run `argv` inside. What comes later lies over what came before."""
    home = environment.get("HOME") or os.path.expanduser("~")
    words = [
        bwrap, "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
        "--cap-drop", "ALL", *(("--unshare-net",) if sandbox.network == "off" else ()),
        "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", _TMP, "--tmpfs", "/run",
    ]  # fmt: skip
    for path in _RESOLVER:
        words += ["--ro-bind-try", path, path]
    words += _home_words(sandbox, home)
    for path in _needed_to_run(home, argv, environment):
        words += ["--ro-bind-try", path, path]
    for path in sandbox.paths:
        words += ["--bind", path, path]
    for path in _own_paths(profile, home, environment):
        words += ["--bind-try", path, path]
    words += _writable(reach.project) + _writable(reach.work or reach.cwd)
    words += _hidden(reach.relay_home) + _hidden(reach.home.state_dir)
    team, outbox = reach.home.team, reach.home.outbox
    words += ["--ro-bind", team, team, "--bind", outbox, outbox, "--bind-try", reach.socket, reach.socket]
    words += ["--ro-bind-try", f"{reach.project}/.agent-relay", f"{reach.project}/.agent-relay", "--chdir", reach.cwd]
    for name in sorted(_LEFT_BEHIND & set(environment)):
        words += ["--unsetenv", name]
    return (*words, "--", *argv)


def _home_words(sandbox: Sandbox, home: str) -> list[str]:
    if sandbox.home in {"ro", "rw"}:  # the first again: it may lie below /tmp
        return ["--ro-bind" if sandbox.home == "ro" else "--bind", home, home]
    return ["--tmpfs", home]


def _needed_to_run(home: str, argv: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Folders in which the program, its interpreter and we ourselves are installed, as far as that may have been hidden."""
    program = shutil.which(argv[0], path=environment.get("PATH", os.defpath)) or argv[0]
    package = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))  # where agent_relay lies
    folder = os.path.dirname(program)
    places = [
        os.path.dirname(folder) if os.path.basename(folder) == "bin" else folder,
        os.path.dirname(os.path.realpath(program)),
    ]
    places += [sys.prefix, sys.base_prefix, package]
    hidden = (home + "/", _TMP + "/")
    return [path for path in dict.fromkeys(places) if path.startswith(hidden) and not (home + "/").startswith(path + "/")]


def _own_paths(profile: Profile, home: str, environment: Mapping[str, str]) -> list[str]:
    found = [os.path.join(home, name) for name in _OWN_FOLDERS.get(profile.name, ())]
    if profile.transcript is not None:
        found.append(str(home_of(profile.transcript, environment)))
    return [path for path in found if os.path.exists(path)]


def _writable(path: str) -> list[str]:
    return ["--bind", path, path]


def _hidden(path: str) -> list[str]:
    return ["--tmpfs", path] if os.path.isdir(path) else []
