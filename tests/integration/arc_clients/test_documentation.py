"""What docs/arc-clients.md shows is run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from agent_relay.arc.conformance.runner import SECTIONS
from agent_relay.bridge.plan import read_plan
from agent_relay.cli.main import main
from agent_relay.testing.daemon import DaemonProcess

PAGE = (Path(__file__).parents[3] / "docs" / "arc-clients.md").read_text("utf-8")
MODULES = Path(sys.prefix) / "websocket" / "node_modules"
DEADLINE_S = 60


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess("--port=0") as process:
        yield process


@pytest.fixture(scope="module")
def url(daemon: DaemonProcess) -> str:
    return daemon.wait_for_url()


@pytest.fixture
def invite(daemon: DaemonProcess, url: str) -> str:
    with httpx.Client(base_url=url, headers=daemon.api_headers) as owner:
        return str(owner.post("/api/v1/arc/invitations", json={"uses": 30}).json()["invite"])


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def run(program: str, file: Path, content: str, **environ: str) -> str:
    file.write_text(content)
    ran = subprocess.run(
        [program, str(file)], capture_output=True, text=True, check=False, timeout=DEADLINE_S, env={**os.environ, **environ}
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_python_example_runs(url: str, invite: str, tmp_path: Path) -> None:
    said = run(sys.executable, tmp_path / "example.py", blocks("python")[0], RELAY=url, INVITE=invite)
    assert said == "rawk-042 {'task': 'review auth.py'}\non it\n"


def test_the_node_example_runs(url: str, invite: str, tmp_path: Path) -> None:
    assert (MODULES / "ws").exists(), "build it first: make generator"
    said = run("node", tmp_path / "example.cjs", blocks("javascript")[0], RELAY=url, INVITE=invite, NODE_PATH=str(MODULES))
    assert said == "to myself\n"


def test_the_pytest_example_runs(url: str, invite: str, tmp_path: Path) -> None:
    example = blocks("python")[1].replace("ws://127.0.0.1:3888/arc", url)
    (tmp_path / "test_relay.py").write_text(example)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "connection", str(tmp_path)]
    ran = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
        cwd=tmp_path,
        env={**os.environ, "ARC_INVITE": invite},
    )
    assert ran.returncode == 0, ran.stdout
    assert "passed" in ran.stdout


def test_the_file_of_the_bridge_is_taken() -> None:
    plan = read_plan(blocks("toml")[0], "bridge.toml")
    assert (plan.joined, plan.peers, plan.broadcasts) == ({"Alice": "alice-acme"}, {"bob-7": "Bob"}, False)


def test_the_sections_are_these() -> None:
    table = PAGE.partition("| section | about |")[2].partition("\n\n")[0]
    listed = {name.strip() for row in table.splitlines()[2:] for name in row.split("|")[1].split(",")}
    assert listed == {section.name for section in SECTIONS}


def test_the_commands_exist(capsys: pytest.CaptureFixture[str]) -> None:
    shown = [line.split() for block in blocks("") for line in block.splitlines() if line.startswith("agent-relay ")]
    for words in shown:
        named = words[1:3] if words[1] == "arc" else words[1:2]
        assert main([*named, "--help"]) == 0
        text = capsys.readouterr().out
        assert [word for word in words if word.startswith("--") and word.partition("=")[0] not in text] == []
