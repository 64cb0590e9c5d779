"""`status`: whether the daemon is up, who is connected, what it holds."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from agent_relay.cli.failures import FAILED, NOT_RUNNING, Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.output.formats import count, format_bytes, format_span, format_time, now_ms
from agent_relay.cli.output.reasons import agent_for_programs
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Part, Screen
from agent_relay.cli.output.tables import show_present
from agent_relay.cli.project.cluster_file import describe_cluster, read_cluster
from agent_relay.cli.project.http_server import HttpPlace, read_http_place
from agent_relay.cli.project.notes import find_config_notes
from agent_relay.protocol.hosts import ClusterFacts
from agent_relay.sdk.locate import Place

if TYPE_CHECKING:
    from agent_relay.sdk.views import AgentsView

_KNOCK_S = 5.0


def status(
    show_all: Annotated[bool, typer.Option("--all", "-a", help="Also show offline agents and your other projects.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Show whether the daemon is up, its agents and queues, and what it has stored.

    Prints `down` and exits with status 3 if it is not running.
    """
    from agent_relay.cli.project.daemon_process import Answer, knock

    place = find_place(socket, state_dir)
    screen = Screen()
    found = knock(place.socket, _KNOCK_S)
    if found.answer is Answer.NOBODY:
        if as_json:
            about = {"up": False, "project": place.root, "project_name": place.name}
            screen.json(about | {"socket": place.socket, "state_dir": place.state_dir} | _other_projects(place, show_all))
        else:
            screen.line(("down", "bold red"))
            screen.flush()
            Screen(sys.stderr).line(("project   ", "dim"), clean_line(place.name), (f"  {clean_line(place.root)}", "dim"))
            _show_other_projects(screen, place, show_all)
        return NOT_RUNNING
    if found.answer is Answer.SILENCE:
        raise Failure(f"The daemon at {place.socket} does not answer; `agent-relay down` stops it.")
    cluster = read_cluster(place.state_dir)
    if cluster is not None and not found.version and (cluster.trouble or not cluster.seat):
        return _show_unserved(screen, place, found.pid, cluster, as_json=as_json)
    view = _ask(place)
    if as_json:
        screen.json(
            {"up": True, "pid": found.pid, "socket": place.socket, "state_dir": place.state_dir, **view.server}
            | {
                "notes": find_config_notes(place),
                "http": _show_http(place),
                "cluster": None if cluster is None else msgspec.to_builtins(cluster),
                "rate": _rate(view.server),
                "agents": [agent_for_programs(agent) for agent in view.agents],
            }
            | _other_projects(place, show_all)
        )
        return 0
    show_server(screen, place.socket, found.pid, view.server, read_http_place(place.state_dir))
    if cluster is not None:
        _show_cluster(screen, cluster)
    rules = view.server.get("team") or {}
    if rules.get("rules"):
        _row(screen, "rules", f"{count(len(rules['rules']), 'rule')} of the team in force, {rules['refused']:,} refused by them")
    for note in find_config_notes(place):
        _row(screen, "note", (clean_line(note), "yellow"))
    if view.agents:
        screen.line()
        show_present(screen, view.agents, "Nobody is connected.", is_all=show_all)
    _show_other_projects(screen, place, show_all)
    return 0


def _show_unserved(screen: Screen, place: Place, pid: int | None, cluster: ClusterFacts, *, as_json: bool) -> int:
    """Of a host that serves nobody now: it cannot reach its cluster, or no host has the seat."""
    if as_json:
        about = {"up": True, "pid": pid, "socket": place.socket, "state_dir": place.state_dir}
        screen.json(about | {"project": place.root, "project_name": place.name, "cluster": msgspec.to_builtins(cluster)})
    else:
        state = "up, but cut off" if cluster.trouble else "up, but no host has the seat yet"
        _row(screen, "status", (state, "bold yellow"), f", pid {pid}" if pid else "")
        _row(screen, "project", (clean_line(place.name), "bold"), f"  {clean_line(place.root)}")
        _row(screen, "socket", place.socket)
        _show_cluster(screen, cluster)
    return FAILED


def _show_cluster(screen: Screen, cluster: ClusterFacts) -> None:
    for label, text in zip(("cluster", ""), describe_cluster(cluster), strict=False):
        _row(screen, label, *text)


def _other_projects(place: Place, is_wanted: bool) -> dict[str, Any]:
    from agent_relay.cli.project.projects import list_projects

    return {"projects": [project.describe() for project in list_projects(place.home)]} if is_wanted else {}


def _show_other_projects(screen: Screen, place: Place, is_wanted: bool) -> None:
    from agent_relay.cli.output.tables import show_projects
    from agent_relay.cli.project.projects import list_projects

    others = [project for project in list_projects(place.home) if project.state_dir != place.state_dir] if is_wanted else []
    if others:
        screen.line()
        show_projects(screen, others)


def _ask(place: Place) -> AgentsView:
    from agent_relay.cli.project.link import ask_agents, run

    return run(ask_agents(place))


def _show_http(place: Place) -> dict[str, str | None]:
    http = read_http_place(place.state_dir)
    if http is None:
        return {"url": None, "reason": None, "warning": None}
    return {"url": http.url, "reason": http.reason or None, "warning": http.warning or None}


def show_server(
    screen: Screen, socket: str, pid: int | None, server: dict[str, Any], http: HttpPlace | None = None
) -> None:  # fmt: skip
    storage = server.get("storage") or {}
    size_bytes = int(storage.get("size_bytes") or 0) + int(storage.get("wal_bytes") or 0)
    dead = int(server.get("dead_letters") or 0)
    refused = int(server.get("refused") or 0)
    accepted = int(server.get("accepted") or 0)
    uptime = format_span(int(server.get("uptime_ms") or 0))
    kept = [
        clean_line(str(storage.get("kind", "?"))),
        count(int(storage.get("messages") or 0), "message"),
        format_bytes(size_bytes),
    ]
    location = clean_line(str(storage.get("location") or ""))
    _row(
        screen,
        "status",
        ("up", "bold green"),
        f" for {uptime}",
        f", pid {pid}" if pid else "",
        f", version {server.get('version')}",
    )
    root = clean_line(str(server.get("project") or ""))
    if root:
        _row(screen, "project", (clean_line(str(server.get("project_name"))), "bold"), f"  {root}")
    _row(screen, "socket", socket)
    if http is not None:
        _row(screen, "http", http.url if http.url is not None else (f"none: {clean_line(http.reason)}", "yellow"))
        if http.warning:
            _row(screen, "", (f"WARNING: {clean_line(http.warning)}", "yellow"))
    _row(screen, "storage", ", ".join(kept))
    if location:
        _row(screen, "", location)
    for warning in (storage.get("problem"), storage.get("lost")):
        if warning:
            _row(screen, "", (f"WARNING: {clean_line(str(warning))}", "bold red"))
    _show_events(screen, server.get("events") or {})
    _row(
        screen, "messages", f"{accepted:,} accepted ({_rate(server):.2f} per second on average), ",
        (f"{refused:,} refused", "yellow" if refused else ""), ", ",
        (count(dead, "dead letter"), "red" if dead else ""),
    )  # fmt: skip
    _row(screen, "agents", f"{int(server.get('connected') or 0):,} connected")


def _show_events(screen: Screen, events: dict[str, Any]) -> None:
    if not events:
        return
    limit, oldest = int(events.get("limit_bytes") or 0), int(events.get("oldest_at") or 0)
    size = format_bytes(int(events.get("size_bytes") or 0)) + (f" of at most {format_bytes(limit)}" if limit else "")
    since = f", since {format_time(oldest, now_ms())}" if oldest else ""
    _row(screen, "events", f"{int(events.get('last_seq') or 0):,} so far, {size}{since}")
    if error := clean_line(str(events.get("error") or "")):
        _row(screen, "", (f"WARNING: events cannot be written now: {error}", "yellow"))
    if lost := int(events.get("lost") or 0):
        _row(screen, "", (f"WARNING: {count(lost, 'event')} could not be written and will be missing", "yellow"))
    for name in events.get("damaged") or ():
        _row(
            screen,
            "",
            (f"WARNING: {clean_line(str(name))} is damaged; a gap stands for the events that cannot be read", "yellow"),
        )


def _row(screen: Screen, label: str, *parts: Part) -> None:
    screen.line((f"{label:<8}", "dim"), "  ", *parts)


def _rate(server: dict[str, Any]) -> float:
    """Accepted messages a second, since the daemon started."""
    return round(int(server.get("accepted") or 0) * 1000 / max(1, int(server.get("uptime_ms") or 0)), 3)
