"""The command-line library put in front of the commands: of all of them for a list, otherwise of the one that is meant."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import typer

from agent_relay.cli.command_list import COMMANDS
from agent_relay.cli.first_word import WRAP, put_command_first
from agent_relay.cli.project.choice import give_project, with_project
from agent_relay.version import __version__

PROGRAMS = ("agent-relay", "relay")
COMPLETE_VARIABLE = "_AGENT_RELAY_COMPLETE"
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
_EXAMPLES = (
    "agent-relay -n Alice claude",
    "agent-relay up",
    "agent-relay send Bob 'Please review auth.py.' --from Alice",
    "agent-relay inbox --as Bob",
)
_SEND = "send"
_OF_WRAP = {"allow_interspersed_args": False}  # what follows the program's name is the program's own


def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> int:
    """Agent Relay: agents, scripts and people in separate terminals send each other messages.

    An accepted message is never lost, never doubled and arrives in order; the sender learns what became of it. Every
    command finds the daemon of the current project. Exit status: 0 success, 1 failure, 2 wrong usage, 3 the daemon is
    not running, 130 interrupted.
    """
    if version:
        typer.echo(f"agent-relay {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    if version and context.invoked_subcommand is not None:
        raise typer.Exit
    return 0


def build_command(names: Iterable[str] = COMMANDS) -> Any:
    """The program, with the commands of these names."""
    app = typer.Typer(
        rich_markup_mode=None,
        add_completion=False,
        context_settings=_SETTINGS,
        invoke_without_command=True,
        no_args_is_help=False,
    )
    app.callback(epilog=_show(_EXAMPLES))(root)
    for name in names:
        _add(app, name)
    return typer.main.get_command(app)


def _add(app: typer.Typer, name: str) -> None:
    load, short, examples = COMMANDS[name]
    command = load()
    if isinstance(command, typer.Typer):
        give_project(command)
        app.add_typer(command, name=name, short_help=short, epilog=_show(examples))
    else:
        settings = _OF_WRAP if name == WRAP else None
        app.command(name, short_help=short, epilog=_show(examples), context_settings=settings)(with_project(command))


def _show(examples: Sequence[str]) -> str:
    heading = "Example:" if len(examples) == 1 else "Examples:"
    return "\b\n" + "\n".join([heading, *(f"  {line}" for line in examples)])


def run_app(words: list[str]) -> int:
    """The exit status. What a command raises is for the caller to explain."""
    program = os.path.basename(sys.argv[0]) if sys.argv else ""
    program = program if program in PROGRAMS else PROGRAMS[0]
    if COMPLETE_VARIABLE in os.environ:
        return _complete(program)
    words = put_command_first(words)
    if words[:1] == [_SEND]:
        from agent_relay.cli.commands.send import spell_out_waits

        words = spell_out_waits(words)
    before = dict(os.environ)
    try:
        return _run_command(program, words)
    finally:
        os.environ.clear()  # what a command chose, such as its project, is over with it
        os.environ.update(before)


def _run_command(program: str, words: list[str]) -> int:
    command = build_command(words[:1] if words and words[0] in COMMANDS else COMMANDS)
    try:
        # Not `main`, which has its own opinion about Ctrl-C and closed pipes.
        with command.make_context(program, words) as context:
            status = command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    return status if isinstance(status, int) else 0


def _complete(program: str) -> int:
    from typer._completion_classes import completion_init

    completion_init()
    command = build_command(_names_to_complete(os.environ))
    command.main(args=[], prog_name=program, complete_var=COMPLETE_VARIABLE)
    return 0


def _names_to_complete(environ: Mapping[str, str]) -> Iterable[str]:
    """The command that stands there already, or all of them while its name is being typed."""
    line = environ.get("_TYPER_COMPLETE_ARGS") or environ.get("COMP_WORDS", "")
    words = f"{line}x".split()[1:]  # after a space another word has begun
    is_named = len(words) > 1 and environ.get("COMP_CWORD") != "1"
    return words[:1] if is_named and words[0] in COMMANDS else COMMANDS
