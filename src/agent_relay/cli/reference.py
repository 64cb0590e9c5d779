"""`docs/cli.md`: the help of every command, as the program itself gives it.

`python -P -m agent_relay.cli.reference > docs/cli.md` writes it; a test fails when it is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from agent_relay.cli.app import build_command

_WIDTH = 100
_HEAD = """# The command line

`agent-relay`, `relay` for short, or `python -P -m agent_relay`. This page is the program's own `--help`, generated with
`python -P -m agent_relay.cli.reference > docs/cli.md`; a test fails when it is out of date.

Every command finds the daemon of the project you run it in: the nearest folder upwards with a `.agent-relay`; otherwise the git
repository, the same one for all its worktrees; otherwise the nearest folder with a `pyproject.toml`, `package.json`, `Cargo.toml`
or `go.mod`. `--project DIR` names another project, `--socket` and `--state-dir` another daemon.

| exit status | meaning |
|---|---|
| 0 | success |
| 1 | failure; standard error says why |
| 2 | wrong usage, or an invalid setting |
| 3 | the daemon is not running |
| 130 | interrupted with Ctrl-C |

On a terminal, output is colored (unless `NO_COLOR` is set) and fitted to its width; in a pipe it is plain and complete. Text
from messages is made safe first: anything that could move the cursor or change the title is shown as an escape. `--json`
prints the same for programs. Lists are `{"<plural>": […], "next_cursor": …}`; `inbox` prints one object per line.
`AGENT_RELAY_DEBUG=1` shows a traceback for unexpected errors.
"""


def render_reference() -> str:
    command = build_command()
    with command.make_context("agent-relay", [], resilient_parsing=True, terminal_width=_WIDTH) as context:
        sections = [_section("agent-relay", command.get_help(context)), *_describe(command, context, "agent-relay")]
    return "\n".join([_HEAD, *sections])


def _describe(group: Any, parent: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        with command.make_context(name, [], parent=parent, resilient_parsing=True, terminal_width=_WIDTH) as context:
            yield _section(f"{path} {name}", command.get_help(context))
            if hasattr(command, "commands"):
                yield from _describe(command, context, f"{path} {name}")


def _section(title: str, text: str) -> str:
    body = "\n".join(line.rstrip() for line in text.splitlines())
    return f"## {title}\n\n```text\n{body}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(render_reference())
