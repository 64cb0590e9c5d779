"""Other users of the machine, whom `allowed_uids` lets in: they write to agents and read what was written to them.

Nothing that acts in the owner's name is theirs: no commands to agents, no answers to what these ask, no agents started or
ended, no look at what others say, and no report that makes the owner's budgets or the owner act.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_relay.protocol import envelope as e
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import EVENTS_TOPIC, fold_name

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent

_ONLY_OWNER = (e.Control, e.Spawn, e.Release, e.Propose, e.Vote)
_REPORTS = frozenset({"tokens.used", "permission.requested", "question.requested"})


def check_guest(agent: Agent | None, frame: e.ClientFrame) -> None:
    """Raises RelayError for what a guest may not do. A guest's history is narrowed to what was said with its own agent."""
    match frame:
        case e.History():
            _narrow(agent, frame)
        case e.Subscribe() if frame.payload.topic == EVENTS_TOPIC:
            raise _denied("Only the daemon's own user may follow events.")
        case e.AgentEvent() if frame.payload.type in _REPORTS:
            raise _denied("Agents of another user cannot report permissions, questions or costs here.")
        case _ if isinstance(frame, _ONLY_OWNER):
            raise _denied("Only the daemon's own user may control, start and stop agents, and answer their requests.")


def _narrow(agent: Agent | None, frame: e.History) -> None:
    asked = frame.payload
    if agent is None or asked.view != "messages" or fold_name(asked.with_ or agent.name) != agent.key:
        raise _denied("Agents of another user only see their own messages: connect as one and ask for `messages`.")
    asked.with_ = agent.name


def _denied(sentence: str) -> RelayError:
    return RelayError(ErrorCode.PERMISSION_DENIED, sentence, reason="other_user")
