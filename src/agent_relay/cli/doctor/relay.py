"""The project's daemon: whether it answers, what it stores, and how its agents are reached."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import Any

from agent_relay.cli.doctor.findings import Finding, Verdict
from agent_relay.cli.output.formats import count
from agent_relay.cli.output.reasons import better_ways, hold_line
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.project.cluster_file import read_cluster
from agent_relay.cli.project.http_server import read_http_place
from agent_relay.cli.project.notes import find_config_notes
from agent_relay.protocol.places import DATABASE_FILE
from agent_relay.sdk.locate import Place
from agent_relay.sdk.views import AgentInfo, AgentsView
from agent_relay.version import __version__

_KNOCK_S = 3.0


def check_relay(place: Place) -> Iterator[Finding]:
    from agent_relay.cli.project.daemon_process import Answer, knock

    for note in find_config_notes(place):
        yield Finding("project", Verdict.NOTE, clean_line(note))
    found = knock(place.socket, _KNOCK_S)
    answer = found.answer
    if answer is Answer.NOBODY:
        yield from _check_store(place)
        if os.path.exists(place.socket):
            yield Finding(
                "daemon", Verdict.NOTE, f"nothing listens at {place.socket}, which a killed daemon left behind", "agent-relay up"
            )
        else:
            yield Finding("daemon", Verdict.OK, "not running; `agent-relay up`, or wrapping an agent, starts it")
        return
    if answer is Answer.SILENCE:
        yield Finding("daemon", Verdict.BAD, f"the daemon at {place.socket} does not answer", "agent-relay down, then up")
        return
    cluster = read_cluster(place.state_dir)
    if cluster is not None and cluster.trouble and not found.version:
        yield Finding("daemon", Verdict.BAD, "up, but cut off from its cluster; it serves nobody", "see below")
        return
    if answer is Answer.STRANGER:
        yield Finding(
            "daemon", Verdict.BAD, clean_line(found.why or f"something listens at {place.socket}, but it is not your daemon")
        )
        return
    view = _ask(place)
    connected = sum(agent.connected for agent in view.agents)
    version = str(view.server.get("version", ""))
    if version != __version__:
        yield Finding("daemon", Verdict.NOTE, f"version {version}, this command is {__version__}", "agent-relay down, then up")
    else:
        yield Finding("daemon", Verdict.OK, f"version {version}, {count(connected, 'agent')} connected")
    storage = view.server.get("storage") or {}
    for wrong in (storage.get("problem"), storage.get("lost")):
        if wrong:
            yield Finding("storage", Verdict.BAD, clean_line(str(wrong)))
    yield from check_events(view.server.get("events") or {}, is_in_cluster=cluster is not None)
    yield from _check_http(place)
    yield from _check_left_alone(place)
    for agent in view.agents:
        yield from _check_agent(agent)
        yield from _check_hold(agent)


def _check_left_alone(place: Place) -> Iterator[Finding]:
    from agent_relay.cli.wrapper.revival import find_left_alone

    for name in map(clean_line, find_left_alone(place)):
        text = "its program runs in tmux, but its wrapper has died, so it gets no messages and is not heard"
        yield Finding(name, Verdict.BAD, text, f"agent-relay attach {name} starts the wrapper again")


def _check_store(place: Place) -> Iterator[Finding]:
    """Findings about what a start would stumble over."""
    from agent_relay.daemon.config import ConfigError, read_setting
    from agent_relay.daemon.store_at_rest import find_store_troubles

    try:
        chosen = read_setting("storage_path", os.environ, project_root=place.root, home=place.home)
        kind = read_setting("storage", os.environ, project_root=place.root, home=place.home)
    except ConfigError as error:
        yield Finding("settings", Verdict.BAD, clean_line(str(error)))
        return
    if kind != "sqlite":  # then there is no file to look at
        return
    for trouble in find_store_troubles(str(chosen or os.path.join(place.state_dir, DATABASE_FILE))):
        yield Finding("storage", Verdict.BAD, clean_line(trouble))


def check_events(events: dict[str, Any], *, is_in_cluster: bool) -> Iterator[Finding]:
    if error := str(events.get("error") or ""):
        yield Finding("events", Verdict.BAD, f"cannot be written now: {clean_line(error)}", _mend_events(error, is_in_cluster))
    for name in events.get("damaged") or ():
        yield Finding(
            "events", Verdict.NOTE, f"{clean_line(str(name))} is damaged: readers get a stream.gap for what cannot be read",
            "ignore it, or restore it from a copy while the daemon is down",
        )  # fmt: skip


def _mend_events(error: str, is_in_cluster: bool) -> str:
    if os.strerror(errno.ENOSPC) in error:
        return "free some space on that disk"
    return "see below what is wrong with the cluster" if is_in_cluster else "check that disk"


def _check_http(place: Place) -> Iterator[Finding]:
    """A daemon without it does its work; the page is missing."""
    http = read_http_place(place.state_dir)
    if http is not None and http.url is None:
        yield Finding("http", Verdict.NOTE, f"there is no page: {clean_line(http.reason)}", "agent-relay restart --port N")
    elif http is not None and http.warning:
        yield Finding("http", Verdict.NOTE, clean_line(http.warning))


def _check_hold(agent: AgentInfo) -> Iterator[Finding]:
    """The reason why its messages wait, where any do or a person should act."""
    if agent.connected and agent.hold is not None:
        yield Finding(clean_line(agent.name), Verdict.NOTE, f"messages wait: {hold_line(agent)}")


def _check_agent(agent: AgentInfo) -> Iterator[Finding]:
    """The way in that is used, and why not each of the better ones."""
    if not agent.connected or agent.door is None:
        return
    name, ways = clean_line(agent.name), better_ways(agent)
    if ways:
        yield Finding(name, Verdict.NOTE, f"reached by {clean_line(agent.door)}")
        for way in ways:
            yield Finding(name, Verdict.NOTE, way.text, way.mend)
    elif agent.door_note:
        yield Finding(name, Verdict.NOTE, f"reached by {clean_line(agent.door)}: {clean_line(agent.door_note)}")
    else:
        yield Finding(name, Verdict.OK, f"reached by {clean_line(agent.door)}")


def _ask(place: Place) -> AgentsView:
    from agent_relay.cli.project.link import observe, run

    async def ask() -> AgentsView:
        async with observe(place) as relay:
            return await relay.agents()

    return run(ask())
