"""`team`: the agents, channels and rules of a project, from one file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_relay.cli.failures import FAILED, Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place, inherit
from agent_relay.cli.output.formats import count
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Column, Part, Screen
from agent_relay.cli.wrapper.outbox_commands import own_outbox

if TYPE_CHECKING:
    from agent_relay.cli.team.lifecycle import Step
    from agent_relay.cli.team.team_file import TeamFile
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.locate import Place
    from agent_relay.sdk.views import AgentsView

team = typer.Typer(rich_markup_mode=None, add_completion=False, no_args_is_help=True, subcommand_metavar="up|down|status|logs")
_STYLES = {"failed": "bold red", "kept": "yellow", "running": "dim"}
_COLUMNS = (
    Column("agent"), Column("cli"), Column("role", optional=True), Column("state"), Column("restarts", right=True),
    Column("task", optional=True),
)  # fmt: skip
_CLOSE_S = 2.0


@team.callback()
def root(context: typer.Context, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Start and stop a whole team: agents, channels and rules, as `.agent-relay/team.toml` says.

    The file comes with the project, so it does nothing by itself: `team up` shows what it would run and asks you, once for each
    change of the file.
    """
    context.obj = (socket, state_dir, as_json)
    return 0


@team.command("up", epilog="\b\nExamples:\n  agent-relay team up\n  agent-relay team up --yes --json")
def up(
    context: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Confirm the file without asking, for scripts.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Start what is not running yet. A second `up` changes nothing.

    Starts the daemon if needed, puts the rules in force, creates worktrees, starts agents and lets them join channels. An agent
    whose entry has changed is released and started again.
    """
    from agent_relay.cli.commands.up import start
    from agent_relay.cli.team.consent import ask_owner, read_record
    from agent_relay.cli.team.lifecycle import bring_up
    from agent_relay.cli.team.team_file import read_team

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)
    _refuse_inside(place)
    file = read_team(place.root)
    confirmed = read_record(place.state_dir).confirmed
    if confirmed != file.sha256:
        ask_owner(file, before=confirmed, yes=yes, as_json=as_json)
    start(place, {})
    return _carry_out(place, lambda relay, tell: bring_up(place, file, relay, tell), as_json=as_json, done="up")


@team.command("down", epilog="\b\nExample:\n  agent-relay team down")
def down(context: typer.Context, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Release the agents that `team up` started, and nothing else.

    Agents leave the channels that `up` let them join, and the rules end. Worktrees that `up` created are removed, but those with
    changes are kept and named; branches always stay.
    """
    from agent_relay.cli.team.lifecycle import bring_down

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)
    _refuse_inside(place)
    return _carry_out(place, lambda relay, tell: bring_down(place, relay, tell), as_json=as_json, done="down")


@team.command("status", epilog="\b\nExamples:\n  agent-relay team status\n  agent-relay team status --json")
def status(context: typer.Context, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Show each agent of the team, the rules in force, and whether the file has changed."""
    from agent_relay.cli.project.link import ask_agents, run
    from agent_relay.cli.team.consent import read_record
    from agent_relay.cli.team.team_file import read_team

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)
    view = run(ask_agents(place))
    file, problem = None, ""
    try:
        file = read_team(place.root)
    except Failure as failure:
        problem = failure.sentence
    rows = _list_agents(file, view)
    is_confirmed = file is not None and read_record(place.state_dir).confirmed == file.sha256
    rules = view.server.get("team") or {}
    screen = Screen()
    if as_json:
        screen.json({"agents": rows, "next_cursor": None, "file": {"confirmed": is_confirmed, "problem": problem or None},
                     "rules": rules.get("rules", []), "refused": rules.get("refused", 0)})  # fmt: skip
        return 0
    screen.table(_COLUMNS, [_row(agent) for agent in rows])
    for rule in rules.get("rules", []):
        screen.line(("rule", "dim"), f"  {clean_line(str(rule))}")
    if rules.get("refused"):
        screen.line(
            (f"{count(int(rules['refused']), 'time')} refused by rules", "yellow"), ": agent-relay events --types access.denied"
        )
    if problem:
        screen.line((problem, "yellow"))
    elif not is_confirmed:
        screen.line(("The file is new or has changed; nothing of that has effect before: agent-relay team up", "yellow"))
    return 0


@team.command("logs", epilog="\b\nExamples:\n  agent-relay team logs\n  agent-relay team logs -f")
def logs(
    context: typer.Context,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep showing new output until Ctrl-C or until all have ended.")
    ] = False,
    lines: Annotated[int, typer.Option("--lines", min=1, metavar="N", help="Of each agent, begin with the last N lines.")] = 10,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Show the terminal output of all the team's agents on this machine, each line with its agent's name."""
    from agent_relay.cli.project.link import ask_agents, run
    from agent_relay.cli.team.joint_log import show_logs
    from agent_relay.cli.team.members import team_sessions

    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)
    names = [str(session["agent"]) for session in team_sessions(run(ask_agents(place)))]
    if not names:
        raise Failure("No agent of a team has been started here. Start the team with: agent-relay team up")
    show_logs(place, names, lines, follow=follow, as_json=as_json)
    return 0


# --- how it is done -----------------------------------------------------------------------------------------------------------


def _refuse_inside(place: Place) -> None:
    """The daemon knows callers by their processes and refuses them, too; this one says it before anything is shown."""
    if own_outbox(None, place.socket) is not None:
        raise Failure(
            "An agent cannot start or end a team. Ask the person whose relay this is to run it, outside agents' terminals."
        )


def _carry_out(place: Place, work: Any, *, as_json: bool, done: str) -> int:
    from agent_relay.cli.project.link import connect_as, run

    screen, steps = Screen(), list[Any]()

    def tell(step: Step) -> None:
        steps.append(step)
        if not as_json:
            note = f"  {clean_line(step.note)}" if step.note else ""
            screen.line((step.outcome.ljust(9), _STYLES.get(step.outcome, "bold green")), f" {clean_line(step.subject)}{note}")
            screen.flush()

    async def do() -> None:
        relay: RelayClient = await connect_as(place, None, max_inflight=1)
        try:
            await work(relay, tell)
        finally:
            await relay.close(_CLOSE_S)

    run(do())
    has_failed = any(step.outcome == "failed" for step in steps)
    is_changed = any(step.is_change for step in steps)
    if as_json:
        shown = [{"subject": step.subject, "outcome": step.outcome, "note": step.note} for step in steps]
        screen.json({"steps": shown, "changed": is_changed, "failed": has_failed})
    elif not is_changed and not has_failed:
        screen.line((f"The team is {done} already; nothing was changed.", "dim"))
    return FAILED if has_failed else 0


def _list_agents(file: TeamFile | None, view: AgentsView) -> list[dict[str, Any]]:
    """Those of the file, and those that run though the file no longer has them."""
    from agent_relay.cli.team.members import newest_sessions, team_sessions
    from agent_relay.protocol.names import fold_name

    sessions = newest_sessions(view)
    wanted = {fold_name(agent.name): agent for agent in (file.team.agents if file is not None else ())}
    others = {fold_name(str(session["agent"])) for session in team_sessions(view)} - wanted.keys()
    found = []
    for key in (*wanted, *sorted(others)):
        session, agent = sessions.get(key), wanted.get(key)
        is_ours = session is not None and bool(session.get("team"))
        name = agent.name if agent is not None else str(session["agent"]) if session is not None else key
        known = view.find(name)
        found.append({
            "name": name, "cli": agent.cli if agent is not None else (session or {}).get("cli"),
            "role": agent.role if agent is not None else (session or {}).get("role"), "state": _state(session, known),
            "restarts": (session or {}).get("restarts", 0), "in_file": agent is not None, "started_by_team": is_ours,
            "is_current": is_ours and agent is not None and (session or {}).get("team") == agent.mark,
            "session_id": (session or {}).get("session_id"), "cwd": (session or {}).get("cwd"),
            "task": agent.task if agent is not None else (session or {}).get("task"),
        })  # fmt: skip
    return found


def _state(session: dict[str, Any] | None, known: Any) -> str:
    from agent_relay.cli.team.members import is_live, will_return

    if known is not None and known.connected:
        return str(known.state)
    if session is None:
        return "not started"
    if will_return(session):
        return "crashed, starting again"
    return str(session["status"]) if is_live(session) else str(session["reason"] or "ended")


def _row(agent: dict[str, Any]) -> list[Part]:
    note = "" if agent["in_file"] else " (not in the file)"
    if agent["in_file"] and agent["started_by_team"] and not agent["is_current"]:
        note = " (its entry has changed)"
    return [
        (clean_line(agent["name"]), "bold"), clean_line(agent["cli"] or "-"), clean_line(agent["role"] or "-"),
        (clean_line(agent["state"]) + note, "yellow" if note or "crash" in agent["state"] else ""), str(agent["restarts"]),
        (clean_line(agent["task"] or "-"), "dim"),
    ]  # fmt: skip
