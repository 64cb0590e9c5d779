"""`agent-relay init` as a person runs it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

DEADLINE_S = 120.0


class Person:
    def __init__(self, folder: Path) -> None:
        self.project, self.home = folder / "project", folder / "home"
        (self.project / ".git").mkdir(parents=True)
        self.home.mkdir()
        own = {name: value for name, value in os.environ.items() if not name.startswith(("AGENT_RELAY_", "CODEX_", "XDG_"))}
        self.environ = {**own, "HOME": str(self.home), "AGENT_RELAY_HOME": str(folder / "relay"), "PATH": "/usr/bin:/bin"}

    def run(self, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "agent_relay", "init", *words], cwd=self.project, env=self.environ, stdin=stdin,
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip

    def answer(self, word: str, *words: str) -> subprocess.CompletedProcess[str]:
        """At a terminal, where the question can be asked."""
        master, slave = pty.openpty()
        try:
            os.write(master, f"{word}\n".encode())
            return self.run(*words, stdin=slave)
        finally:
            os.close(master)
            os.close(slave)

    def files(self) -> list[str]:
        return sorted(path.name for path in self.project.iterdir() if path.name != ".git")


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def test_the_difference_is_shown_first_and_nothing_is_done_unasked(person: Person) -> None:
    looked = person.run("claude", "--dry-run")
    assert looked.returncode == 0, looked.stderr
    assert '+    "agent-relay": {' in looked.stdout
    assert "\x1b" not in looked.stdout
    refused = person.run("claude")
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert person.answer("n", "claude").returncode == 1
    assert person.files() == []


def test_it_is_done_and_undone(person: Person) -> None:
    (person.project / "CLAUDE.md").write_bytes(b"# Rules\r\n\r\nBe kind.")
    done = person.answer("y", "claude")
    assert done.returncode == 0, done.stderr
    entry = json.loads((person.project / ".mcp.json").read_text())["mcpServers"]["agent-relay"]
    assert entry["args"][-1] == "mcp"
    assert "Nothing to do" in person.run("claude", "--yes").stdout
    undone = person.run("--remove", "--yes")
    assert undone.returncode == 0, undone.stderr
    assert person.files() == ["CLAUDE.md"]
    assert (person.project / "CLAUDE.md").read_bytes() == b"# Rules\r\n\r\nBe kind."


def test_the_entry_starts_a_server(person: Person) -> None:
    person.run("claude", "--yes")
    entry = json.loads((person.project / ".mcp.json").read_text())["mcpServers"]["agent-relay"]
    hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    done = subprocess.run(
        [entry["command"], *entry["args"]], cwd=person.project, env=person.environ, input=json.dumps(hello) + "\n",
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_for_programs(person: Person) -> None:
    assert person.run("codex", "--json").returncode == 2
    looked = json.loads(person.run("codex", "--json", "--dry-run").stdout)
    assert [Path(each["path"]).name for each in looked["would_change"]] == ["config.toml", "AGENTS.md"]
    assert looked["changed"] == []
    done = json.loads(person.run("codex", "--json", "--yes").stdout)
    assert len(done["changed"]) == 2
    assert (person.home / ".codex" / "config.toml").exists()


def test_several_are_done_and_undone_at_once(person: Person) -> None:
    config = person.home / ".continue" / "config.yaml"
    config.parent.mkdir()
    config.write_text("name: Mine\nversion: 1.0.0\nschema: v1\n")
    done = person.run("copilot", "qwen", "kilo", "continue", "vibe", "--yes")
    assert done.returncode == 0, done.stderr
    assert person.files() == [".mcp.json", ".qwen", ".vibe", "AGENTS.md", "kilo.json"]
    assert "agent-relay" in config.read_text()
    undone = person.run("--remove", "--yes")
    assert undone.returncode == 0, undone.stderr
    assert person.files() == []
    assert config.read_text() == "name: Mine\nversion: 1.0.0\nschema: v1\n"


def test_mistakes_are_named(person: Person) -> None:
    unknown = person.run("cluade")
    assert unknown.returncode == 2
    assert "claude, codex" in unknown.stderr
    left_out = person.run("cline")
    assert left_out.returncode == 2
    assert "could not know whose it is" in left_out.stderr
    nothing = person.run()
    assert nothing.returncode == 2
    assert "is installed" in nothing.stderr
    (person.project / ".mcp.json").write_text("{\n  broken")
    broken = person.run("claude", "--yes")
    assert broken.returncode == 1
    assert "line 2 is not valid JSON" in broken.stdout
    assert (person.project / ".mcp.json").read_text() == "{\n  broken"
    assert "CLAUDE.md" in person.files()
