"""Of all the commands only the one that is meant is imported; what is shown does not depend on it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from agent_relay.cli.app import _names_to_complete, build_command
from agent_relay.cli.command_list import COMMANDS
from agent_relay.cli.main import main

_LOADED = """
import sys
from agent_relay.cli.main import main
main(sys.argv[1:])
print([name for name in sys.modules if name.startswith(("agent_relay.cli.commands.", "agent_relay.daemon", "agent_relay.core"))])
"""


@pytest.fixture(scope="module")
def everything() -> Any:
    return build_command()


@pytest.mark.parametrize("words", [["agents", "--help"], ["agents", "--socket", "/nowhere", "--state-dir", "/nowhere"]])
def test_one_command_loads_no_other_and_nothing_of_the_daemon(words: list[str]) -> None:
    ended = subprocess.run([sys.executable, "-c", _LOADED, *words], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.splitlines()[-1] == "['agent_relay.cli.commands.agents']"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_alone_says_of_itself_what_it_says_among_all(
    name: str, everything: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name, "--help"]) == 0
    alone = capsys.readouterr().out
    with everything.make_context("agent-relay", [], resilient_parsing=True) as parent:
        command = everything.commands[name]
        with command.make_context(name, [], parent=parent, resilient_parsing=True) as context:
            assert command.get_help(context).strip() == alone.strip()


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({"COMP_WORDS": "agent-relay send --fr", "COMP_CWORD": "2"}, ["send"]),
        ({"COMP_WORDS": "agent-relay send ", "COMP_CWORD": "2"}, ["send"]),
        ({"COMP_WORDS": "agent-relay send", "COMP_CWORD": "1"}, COMMANDS),
        ({"COMP_WORDS": "agent-relay send Bob", "COMP_CWORD": "1"}, COMMANDS),
        ({"COMP_WORDS": "agent-relay ", "COMP_CWORD": "1"}, COMMANDS),
        ({"COMP_WORDS": "agent-relay nonsense --fr", "COMP_CWORD": "2"}, COMMANDS),
        ({"_TYPER_COMPLETE_ARGS": "agent-relay send --fr"}, ["send"]),
        ({"_TYPER_COMPLETE_ARGS": "agent-relay se"}, COMMANDS),
        ({}, COMMANDS),
    ],
)
def test_completing_builds_the_command_that_stands_there(environ: dict[str, str], names: Iterable[str]) -> None:
    assert list(_names_to_complete(environ)) == list(names)
