"""`--project DIR`, which every command has that talks to a daemon: the project is that folder, wherever the command is run."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Annotated, Any

from agent_relay.protocol.places import ENV_PROJECT, ENV_SOCKET

_MARK = "__takes_project__"
_NEEDS = "state_dir"  # a command that has this option looks for a daemon


def choose_project(folder: str) -> None:
    """For everything that looks for the project from here on. A socket that only the environment named is another project's."""
    path = os.path.realpath(os.path.expanduser(folder))
    if not os.path.isdir(path):
        from agent_relay.cli.failures import USAGE, Failure
        from agent_relay.cli.output.safe_text import clean_line

        raise Failure(f"--project: there is no folder {clean_line(path)}.", USAGE)
    os.environ[ENV_PROJECT] = path
    os.environ.pop(ENV_SOCKET, None)


def with_project(command: Callable[..., int]) -> Callable[..., int]:
    """The command with that option, where it needs one."""
    signature = inspect.signature(command, eval_str=True)
    if _NEEDS not in signature.parameters or hasattr(command, _MARK):
        return command
    import typer

    help_text = f"The project's folder, if it is not the one you are in. [{ENV_PROJECT}]"
    kind = Annotated[str | None, typer.Option("--project", metavar="DIR", help=help_text, show_default=False)]

    @functools.wraps(command)
    def run(*arguments: Any, project: str | None = None, **options: Any) -> int:
        if project is not None:
            choose_project(project)
        return command(*arguments, **options)

    own = inspect.Parameter("project", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
    parameters = [*(each.replace(kind=each.KEYWORD_ONLY) for each in signature.parameters.values()), own]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    setattr(run, _MARK, True)
    return run


def give_project(group: Any) -> None:
    """The same for a group of commands."""
    for registered in (group.registered_callback, *group.registered_commands):
        if registered is not None and registered.callback is not None:
            registered.callback = with_project(registered.callback)
