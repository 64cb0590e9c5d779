"""The words that put a program behind a wall, and what is said where there is none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agent_relay.terminal.agent import sandbox as module
from agent_relay.terminal.agent.launch import Home, WrapFailed
from agent_relay.terminal.agent.sandbox import Reach, Sandbox, check_sandbox, enclose
from agent_relay.terminal.profiles.profile import load_profiles


def words(folder: Path, sandbox: Sandbox, cli: str = "generic", argv: tuple[str, ...] = ("/bin/cat",)) -> list[str]:
    for name in ("home/.claude", "home/state", "home/.agent-relay", "project"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    reach = Reach(
        Home(str(folder / "home/state"), "Bob"), str(folder / "home/.agent-relay"), str(folder / "project"),
        str(folder / "project"), str(folder / "home/state/relay.sock"),
    )  # fmt: skip
    environment = {"HOME": str(folder / "home"), "PATH": "/bin", "SSH_AUTH_SOCK": "x"}
    return list(enclose("bwrap", sandbox, reach, load_profiles()[cli], argv, environment))


def place(found: list[str], *wanted: str) -> int:
    """Where these stand, in a row."""
    size = len(wanted)
    return next(at for at in range(len(found)) if tuple(found[at : at + size]) == wanted)


def test_what_hides_the_relay_lies_over_everything_else(tmp_path: Path) -> None:
    found = words(tmp_path, Sandbox(home="rw"), "claude")
    home = str(tmp_path / "home")
    hidden = place(found, "--tmpfs", f"{home}/state")
    order = [
        place(found, "--ro-bind", "/", "/"), place(found, "--tmpfs", "/tmp"), place(found, "--bind", home, home),
        place(found, "--bind-try", f"{home}/.claude", f"{home}/.claude"),
        place(found, "--bind", str(tmp_path / "project"), str(tmp_path / "project")),
        place(found, "--tmpfs", f"{home}/.agent-relay"), hidden,
        place(found, "--ro-bind", f"{home}/state/team/Bob", f"{home}/state/team/Bob"),
        place(found, "--bind", f"{home}/state/outbox/Bob", f"{home}/state/outbox/Bob"),
        place(found, "--bind-try", f"{home}/state/relay.sock", f"{home}/state/relay.sock"), place(found, "--", "/bin/cat"),
    ]  # fmt: skip
    assert order == sorted(order)
    assert place(found, "--unsetenv", "SSH_AUTH_SOCK")
    assert "--unshare-net" not in found


def test_home_and_network_are_as_asked(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    assert place(words(tmp_path, Sandbox()), "--ro-bind", home, home)
    nothing = words(tmp_path, Sandbox("off", "none"))
    assert "--unshare-net" in nothing
    assert place(nothing, "--tmpfs", home)
    some = words(tmp_path, Sandbox(home=f"{home}/a, {home}/b"))
    assert place(some, "--tmpfs", home) < place(some, "--bind", f"{home}/a", f"{home}/a") < place(some, "--bind", f"{home}/b")


def test_a_program_in_a_hidden_home_is_there_and_the_home_is_not(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "tools" / "bin").mkdir(parents=True)
    program = home / "tools" / "bin" / "agent"
    program.touch(0o755)
    found = words(tmp_path, Sandbox(home="none"), argv=(str(program),))
    assert place(found, "--ro-bind-try", str(home / "tools"), str(home / "tools"))
    (home / "agent").touch(0o755)
    found = words(tmp_path, Sandbox(home="none"), argv=(str(home / "agent"),))
    assert found.count(str(home)) == 1  # what hides it


def test_options_are_spelled_out_again() -> None:
    assert Sandbox("off", "none").words == ["--sandbox", "--sandbox-network=off", "--sandbox-home=none"]
    assert Sandbox(home="~/x,/y").paths == [os.path.expanduser("~/x"), "/y"]


def test_where_there_is_none_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.shutil, "which", lambda _: None)
    monkeypatch.setattr(module.sys, "platform", "linux")
    with pytest.raises(WrapFailed, match="apt-get install bubblewrap"):
        check_sandbox()
    monkeypatch.setattr(module.sys, "platform", "darwin")
    with pytest.raises(WrapFailed, match="only on Linux"):
        check_sandbox()
    monkeypatch.setattr(module.sys, "platform", "linux")
    monkeypatch.setattr(module.shutil, "which", lambda _: "/usr/bin/bwrap")
    failed = subprocess.CompletedProcess([], 1, "", "bwrap: No permissions to create new namespace")
    monkeypatch.setattr(module.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(WrapFailed, match=r"No permissions to create new namespace.*unprivileged_userns"):
        check_sandbox()
