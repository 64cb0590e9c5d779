"""Several projects of one user, and one project in several folders: real repositories, real daemons, the real command."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_relay.cli.main import main
from tests.integration.stage import until
from tests.integration.test_cli import Done, flushed

DEADLINE_S = 60.0
PROGRAM = str(Path(sys.executable).with_name("agent-relay"))


class Desk:
    """A home of its own, with projects in it."""

    def __init__(self) -> None:
        self.folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="ar-")))
        self.home = self.folder / "home"
        ours = ("AGENT_RELAY_", "TMUX", "GIT_")
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.environ |= {"HOME": str(self.folder), "AGENT_RELAY_HOME": str(self.home), "LOGNAME": "tester"}

    def git(self, where: Path, *words: str) -> None:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
        subprocess.run(["git", *who, *words], cwd=where, env=self.environ, check=True, capture_output=True)

    def repository(self, name: str = "main") -> Path:
        path = self.folder / name
        path.mkdir()
        self.git(path, "init", "-q")
        self.git(path, "commit", "-q", "--allow-empty", "-m", "first")
        return path

    def project(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir()
        return path

    def run(self, where: Path, *words: str, status: int = 0, **environ: str) -> Done:
        """In this process where it leaves nothing behind that a test could inherit: starting an interpreter takes long."""
        is_apart = not {"up", "restart", "wrap"}.isdisjoint(words)
        done = (self._run_apart if is_apart else self._run_here)(where, words, self.environ | environ)
        assert done.status == status, (words, done)
        assert "Traceback" not in done.stderr
        return done

    def _run_apart(self, where: Path, words: Sequence[str], environ: dict[str, str]) -> Done:
        done = subprocess.run(
            [PROGRAM, *words], cwd=where, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    def _run_here(self, where: Path, words: Sequence[str], environ: dict[str, str]) -> Done:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n") for _ in range(2))
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(where)
            for name in [name for name in os.environ if name not in environ]:
                patch.delenv(name)
            for name, value in environ.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            ended = main(list(words))
        return Done(ended, *(stream.buffer.getvalue().decode() for stream in flushed(out, err)))

    def json(self, where: Path, *words: str, status: int = 0) -> Any:
        return json.loads(self.run(where, *words, "--json", status=status).stdout)

    def url(self, where: Path) -> str:
        """Of the page, once it is there."""
        return str(until(lambda: self.json(where, "status")["http"]["url"], "HTTP is served"))

    def close(self) -> None:
        for project in self.json(self.folder, "projects")["projects"]:
            where = ["--socket", project["socket"], "--state-dir", project["state_dir"]]
            subprocess.run(
                [PROGRAM, "down", "--all", *where], cwd=self.folder, env=self.environ, capture_output=True, check=False
            )
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.close()


# --- one piece of work, one relay -----------------------------------------------------------------------------------------


def test_worktrees_and_packages_of_a_repository_share_one_relay(desk: Desk) -> None:
    repository = desk.repository()
    desk.git(repository, "worktree", "add", "-q", "../one")
    desk.git(repository, "worktree", "add", "-q", "inside/two")
    package = repository / "web"
    package.mkdir()
    (package / "package.json").write_text("{}")
    up = desk.json(repository, "up", "--no-http")
    assert (up["project"], up["project_name"]) == (str(repository), "main")
    folders = [repository, desk.folder / "one", repository / "inside" / "two", package]
    assert {desk.json(folder, "status")["pid"] for folder in folders} == {up["pid"]}
    desk.run(desk.folder / "one", "inbox", "--as", "Bob")
    desk.run(package, "send", "Bob", "from another folder", "--from", "Alice")
    assert "from another folder" in desk.run(repository / "inside" / "two", "inbox", "--as", "Bob").stdout
    script = "from agent_relay.sdk.locate import locate; print(locate().root)"
    found = subprocess.run([sys.executable, "-c", script], cwd=desk.folder / "one", env=desk.environ, capture_output=True, text=True, check=True)  # fmt: skip # noqa: E501
    assert found.stdout.strip() == str(repository)
    for command in ("status", "agents", "up"):
        assert str(repository) in desk.run(desk.folder / "one", command).stdout


def test_a_submodule_and_a_bare_repository(desk: Desk) -> None:
    library, repository = desk.repository("library"), desk.repository()
    desk.git(repository, "submodule", "add", "-q", str(library), "lib")
    desk.git(desk.folder, "clone", "-q", "--bare", str(repository), "bare.git")
    desk.git(desk.folder / "bare.git", "worktree", "add", "-q", "../tree")
    roots = {
        folder: desk.json(desk.folder / folder, "status", status=3)["project"]
        for folder in ("main", "main/lib", "bare.git", "tree")
    }
    assert roots == {
        "main": str(repository), "main/lib": str(repository / "lib"), "bare.git": str(desk.folder / "bare.git"),
        "tree": str(desk.folder / "bare.git"),
    }  # fmt: skip


def test_another_project_can_be_named(desk: Desk) -> None:
    repository = desk.repository()
    pid = desk.json(repository, "up", "--no-http")["pid"]
    elsewhere = desk.project("elsewhere")
    assert desk.json(elsewhere, "status", "--project", "../main")["pid"] == pid
    assert json.loads(desk.run(elsewhere, "--project", str(repository), "status", "--json").stdout)["pid"] == pid
    assert json.loads(desk.run(elsewhere, "status", "--json", AGENT_RELAY_PROJECT=str(repository)).stdout)["pid"] == pid
    assert desk.json(repository, "--project", str(elsewhere), "status", status=3)["project"] == str(elsewhere)
    refused = desk.run(elsewhere, "--project", "nowhere", "status", status=2).stderr
    assert refused == f"agent-relay: --project: there is no folder {elsewhere}/nowhere.\n"
    # A socket that only the environment names is that of the agent we run in.
    assert desk.run(repository, "--project", str(elsewhere), "status", status=3, AGENT_RELAY_SOCKET="/nowhere").stdout.startswith(
        "down"
    )


def test_what_waits_in_the_relay_that_a_worktree_had_before_is_told(desk: Desk) -> None:
    repository = desk.repository()
    desk.git(repository, "worktree", "add", "-q", "../tree")
    tree = desk.folder / "tree"
    before = {"AGENT_RELAY_PROJECT": str(tree)}  # as the rule was
    desk.run(tree, "up", "--no-http", **before)
    desk.run(tree, "inbox", "--as", "Bob", **before)
    desk.run(tree, "send", "Bob", "old mail", "--from", "Alice", **before)
    said = desk.run(tree, "up", "--no-http").stderr
    assert "its daemon is still running" in said
    assert f"agent-relay --project {tree} down --all" in said
    desk.run(tree, "--project", str(tree), "down")
    said = desk.run(tree, "up").stderr
    assert "1 message for Bob still wait" in said
    assert "its daemon is still running" not in desk.run(repository, "up").stderr
    desk.run(tree, "--project", str(tree), "up", "--no-http")
    assert "old mail" in desk.run(tree, "--project", str(tree), "inbox", "--as", "Bob").stdout
    desk.run(tree, "--project", str(tree), "down")
    assert desk.run(tree, "up").stderr == ""


# --- several projects -----------------------------------------------------------------------------------------------------


def test_each_project_gets_a_port_of_its_own_and_keeps_it(desk: Desk) -> None:
    one, two = desk.project("one"), desk.project("two")
    for folder in (one, two):
        desk.run(folder, "up")
    ports = [int(desk.url(folder).rpartition(":")[2]) for folder in (one, two)]
    assert 3888 <= min(ports) < max(ports) < 3988
    for folder, port in zip((one, two), ports, strict=True):
        assert f":{port}/#code=" in desk.json(folder, "open", "--no-browser")["url"]
    listed = {project["name"]: project for project in desk.json(desk.folder, "projects")["projects"]}
    assert [(listed[name]["state"], listed[name]["port"]) for name in ("one", "two")] == [("up", port) for port in ports]
    assert listed["two"]["root"] == str(two)
    for folder in (one, two):
        desk.run(folder, "down")
    assert {project["state"] for project in desk.json(desk.folder, "projects")["projects"]} == {"down"}
    desk.run(two, "up")
    assert desk.url(two).endswith(f":{ports[1]}")  # though the first is free
    table = desk.run(one, "status", "--all", status=3).stdout
    assert table.startswith("down\n")
    assert str(two) in table


def test_a_port_that_was_asked_for_and_is_taken_is_told_with_who_has_it(desk: Desk) -> None:
    one, two = desk.project("one"), desk.project("two")
    desk.run(one, "up")
    port = desk.url(one).rpartition(":")[2]
    desk.run(two, "up", "--port", port)
    said = until(lambda: desk.json(two, "status")["http"]["reason"], "it says why it has no port")
    assert f"Port {port} on 127.0.0.1 is in use" in said
    assert f"The relay of {one} listens there." in said
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        desk.run(two, "restart", "--port", str(other.getsockname()[1]))
        assert "ss -ltnp" in until(lambda: desk.json(two, "status")["http"]["reason"], "it says why again")


def test_a_killed_daemon_is_stale(desk: Desk) -> None:
    one = desk.project("one")
    os.kill(desk.json(one, "up", "--no-http")["pid"], signal.SIGKILL)
    until(lambda: desk.json(desk.folder, "projects")["projects"][0]["state"] == "stale", "its end is seen")
    assert "stale: its daemon was killed" in desk.run(desk.folder, "projects").stdout


# --- restart --------------------------------------------------------------------------------------------------------------


def test_flags_that_differ_are_named_and_restart_applies_them(desk: Desk) -> None:
    one = desk.project("one")
    first = desk.json(one, "up", "--no-http", "--message-ttl", "2h")
    again = desk.json(one, "up", "--no-http", "--message-ttl", "120m", "--max-attempts", "9")
    assert (again["already_up"], again["need_restart"]) == (True, ["--max-attempts"])
    assert "agent-relay restart --max-attempts 9" in desk.run(one, "up", "--max-attempts", "9").stdout
    assert desk.run(one, "restart", "--max-attempts", "none", status=2).stderr.count("--max-attempts") == 1
    assert desk.json(one, "status")["pid"] == first["pid"]  # what is wrong is told before anything is stopped
    restarted = desk.json(one, "restart", "--max-attempts", "9")
    assert restarted["pid"] != first["pid"]
    assert desk.json(one, "up", "--no-http", "--message-ttl", "2h", "--max-attempts", "9")["need_restart"] == []
    assert desk.json(one, "restart")["pid"] != restarted["pid"]
    assert desk.json(one, "up", "--max-attempts", "9")["need_restart"] == []


def test_a_setting_of_the_environment_outlives_a_restart(desk: Desk) -> None:
    one = desk.project("one")
    desk.run(one, "up", "--no-http", AGENT_RELAY_MAX_ATTEMPTS="9")
    desk.run(one, "restart")
    assert desk.json(one, "up", "--max-attempts", "9")["need_restart"] == []


def test_a_daemon_that_cannot_start_again_says_how_to_go_on(desk: Desk) -> None:
    one = desk.project("one")
    desk.run(one, "up", "--no-http")
    said = desk.run(one, "restart", "--storage-path", str(one), status=1).stderr
    assert "The daemon was stopped, and the new one could not start: " in said
    assert "`agent-relay restart` starts it with the flags it had before" in said
    assert desk.run(one, "status", status=3).stdout.startswith("down")
    assert desk.json(one, "restart")["up"]
    assert desk.json(one, "up", "--no-http")["need_restart"] == []


def test_restart_where_nothing_runs_starts_one(desk: Desk) -> None:
    one = desk.project("one")
    assert desk.json(one, "restart", "--no-http")["up"]
    assert desk.run(one, "restart").stdout.startswith("restarted")


# --- clearing up ----------------------------------------------------------------------------------------------------------


def test_offline_names_are_hidden_and_removed(desk: Desk) -> None:
    one = desk.project("one")
    desk.run(one, "up", "--no-http")
    for name in ("Alice", "Bob", "Carol"):
        desk.run(one, "inbox", "--as", name)
    desk.run(one, "send", "Bob", "still here?", "--from", "Alice")
    for command in ("agents", "who", "status"):
        said = desk.run(one, command).stdout
        assert "3 offline hidden (1 message waits for Bob): --all" in said, command
        assert "Carol" not in said
        everybody = desk.run(one, command, "--all").stdout
        assert "Carol" in everybody
        assert "hidden" not in everybody
    assert len(desk.json(one, "agents")["agents"]) == 3
    refused = desk.run(one, "rm", "Bob", "Carol", status=1).stderr
    assert refused == (
        "agent-relay: Nothing was removed: 1 message for Bob would become dead letters. To remove anyway, add --yes.\n"
    )
    assert desk.run(one, "rm", "Carol").stdout == "Carol is removed\n"
    assert desk.json(one, "rm", "Bob", "--yes") == {"removed": [{"name": "Bob", "dead_letters": 1}]}
    assert "Did you mean Alice?" in desk.run(one, "rm", "Alcie", status=1).stderr
    assert [agent["name"] for agent in desk.json(one, "agents")["agents"]] == ["Alice"]
    assert "still here?" in desk.run(one, "dead-letters").stdout
    assert "still here?" in desk.run(one, "history").stdout


def test_prune(desk: Desk) -> None:
    one = desk.project("one")
    desk.run(one, "up", "--no-http")
    for name in ("Alice", "Bob", "Carol"):
        desk.run(one, "inbox", "--as", name)
    desk.run(one, "send", "Bob", "x", "--from", "Alice")
    assert desk.run(one, "prune").stdout == "Nobody has been offline for 7d.\n"
    would = desk.json(one, "prune", "--older-than", "1ms", "--dry-run")
    assert would == {"removed": [], "would_remove": ["Alice", "Carol"], "kept": [{"name": "Bob", "waiting": 1}]}
    assert len(desk.json(one, "agents")["agents"]) == 3
    said = desk.run(one, "prune", "--older-than", "1ms").stdout
    assert "Bob stays: it has 1 waiting message; to remove it: agent-relay rm Bob" in said
    assert [agent["name"] for agent in desk.json(one, "agents")["agents"]] == ["Bob"]


def test_a_start_that_fails_leaves_no_daemon_and_no_name(desk: Desk) -> None:
    one = desk.project("one")
    (one / "taken.cast").write_text("")
    words = ["wrap", "-n", "Alice", "--backend", "pty", "--record", "taken.cast", "cat"]
    assert "taken.cast already exists" in desk.run(one, *words, status=1).stderr
    assert desk.run(one, "status", status=3).stdout.startswith("down")
    desk.run(one, "up", "--no-http")
    assert desk.json(one, "agents")["agents"] == []
    desk.run(one, *words, status=1)
    assert "already up" in desk.run(one, "up").stdout  # one that was there before stays
    assert desk.json(one, "agents")["agents"] == []
    desk.run(one, "inbox", "--as", "Alice")
    desk.run(one, *words, status=1)
    assert [agent["name"] for agent in desk.json(one, "agents")["agents"]] == ["Alice"]  # so does a name that was known
