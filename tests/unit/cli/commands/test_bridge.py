"""`bridge`: what is wrong is said before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.arc.token_file import TokenFile
from tests.arc.shell import Shell

URL = "ws://127.0.0.1:1/arc"


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    (tmp_path / "project" / ".agent-relay").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.delenv("AGENT_RELAY_PROJECT", raising=False)
    monkeypatch.setenv("AGENT_RELAY_HOME", str(tmp_path / "home"))
    return Shell(capsys, "--state-dir", str(tmp_path / "state"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--url"),
        (["--map", "Alice=alice-acme"], "--url"),
        (["--url", URL], "No agents to bridge"),
        (["--url", URL, "--map", "Alice=No!"], "not a valid ARC agent id"),
        (["--url", URL, "--map", "Alice=a-1", "--map", "Alice=a-2"], "twice"),
    ],
)
def test_wrong_usage(shell: Shell, words: list[str], said: str) -> None:
    assert said in shell("bridge", *words, status=2)


def test_a_missing_token_and_how_to_get_one(shell: Shell) -> None:
    assert f"agent-relay arc register alice-acme --url {URL}" in shell(
        "bridge", "--url", URL, "--map", "Alice=alice-acme", status=1
    )


def test_a_missing_daemon(shell: Shell, tmp_path: Path) -> None:
    TokenFile(str(tmp_path / "state")).keep(URL, "alice-acme", "tok_x")
    said = shell("bridge", "--url", URL, "--map", "Alice=alice-acme", status=3)
    assert "agent-relay up" in said


def test_the_projects_own_file_is_read(shell: Shell) -> None:
    Path(".agent-relay/bridge.toml").write_text(f'url = "{URL}"\n[map]\nAlice = "from-the-file"\n')
    assert "from-the-file" in shell("bridge", status=1)
    Path("other.toml").write_text("nonsense")
    assert "other.toml" in shell("bridge", "--config", "other.toml", status=2)
    assert "missing.toml" in shell("bridge", "--config", "missing.toml", status=1)
