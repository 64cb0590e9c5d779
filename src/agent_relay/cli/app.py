"""The list of commands. What each does is in `commands/`; an example of each stands here, under its help."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from agent_relay.cli.commands import (
    about,
    agents,
    arc,
    attach,
    bridge,
    control,
    costs,
    dashboard,
    dead_letters,
    demonstrate,
    diagnose,
    down,
    events,
    explain,
    history,
    inbox,
    logs,
    openapi,
    permissions,
    questions,
    record,
    replay,
    send,
    spawn,
    status,
    up,
    wrap,
)
from agent_relay.version import __version__

COMPLETE_VARIABLE = "_AGENT_RELAY_COMPLETE"
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}

app = typer.Typer(
    rich_markup_mode=None, add_completion=False, context_settings=_SETTINGS, invoke_without_command=True, no_args_is_help=False
)


def _examples(*lines: str) -> str:
    heading = "Example:" if len(lines) == 1 else "Examples:"
    return "\b\n" + "\n".join([heading, *(f"  {line}" for line in lines)])


@app.callback(
    epilog=_examples(
        "agent-relay -n Alice claude",
        "agent-relay up",
        "agent-relay send Bob 'Please review auth.py.' --from Alice",
        "agent-relay inbox --as Bob",
    )
)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> int:
    """Agent Relay: agents, scripts and people in separate terminals send each other messages.

    A message that was accepted is never lost, never doubled and arrives in order; the sender is told what became of it.
    Every command finds the daemon of the project it is run in. Exit status: 0 done, 1 failed, 2 wrong usage, 3 the
    daemon is not running, 130 interrupted.
    """
    if version:
        typer.echo(f"agent-relay {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    if version and context.invoked_subcommand is not None:
        raise typer.Exit
    return 0


def _add(name: str, command: Callable[..., int], short: str, *examples: str) -> None:
    app.command(name, short_help=short, epilog=_examples(*examples))(command)


# What follows the program's name is the program's own.
app.command(
    "wrap", short_help="Run an agent's CLI under the relay.", context_settings={"allow_interspersed_args": False},
    epilog=_examples("agent-relay -n Alice claude", "agent-relay wrap -n Bob --backend pty codex --model o5"),
)(wrap.wrap)  # fmt: skip
_add("attach", attach.attach, "Show a wrapped agent, and type to it.", "agent-relay attach Alice")
_add("logs", logs.logs, "Show what an agent's terminal showed.", "agent-relay logs Alice", "agent-relay logs Alice -f")
_add("pause", control.pause, "Keep messages from an agent for a while.", "agent-relay pause Alice")
_add("resume", control.resume, "Let a paused agent have its messages.", "agent-relay resume Alice")
_add("interrupt", control.interrupt, "Stop what an agent is doing now.", "agent-relay interrupt Alice")
_add("stop", control.stop, "End an agent's program.", "agent-relay stop Alice")
_add(
    "input", control.type_in, "Type into an agent's terminal.",
    "agent-relay input Alice 'Go on, please.'", "agent-relay input Alice --no-enter y",
)  # fmt: skip
_add(
    "spawn", spawn.spawn, "Start an agent in the background.",
    "agent-relay spawn Dev claude 'Fix the tests.'", "agent-relay spawn Dev codex --cwd ../other",
)  # fmt: skip
_add("release", spawn.release, "End an agent that was started so.", "agent-relay release Dev")
app.add_typer(
    permissions.permissions, name="permissions", short_help="Show what agents ask to be allowed, and decide.",
    epilog=_examples("agent-relay permissions -f", "agent-relay permissions approve 3f9c2a11"),
)  # fmt: skip
app.add_typer(
    questions.questions, name="questions", short_help="Show what agents ask people, and answer.",
    epilog=_examples("agent-relay questions", "agent-relay questions answer 3f9c2a11 blue"),
)  # fmt: skip
_ID = "msg_01KA2V8Z5T7Q4M9C3XKJ0000A1"

_add(
    "up", up.with_settings(up.up), "Start the daemon.", "agent-relay up", "agent-relay up --foreground --message-ttl 7d"
)  # fmt: skip
_add("down", down.down, "Stop the daemon.", "agent-relay down")
_add("status", status.status, "Is it up, who is there, what is stored.", "agent-relay status", "agent-relay status --json")
_add(
    "dashboard", dashboard.dashboard, "Open the dashboard in the browser.",
    "agent-relay dashboard", "agent-relay dashboard --no-browser",
)  # fmt: skip
_add("agents", agents.agents, "List every agent the relay knows.", "agent-relay agents")
_add("who", agents.who, "List the agents that are connected.", "agent-relay who")
_add(
    "send", send.send, "Send a message and print its receipt.",
    "agent-relay send Bob 'Please review auth.py.' --from Alice",
    "agent-relay send Bob 'Are you ready?' --await 30s",
    "git diff | agent-relay send Bob,Carol -",
)  # fmt: skip
_add(
    "inbox", inbox.inbox, "Receive the messages that wait for an agent.",
    "agent-relay inbox --as Bob", "agent-relay inbox --as Bob --peek", "agent-relay inbox --follow --json",
)  # fmt: skip
_add("read", history.read, "Show one message in full.", f"agent-relay read {_ID}")
_add(
    "history", history.history, "Show and search what was said.",
    "agent-relay history --with Bob --since 1h", "agent-relay history --search 'auth token' --json",
)  # fmt: skip
_add("explain", explain.explain, "Show what became of a message.", f"agent-relay explain {_ID}")
app.add_typer(
    dead_letters.dead_letters, name="dead-letters", short_help="Show what could not be delivered, and send it again.",
    epilog=_examples("agent-relay dead-letters", "agent-relay dead-letters retry --all"),
)  # fmt: skip
_add(
    "events", events.events, "Show what happens, as it happens.",
    "agent-relay events -f", "agent-relay events --types permission.requested,item.* --agent Alice --since 1h",
    "agent-relay events --since 1042 -f --json >> events.jsonl",
)  # fmt: skip
_add(
    "costs", costs.costs, "Show what the agents used, and what it costs.",
    "agent-relay costs", "agent-relay costs --since 24h --agent Alice", "agent-relay costs --json",
)  # fmt: skip
_add(
    "record", record.record, "Record a running agent's terminal.",
    "agent-relay record Alice", "agent-relay record Alice -o bug.cast --seconds 60",
)  # fmt: skip
_add(
    "replay", replay.replay, "Show what would have been done with a recording.",
    "agent-relay replay session.cast", "agent-relay replay session.jsonl --cli claude --json",
)  # fmt: skip
_add("doctor", diagnose.doctor, "See what is missing, and how to mend it.", "agent-relay doctor", "agent-relay doctor --json")
_add("demo", demonstrate.demo, "Watch a conversation survive a crash.", "agent-relay demo")
app.add_typer(
    arc.arc, name="arc", short_help="Agents over WebSockets: register, talk, check a relay.",
    epilog=_examples("agent-relay arc register rawk-042", "agent-relay arc listen", "agent-relay arc conformance"),
)  # fmt: skip
_add(
    "bridge", bridge.bridge, "Join agents to a remote ARC relay.",
    "agent-relay bridge --url wss://relay.example.com/arc --map Alice=alice-acme --peer bob-7",
    "agent-relay bridge --config bridge.toml",
)  # fmt: skip
_add("openapi", openapi.openapi, "Print the description of the HTTP API.", "agent-relay openapi > openapi.json")
_add("version", about.version, "Show the version.", "agent-relay version")
_add(
    "completion", about.completion, "Print a completion script for your shell.",
    'eval "$(agent-relay completion bash)"', "agent-relay completion fish | source",
)  # fmt: skip


def run_app(words: list[str]) -> int:
    """The exit status. What a command raises is for the caller to explain."""
    command: Any = typer.main.get_command(app)
    program = os.path.basename(sys.argv[0]) if sys.argv else ""
    program = program if program in about.PROGRAMS else about.PROGRAMS[0]
    if COMPLETE_VARIABLE in os.environ:
        return _complete(command, program)
    words = expand_short_form(words, command.commands)
    try:
        # Not `main`, which has its own opinion about Ctrl-C and closed pipes.
        with command.make_context(program, words) as context:
            status = command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    return status if isinstance(status, int) else 0


def expand_short_form(words: list[str], commands: Mapping[str, Any]) -> list[str]:
    """`-n Alice claude`, and `claude` alone where there is such a program, are for `wrap`."""
    first = words[0] if words else ""
    if not first or first in commands:
        return words
    if first.startswith("-"):
        options = {option for parameter in commands["wrap"].params for option in parameter.opts} - {"--help", "-h"}
        is_wrap = first.partition("=")[0] in options or (first[:2] in options and not first.startswith("--"))
    else:
        is_wrap = shutil.which(first) is not None
    return ["wrap", *words] if is_wrap else words


def _complete(command: Any, program: str) -> int:
    from typer._completion_classes import completion_init

    completion_init()
    command.main(args=[], prog_name=program, complete_var=COMPLETE_VARIABLE)
    return 0
