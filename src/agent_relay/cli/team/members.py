"""The agents of a team as the daemon has them: which run, which were started by `team up`, and which would come back."""

from __future__ import annotations

from typing import Any

from agent_relay.protocol.names import fold_name
from agent_relay.sdk.views import AgentsView

Session = dict[str, Any]


def newest_sessions(view: AgentsView) -> dict[str, Session]:
    """By the folded name."""
    return {fold_name(str(session["agent"])): session for session in view.sessions}


def is_live(session: Session | None) -> bool:
    return session is not None and session["status"] != "ended"


def will_return(session: Session | None) -> bool:
    """It crashed, and is about to be started again."""
    if session is None or session["status"] != "ended" or session["reason"] != "crashed":
        return False
    return int(session.get("restarts") or 0) < int(session.get("restart_limit") or 0)


def team_sessions(view: AgentsView) -> list[Session]:
    """The newest of each agent that `team up` started."""
    return [session for session in newest_sessions(view).values() if session.get("team")]
