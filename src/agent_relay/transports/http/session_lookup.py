"""Sessions: those of agents that the daemon started, and those of agents that connected by themselves."""

from __future__ import annotations

from agent_relay.protocol.names import show
from agent_relay.protocol.short_ids import AMBIGUOUS, read_short_id, stands_for
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.errors import invalid, not_found
from agent_relay.transports.http.session_views import SessionView
from agent_relay.transports.http.views import build


def all_sessions(api: Api) -> list[SessionView]:
    started = [build(SessionView, found, agent_name=found.agent) for found in api.service.sessions()]
    known = {session.session_id for session in started}
    others = [
        SessionView(
            agent.session_id, agent.name, agent.cli, "running" if agent.connected else "offline", agent.registered_at,
            host=agent.host,
        )
        for agent in api.service.agents()
        if agent.session_id and agent.session_id not in known
    ]  # fmt: skip
    return started + others


def find_session(api: Api, session_id: str) -> SessionView:
    short = read_short_id(session_id)
    found = [
        session
        for session in all_sessions(api)
        if session.session_id == session_id or (short is not None and stands_for(short, session.session_id))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise invalid("id", AMBIGUOUS)
    raise not_found(f"There is no session {show(session_id, 80)}.")
