"""CONTROL: commands to an agent that the relay runs, passed on to the connection that holds its terminal.

The answer says that the command was handed over. What came of it is the wrapper's to report, as a state; but for answers to
what the agent asks, which are carried out before whoever gave them is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_relay.core.context import Context
from agent_relay.core.rate import check_rate
from agent_relay.core.registry import Registry
from agent_relay.core.requests import BY_HUMAN, Requests, Tell
from agent_relay.core.requests import COMMANDS as REQUEST_COMMANDS
from agent_relay.core.rights import APPROVE, CONTROL, Rights
from agent_relay.core.router import Router
from agent_relay.core.teams.rules import TeamRules
from agent_relay.ports.connection import LocalConnection
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name, show

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.peer import Peer
    from agent_relay.core.reports import OnInput
    from agent_relay.protocol import envelope, payloads

# What cannot be done to an agent that takes no commands.
_COMMANDS = {
    "pause": "paused", "resume": "resumed", "interrupt": "interrupted", "stop": "stopped", "input": "typed to",
    "approve": "answered", "deny": "answered", "answer": "answered",
}  # fmt: skip
_NEW_INPUT = {"resume", "input"}  # somebody looked at the agent and wants it to go on
_RETRY_MS = 1_000
STOP_MS = 2_000  # a wrapper still connected so long after it was asked to stop is sent a signal: it may be too busy to read


class Controls:
    def __init__(
        self, context: Context, registry: Registry, requests: Requests, on_input: list[OnInput], rights: Rights,
        rules: TeamRules,
    ) -> None:  # fmt: skip
        self._context = context
        self._rights = rights
        self._rules = rules
        self._requests = requests
        self._registry = registry
        self._router = Router(registry)
        self._on_input = on_input
        self._stopping: dict[Peer, int] = {}  # wrappers that were asked to stop, and when that has taken too long

    def receive(self, peer: Peer, frame: envelope.Control) -> None:
        asked = frame.payload

        def tell(error: RelayError | None) -> None:
            if error is not None:
                peer.say_error(error, frame.id)
            else:
                found = self._registry.find(asked.agent or "")
                peer.say("ACK", {"ack_id": frame.id, "stage": "controlled", "by": found.name if found else asked.agent})

        try:
            if peer.allowance is not None:
                check_rate(self._context, peer.allowance)
            caller = self._rights.caller_of(peer)
            by = caller.name or (peer.agent.name if peer.agent is not None else BY_HUMAN)
            if asked.command in REQUEST_COMMANDS:
                if caller.agent is not None and fold_name(caller.agent) == fold_name(asked.agent or ""):
                    raise _own_request()
                self._rights.check_on(caller, APPROVE, self._host_of(asked.agent))
                self._rules.check_caller(APPROVE, caller, asked.agent or "")
                self.answer(asked, by, tell)
            else:
                self._rights.check_on(caller, CONTROL, self._host_of(asked.agent))
                self.command(asked, by)
                tell(None)
        except RelayError as error:
            peer.say_error(error, frame.id)

    def _host_of(self, name: str | None) -> str:
        agent = self._registry.find(name or "")
        return "" if agent is None else agent.traits.host

    def command(self, asked: payloads.ControlPayload, by: str) -> Agent:
        """Hands it over; raises RelayError where it cannot be carried out."""
        agent, holder = self._find_holder(asked)
        command = asked.command
        self._context.log.note("controlled", agent=agent.name, command=command, by=by)
        if command in _NEW_INPUT:
            for hook in self._on_input:
                hook(agent)
        said: dict[str, Any] = {"command": command}
        if command == "input":
            said["text"] = asked.text
        if command == "pause" and asked.for_ms is not None:
            said["for_ms"] = asked.for_ms
        elif command == "pause":
            said["by"] = self._context.limits.owner or by if by == BY_HUMAN else by
        holder.say("CONTROL", said)
        if command == "stop":
            self._stopping.setdefault(holder, self._context.steady_ms + STOP_MS)
        return agent

    def clock_says(self, now: int) -> None:
        for peer in [peer for peer, due in self._stopping.items() if peer.closed or now >= due]:
            del self._stopping[peer]
            if not peer.closed and isinstance(peer.connection, LocalConnection):
                self._context.log.note("stop_by_signal", agent=peer.agent.name if peer.agent is not None else "")
                peer.connection.ask_to_end()

    def answer(self, asked: payloads.ControlPayload, by: str, tell: Tell) -> None:
        """`approve`, `deny` or `answer`, by an agent or BY_HUMAN. Raises RelayError where there is nothing to answer; else
        `tell` is called once, when it is known what came of it."""
        agent, _ = self._find_holder(asked)
        if fold_name(by) == agent.key:
            raise _own_request()
        self._requests.answer(agent, asked.id or "", asked.command, asked.text or "", by, tell, option=asked.option or "")

    def _find_holder(self, asked: payloads.ControlPayload) -> tuple[Agent, Peer]:
        """The agent and the connection that controls it; raises RelayError where the command cannot be carried out."""
        cannot_be = _COMMANDS.get(asked.command)
        if cannot_be is None:
            error = RelayError(ErrorCode.FEATURE_UNSUPPORTED, f"Unknown command {show(asked.command)}.")
            error.details = {"command": asked.command[:128]}
            raise error
        if asked.agent is None:
            raise RelayError(ErrorCode.INVALID_FORMAT, "`payload.agent` is missing.", field="payload.agent")
        if asked.command == "input" and asked.text is None:
            raise RelayError(ErrorCode.INVALID_FORMAT, "`payload.text` is missing: the text to type.", field="payload.text")
        if asked.command in REQUEST_COMMANDS and not asked.id:
            raise RelayError(ErrorCode.INVALID_FORMAT, "`payload.id` is missing: the id of the request.", field="payload.id")
        if asked.command == "answer" and not asked.text:
            raise RelayError(ErrorCode.INVALID_FORMAT, "`payload.text` is missing: the answer.", field="payload.text")
        agent = self._router.find(asked.agent, "payload.agent")
        holder = agent.peer
        if holder is None or not holder.active:
            raise RelayError(ErrorCode.AGENT_OFFLINE, f"{agent.name} is not connected.", name=agent.name)
        if not holder.takes_control:
            raise RelayError(
                ErrorCode.FEATURE_UNSUPPORTED,
                f"{agent.name} is not run by the relay, so it cannot be {cannot_be}.",
                name=agent.name,
                command=asked.command,
            )
        if holder.connection.is_full:
            raise RelayError(
                ErrorCode.AGENT_BUSY, f"{agent.name} does not read what it is sent.", retry_after_ms=_RETRY_MS, name=agent.name
            )
        return agent, holder


def _own_request() -> RelayError:
    return RelayError(
        ErrorCode.PERMISSION_DENIED, "An agent cannot answer its own request. A person can, outside the agent's terminal.",
        reason="own_request",
    )  # fmt: skip
