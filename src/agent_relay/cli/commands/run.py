"""`run`: patterns that a file declares, shown while they run, and taken up again after a crash."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.output.formats import count
from agent_relay.cli.output.safe_text import clean_block, clean_line
from agent_relay.cli.output.screen import Screen

if TYPE_CHECKING:
    from agent_relay.patterns.run.journal import Journal
    from agent_relay.patterns.run.plan import Plan
    from agent_relay.patterns.run.runner import OnChange, RunResult
    from agent_relay.sdk.locate import Place

_TERMINATED = 143  # as shells call it
_CLOSE_S = 5.0


def run(
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="The run file (YAML).", show_default=False)] = None,
    variables: Annotated[
        list[str] | None, typer.Option("--var", metavar="NAME=VALUE", help="The value of a variable of the file; repeatable.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the file and show what would run; start nothing.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what an earlier attempt has finished.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of run files.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Run the patterns that a file declares, one step after the other; print the output of the last.

    Progress goes to standard error. If a step fails, or the run is interrupted, run the same command again: what is finished is
    not done again. Every agent is released, however the run ends. With --json: {"run", "outcome", "steps", "output", "usage",
    "failures"}.
    """
    screen = Screen()
    if schema:
        from agent_relay.patterns.run.schema import RUN_SCHEMA

        screen.json(RUN_SCHEMA)
        return 0
    if file is None:
        raise Failure("Name the file to run: agent-relay run FILE. `agent-relay run --schema` shows what it may contain.", USAGE)
    plan = _read(file, variables or [])
    if dry_run:
        _show_plan(screen, plan, as_json=as_json)
        return 0
    place = find_place(socket, state_dir)
    return _report(screen, plan, _run(place, plan, is_fresh=fresh, is_shown=not as_json), as_json=as_json)


def _read(file: str, variables: list[str]) -> Plan:
    from agent_relay.patterns.run.document import MAX_BYTES
    from agent_relay.patterns.run.plan import read_plan
    from agent_relay.protocol.errors import RelayError

    given = {}
    for each in variables:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise Failure(clean_line(f"--var {each} is not NAME=VALUE."), USAGE)
        given[name] = value
    with open(file, "rb") as source:
        content = source.read(MAX_BYTES + 1)
    try:
        return read_plan(content.decode("utf-8"), file, _name_of(file), given)
    except UnicodeDecodeError:
        raise Failure(clean_line(f"{file} is not valid UTF-8 text."), USAGE) from None
    except RelayError as error:
        raise Failure(clean_line(error.message), USAGE, details=error.details) from None


def _name_of(file: str) -> str:
    """Of its file: what a name cannot have becomes `-`."""
    stem = os.path.basename(file).partition(".")[0]
    name = "".join(letter if (letter.isascii() and letter.isalnum()) or letter in "_-" else "-" for letter in stem)[:40]
    return name if name[:1].isalpha() else f"run-{name}"


def _run(place: Place, plan: Plan, *, is_fresh: bool, is_shown: bool) -> RunResult:
    from agent_relay.cli.output.run_view import RunView
    from agent_relay.cli.project.link import run as run_command
    from agent_relay.patterns.run.journal import Journal

    with Journal(place.state_dir, plan) as journal:
        journal.open(is_fresh=is_fresh)
        with RunView(Screen(sys.stderr), plan.name, journal.name, is_shown=is_shown) as view:
            if journal.kept:
                view.note(f"Going on where an earlier attempt ended: {journal.kept} results are kept.")
            try:
                found = run_command(_play(place, plan, journal, view.hear))
            except KeyboardInterrupt:
                view.note("Interrupted. Every agent is released; run the same command again to go on.")
                raise
        if not found.failed_step:
            journal.remove()
        return found


async def _play(place: Place, plan: Plan, journal: Journal, hear: OnChange) -> RunResult:
    from agent_relay.daemon.cost_models import load_prices
    from agent_relay.patterns.run.runner import run_plan
    from agent_relay.sdk.client import RelayClient

    relay = RelayClient(
        journal.name, socket=place.socket, state_dir=place.state_dir, cli="agent-relay", meta={"ephemeral": True},
        default_channels=False,
    )  # fmt: skip
    await relay.connect()
    try:
        with _stopping_at_sigterm():
            return await run_plan(relay, plan, journal, hear, load_prices(place.home).prices)
    finally:
        await relay.close(_CLOSE_S)
        await _remove(place, journal.name)


@contextlib.contextmanager
def _stopping_at_sigterm() -> Iterator[None]:
    """Cancels the run, as Ctrl-C does: its agents are released first."""
    import asyncio

    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    came = False

    def come() -> None:
        nonlocal came
        came = True
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, come)
    try:
        yield
    except asyncio.CancelledError:
        if not came:
            raise
        raise Failure(
            "The run was ended by SIGTERM. Every agent is released; run the same command again to go on.", _TERMINATED
        ) from None
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def _remove(place: Place, name: str) -> None:
    """The name of the run, so that it leaves nothing; where that fails, it is offline and `prune` removes it."""
    from agent_relay.cli.project.link import observe
    from agent_relay.protocol.errors import RelayError

    with contextlib.suppress(RelayError):
        async with observe(place) as relay:
            await relay.remove(name)


def _report(screen: Screen, plan: Plan, found: RunResult, *, as_json: bool) -> int:
    import msgspec

    if as_json:
        screen.json(
            {
                "run": plan.name, "outcome": "failed" if found.failed_step else "completed", "steps": found.steps,
                "output": found.output, "usage": msgspec.to_builtins(found.usage), "failed_step": found.failed_step or None,
                "failures": list(found.failures),
            }
        )  # fmt: skip
        return 1 if found.failed_step else 0
    if found.usage.total_tokens:
        from agent_relay.cli.commands.costs import format_cost

        Screen(sys.stderr).line((f"{count(found.usage.total_tokens, 'token')}, {format_cost(found.usage)}", "dim"))
    if found.failed_step:
        why = clean_line(" ".join(found.failures)[:1_000])
        raise Failure(f"Step {found.failed_step} failed. {why} Run the same command again to go on from there.")
    screen.line(clean_block(found.output))
    return 0


def _show_plan(screen: Screen, plan: Plan, *, as_json: bool) -> None:
    from agent_relay.patterns.run.references import resolve

    scope: dict[str, Any] = {"vars": plan.variables}
    steps = [{"id": step.id, "pattern": step.pattern, **resolve(dict(step.body), scope)} for step in plan.steps]
    if as_json:
        screen.json({"run": plan.name, "vars": dict(plan.variables), "steps": steps})
        return
    screen.line((clean_line(plan.name), "bold"), ("  nothing is started", "dim"))
    for step in steps:
        _show_step(screen, step)


def _show_step(screen: Screen, step: dict[str, Any]) -> None:
    screen.line((f"  {step['id']}", "bold cyan"), f"  {step['pattern']}", (f"  {_size_of(step)}", "dim"))
    for name in ("task", "question", "input", "reduce"):
        if isinstance(step.get(name), str):
            screen.block(clean_block(f"{name}: {step[name]}"))
    for field in ("stages", "tasks", "sides", "voters"):
        for task in step.get(field, []):
            cli = task.get("cli", step.get("cli", ""))
            screen.block(clean_block(f"{task['name']} ({cli}): {task.get('task', '')}"))


def _size_of(step: dict[str, Any]) -> str:
    if step["pattern"] != "map":
        return ""
    items = step["items"]
    return f"{len(items)} items" if isinstance(items, list) else "items known when it runs"
