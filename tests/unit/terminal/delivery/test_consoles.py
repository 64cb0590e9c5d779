"""Which programs may be given a message, by their arguments: those that would run it are known behind whatever starts them."""

from __future__ import annotations

import pytest

from agent_relay.terminal.backends.terminal import Foreground, RunningProgram
from agent_relay.terminal.delivery.consoles import danger_at, danger_of, runs_what_is_typed

RUN_WHAT_IS_TYPED = """
bash|-bash|/bin/sh|bash -i|bash --login|bash --rcfile own.rc|bash -o vi|bash -eo pipefail|zsh -f|fish -C set|sh -s|sh -|nu|dash
python3|python3.12 -i|python -i agent.py|python -|python -W ignore|python -Wignore|python -X dev|python -m pdb agent.py
python -m code|python -Im IPython|ipython|node|node -i|node -r ./hook.js|node inspect app.js
ruby -r json|perl -d agent.pl|lua -i a.lua
deno|deno repl|php -a|irb|psql -f x|sqlite3 a.db|gdb ./agent|redis-cli|R|nice -n 10 bash|env A=b zsh -l|timeout 5m sh|busybox sh
nohup nice python3|julia -i run.jl|pwsh -NoExit run.ps1
"""
PROGRAMS = """
bash run.sh|bash --norc run.sh|bash -o pipefail run.sh|bash -- run.sh|python agent.py|python -u agent.py|python -m aider
python -Im agent_relay.cli.demo.scripted_agent|python -W ignore agent.py|node cli.js|node -r ./hook.js cli.js|deno run a.ts
bun cli.ts|ruby agent.rb|perl agent.pl|claude|codex --no-alt-screen|cat|nice claude|env A=b claude
timeout 5m claude bash|/opt/bash/agent|bashful
pythonic|pwsh run.ps1|php agent.php
"""
SEEN_ONLY_WHILE_THEY_RUN = {
    "ssh host": "hides the", "ssh host claude": "hides the", "sudo -u me bash": "hides the",
    "docker run -it image": "hides the", "tmux attach": "hides the", "vim notes": "letters for commands",
    "less -X notes": "letters for commands", "top": "letters for commands",
    "python -c code.interact()": "code on its command line",
    "sh -c while": "code on its command line", "node -pe x": "code on its command line", "bash -lc x": "code on its command line",
}  # fmt: skip


def commands(text: str) -> list[str]:
    return [command for line in text.strip().splitlines() for command in line.split("|")]


@pytest.mark.parametrize("command", commands(RUN_WHAT_IS_TYPED))
def test_what_runs_its_input_is_known(command: str) -> None:
    assert runs_what_is_typed(command.split())


@pytest.mark.parametrize("command", commands(PROGRAMS))
def test_an_interpreter_with_a_script_is_a_program(command: str) -> None:
    assert not runs_what_is_typed(command.split())
    assert danger_of(command.split()) == ""


@pytest.mark.parametrize(("command", "why"), SEEN_ONLY_WHILE_THEY_RUN.items())
def test_what_may_hide_one_is_not_typed_at(command: str, why: str) -> None:
    assert not runs_what_is_typed(command.split())
    assert why in danger_of(command.split())


def test_what_only_waits_for_a_program_of_its_own_is_passed_over() -> None:
    for command in ("sh -c claude", "python -c x", "sudo claude"):
        assert danger_of(command.split(), is_parent=True) == ""
    assert danger_of(["bash"], is_parent=True) != ""


def test_one_among_them_is_enough() -> None:
    programs = (RunningProgram(("sh", "-c", "bash"), is_parent=True), RunningProgram(("bash", "--norc")))
    assert danger_at(Foreground(programs)) == "bash is in the foreground and would run the message"
    assert danger_at(Foreground((RunningProgram(("claude",)), RunningProgram(())))) == ""
