"""Types that openapi-typescript made of the description: a strict compiler takes a program that uses them, and it runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .server import Server

DESCRIPTION = Path(__file__).parents[3] / "docs" / "api" / "openapi.json"
PROGRAM = Path(__file__).parent / "typescript" / "program.ts"
TOOLS = Path(sys.prefix) / "typescript" / "node_modules" / ".bin"
STRICT = ["--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--noUnusedLocals"]
DEADLINE_S = 280  # a second on an idle machine


def run(*words: str | Path) -> str:
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled against the types."""
    assert (TOOLS / "openapi-typescript").exists(), "build it first: make generator"
    folder = tmp_path_factory.mktemp("typescript")
    run(TOOLS / "openapi-typescript", DESCRIPTION, "--output", folder / "relay.d.ts")
    shutil.copy(PROGRAM, folder)
    run(TOOLS / "tsc", *STRICT, "--target", "es2022", "--module", "commonjs", "--lib", "es2022,dom", folder / PROGRAM.name)
    return folder / "program.js"


@pytest.mark.timeout(600)
def test_the_program_compiles_and_runs(server: Server, program: Path) -> None:
    bob = server.wrap("Bob")
    bob.ask_permission("p1")
    assert json.loads(run("node", program, server.url, "Bob", server.daemon.api_token)) == {
        "recipients": 1,
        "risks": ["medium"],
        "failure": "AGENT_NOT_FOUND",
        "events": ["Bob asks: make install", "approved by human"],
    }
    assert [(told.command, told.text) for told in bob.told] == [("approve", "Fine.")]
