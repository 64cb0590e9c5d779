"""A team of scripted agents in real terminals, over a real daemon: up, up again, crashes, kill -9, rules, down."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.sdk.sync import SyncRelayClient
from agent_relay.sdk.views import AgentsView
from tests.integration.stage import Stage, until
from tests.security.inside import Inside

pytestmark = pytest.mark.terminals
DEADLINE_S = 120.0
TURNS = [
    {"when": "tell Dev", "busy_ms": 20, "say": ["->relay:Dev psst"]},
    {"when": "tell all", "busy_ms": 20, "say": ["->relay:#talk hello"]},
]
NAMES = ("Rev", "Dev")
# The command, with another file put in place while it shows the summary.
_SWAP = """
import sys
from pathlib import Path
from agent_relay.cli.main import main
from agent_relay.cli.team import consent
real, file = consent.ask_owner, Path(sys.argv.pop(1))
def ask(*given, **more):
    file.write_text('[[agents]]\\nname = "Evil"\\ncli = "claude"\\n')
    real(*given, **more)
consent.ask_owner = ask
sys.exit(main())
"""


class Scene:
    def __init__(self, folder: Path) -> None:
        allowed = ",".join(str(folder / f"{name}.sh") for name in NAMES)
        self.stage = Stage(folder, f"--spawn-allow={allowed}", f"--project={folder / 'project'}")
        self.programs = {name: self.stage.play(name, turns=TURNS)[0] for name in NAMES}
        project = self.stage.project
        (project / ".git").rmdir()
        git = ["git", "-c", "user.name=N", "-c", "user.email=n@example.org"]
        subprocess.run([*git, "init", "-q"], cwd=project, check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=project, check=True)
        self.file = project / ".agent-relay" / "team.toml"
        self.file.parent.mkdir()

    def write(self, more: str = "", rev: str = "") -> None:
        self.file.write_text(
            f'[[agents]]\nname = "Rev"\ncli = "{self.programs["Rev"]}"\nrole = "reviewer"\ntask = "Wait."\nrestart = "on-crash"\n'
            f'worktree = "team/rev"\n{rev}\n[[agents]]\nname = "Dev"\ncli = "{self.programs["Dev"]}"\n'
            f'[[channels]]\nname = "talk"\nmembers = ["Rev", "Dev"]\n{more}'
        )

    def team(self, *words: str, status: int = 0, **environ: str) -> Any:
        """What it prints as JSON; for another status than 0, what it says."""
        done = self.stage.command("team", *words, "--json", **environ)
        assert done.returncode == status, (done.stdout, done.stderr)
        return json.loads(done.stdout) if status == 0 else done.stdout + done.stderr

    def outcomes(self, *words: str) -> list[tuple[str, str]]:
        found = self.team(*words)["steps"]
        return [(step["subject"].rpartition("/")[2], step["outcome"]) for step in found]

    def agents(self) -> dict[str, dict[str, Any]]:
        return {agent["name"]: agent for agent in self.team("status")["agents"]}

    def relay(self, *words: str) -> Any:
        done = self.stage.command(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def heard(self, name: str) -> list[str]:
        record = self.stage.folder / f"{name}.jsonl"
        lines = record.read_text().splitlines() if record.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("}")]
        return [event["text"] for event in events if event["event"] == "submitted"]

    def look(self) -> AgentsView:
        """Cheaper than a command, for whoever waits."""
        with SyncRelayClient(socket=self.stage.daemon.socket, observer=True) as relay:
            return relay.agents()

    def session(self, name: str) -> dict[str, Any]:
        return [found for found in self.look().sessions if found["agent"] == name][-1]

    def tasks(self, name: str) -> int:
        return sum("Your role" in text for text in self.heard(name))

    def break_program(self, name: str) -> None:
        """Ends the program in the terminal as a crash does."""
        record = str(self.stage.folder / f"{name}.jsonl").encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    if b"agent_relay.cli.demo.scripted_agent" in words and record in words:
                        os.kill(int(entry.name), signal.SIGKILL)

    def is_idle(self, *names: str) -> bool:
        view = self.look()
        return all((found := view.find(name)) is not None and found.state == "idle" for name in names)

    def close(self) -> None:
        self.stage.command("team", "down")
        self.stage.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


def test_nothing_has_effect_before_the_owner_confirms_it(scene: Scene) -> None:
    scene.write()
    assert "--yes" in scene.team("up", status=1)
    assert {agent["state"] for agent in scene.agents().values()} == {"not started"}
    assert scene.team("status")["file"] == {"confirmed": False, "problem": None}
    assert not (scene.file.parent / "worktrees").exists()


def test_up_twice_changed_and_down(scene: Scene) -> None:
    scene.write('[[rules]]\neffect = "deny"\naction = "send"\nfrom = "Rev"\nto = "Dev"\n')
    started = [
        ("rules", "set"),
        ("Rev", "made"),
        ("Rev", "started"),
        ("Dev", "started"),
        ("#talk", "joined"),
        ("#talk", "joined"),
    ]
    assert scene.outcomes("up", "--yes") == started
    again = scene.team("up")  # confirmed, so nobody is asked
    assert (again["changed"], [step["outcome"] for step in again["steps"]]) == (False, ["running", "running"])
    rev = scene.agents()["Rev"]
    assert (rev["role"], rev["is_current"]) == ("reviewer", True)
    tree = Path(rev["cwd"])
    assert tree == scene.file.parent / "worktrees" / "Rev"
    until(lambda: any("Your role: reviewer" in text for text in scene.heard("Rev")), "Rev got its task", DEADLINE_S)

    until(lambda: scene.is_idle("Rev", "Dev"), "both are idle", DEADLINE_S)
    scene.relay("send", "Rev", "tell Dev something")  # the owner may; Rev may not
    until(lambda: scene.look().server["team"]["refused"] == 1, "the rule stood against it", DEADLINE_S)
    scene.relay("send", "Rev", "tell all of them")
    until(lambda: any("hello" in text for text in scene.heard("Dev")), "the channel is open", DEADLINE_S)
    assert not any("psst" in text for text in scene.heard("Dev"))
    denied = scene.relay("events", "--types", "access.denied")
    assert (denied["_agentName"], denied["to"], denied["rule"]) == ("Rev", "Dev", "deny send from Rev to Dev")
    assert any(line["agent"] == "Dev" and "hello" in line["line"] for line in scene_logs(scene))

    scene.write(rev='permission_mode = "none-such"')
    assert "has no permission mode" in scene.team("up", "--yes", status=1)  # and Dev is left alone
    scene.write()
    assert ("Dev", "running") in scene.outcomes("up", "--yes")
    assert scene.team("status")["rules"] == []

    (tree / "work.txt").write_text("x")
    down = scene.outcomes("down")
    assert sorted(down[:2]) == [("Dev", "released"), ("Rev", "released")]
    assert down[2:] == [("#talk", "left"), ("#talk", "left"), ("Rev", "kept"), ("rules", "removed")]
    assert (tree / "work.txt").exists()
    (tree / "work.txt").unlink()
    assert scene.outcomes("down") == [("Rev", "removed")]
    assert not tree.exists()


def scene_logs(scene: Scene) -> list[dict[str, str]]:
    done = scene.stage.command("team", "logs", "--lines", "50", "--json")
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_down_ends_nothing_that_up_did_not_start(scene: Scene) -> None:
    scene.write()
    own = scene.stage.start("Dev", "tmux", turns=TURNS)  # somebody's own, before
    assert ("Dev", "kept") in scene.outcomes("up", "--yes")
    scene.outcomes("down")
    assert own.process.poll() is None
    found = scene.relay("agents")["agents"]
    assert [agent["connected"] for agent in found if agent["name"] == "Dev"] == [True]


def test_a_crash_starts_it_again_also_over_the_daemons_own_end(scene: Scene) -> None:
    scene.write('[[rules]]\neffect = "deny"\naction = "send"\nfrom = "Dev"\nto = "Rev"\n')
    scene.outcomes("up", "--yes")
    until(lambda: scene.is_idle("Rev"), "Rev is idle", DEADLINE_S)
    until(lambda: scene.tasks("Rev") == 1 and scene.is_idle("Rev"), "Rev has its task", DEADLINE_S)
    first = scene.session("Rev")["session_id"]
    scene.break_program("Rev")
    until(lambda: scene.session("Rev")["restarts"] == 1 and scene.is_idle("Rev"), "Rev is back", DEADLINE_S)
    assert scene.session("Rev")["session_id"] != first
    until(lambda: scene.tasks("Rev") == 2, "with its task", DEADLINE_S)
    wrapper = scene.session("Rev")["pid"]
    scene.stage.daemon.kill()
    os.kill(wrapper, signal.SIGKILL)  # while nobody looks
    scene.stage.daemon.start()
    until(lambda: scene.session("Rev")["restarts"] == 2 and scene.is_idle("Rev", "Dev"), "Rev is back again", DEADLINE_S)
    assert scene.team("status")["rules"] == ["deny send from Dev to Rev"]
    assert not scene.team("up")["changed"]


def test_a_daemon_killed_in_the_middle_of_up_costs_one_more_up(scene: Scene) -> None:
    scene.write()
    with scene.stage.run(["team", "up", "--yes", *scene.stage.where]) as starting:
        assert starting.stdout is not None
        for line in starting.stdout:
            if line.startswith("started"):
                break
        scene.stage.daemon.kill()
        starting.communicate(timeout=DEADLINE_S)
    scene.stage.daemon.start()
    until(lambda: not any(found["status"] == "starting" for found in scene.look().sessions), "the book is in order", DEADLINE_S)
    scene.team("up")  # confirmed before, so nobody is asked
    assert not scene.team("up")["changed"]
    live = [found["agent"] for found in scene.look().sessions if found["status"] != "ended"]
    assert sorted(live) == ["Dev", "Rev"]
    assert {name for _, name in json.loads((scene.stage.daemon.state_dir / "team.json").read_text())["joined"]} == {"Rev", "Dev"}


def test_an_agent_confirms_no_team_whatever_it_does(scene: Scene) -> None:
    scene.write()
    eve = Inside(scene.stage, "Eve", "tmux")
    refused = eve.relay("team", "up", "--yes")
    assert (refused.status, "cannot start or end a team" in refused.text) == (1, True)
    refused = eve.relay("team", "up", "--yes", prefix="env -i HOME=$HOME PATH=$PATH")  # as if it were outside
    assert (refused.status, "inside Eve" in refused.text) == (1, True)
    assert {agent["state"] for agent in scene.agents().values()} == {"not started"}
    assert not scene.team("status")["file"]["confirmed"]
    assert not (scene.stage.daemon.state_dir / "team.json").exists()


def test_what_was_confirmed_is_what_is_used(scene: Scene, tmp_path: Path) -> None:
    """The file changes while the owner reads the summary: what was shown is started, and the change is asked for next time."""
    scene.write()
    shown = scene.file.read_text()
    swapped = tmp_path / "swapped.py"
    swapped.write_text(_SWAP)
    done = subprocess.run(
        [sys.executable, "-P", str(swapped), str(scene.file), "team", "up", "--yes", "--json", *scene.stage.where],
        cwd=scene.stage.project,
        env=scene.stage.environ, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {step["subject"] for step in json.loads(done.stdout)["steps"] if step["outcome"] == "started"} == {"Rev", "Dev"}
    assert "--yes" in scene.team("up", status=1)
    scene.file.write_text(shown)
    assert not scene.team("up")["changed"]


def test_shadows_topics_and_leisure_of_the_file_are_in_force(scene: Scene) -> None:
    scene.write(
        more='topic = "Small talk"\nat_leisure = ["Dev"]\n',
        rev='shadows = ["Dev:incoming"]\n',
    )
    asked = scene.team("up", status=1)
    assert "copies to Rev of what Dev receives" in asked
    assert "topic: Small talk" in asked
    assert ("Rev", "set") in scene.outcomes("up", "--yes")
    dev = scene.look().find("Dev")
    assert dev is not None
    assert (dev.shadowed_by, dev.at_leisure) == (("Rev",), ("#talk",))
    assert scene.look().server["topic_lines"]["#talk"] == "Small talk"
    until(lambda: scene.is_idle("Rev", "Dev"), "both are idle", DEADLINE_S)
    scene.relay("send", "Dev", "the plan")
    until(lambda: any("[copy, sent to Dev]: the plan" in text for text in scene.heard("Rev")), "Rev has a copy", DEADLINE_S)
    assert not scene.team("up")["changed"]
    scene.outcomes("down")
    dev = scene.look().find("Dev")
    assert dev is not None
    assert dev.shadowed_by == ()
